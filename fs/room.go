package fs

import (
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"tansy/disk"
	"tansy/journal"
)

// ErrHostFull is wrapped by an error of Open if the file system under the image has no room for what opening writes.
var ErrHostFull = errors.New("the file system that the image lies on is full; free room there and start again")

// inMemory is how much can wait for its place on the device at a time (bytes); with a
// small journal it is less.
const inMemory = 64 << 20

// prepare makes room on the host for what every start writes: the journal. (mkfs has written it; a
// copy of the image may have holes again.)
func prepare(h disk.Host, p journal.Params) error {
	if h == nil {
		return nil
	}
	n := p.Home() - p.Start
	h.Keep(min(inMemory/BlockSize, 2*n))
	return hostFull(h.Reserve(p.Start, n), p)
}

// hostFull says what to do about an error of a start, if the host is full. Recovery writes
// no more than the journal held, and for each block a page of the tree of codes and few above it.
func hostFull(err error, p journal.Params) error {
	if errors.Is(err, disk.ErrNoRoom) {
		n := p.Home() - p.Start
		n += min(p.Pages, 2*n)
		return fmt.Errorf("%w (%d MiB are enough; with --read-only none is needed): %w", ErrHostFull, n*BlockSize>>20+1, err)
	}
	return err
}

// hostRoom bounds the number of free blocks by what the host has room for. A block that
// is free here and has room there counts. Which these are is not known, only how many have room in all. As many as
// are in use may be among them: all that are there below block end, where the blocks for data end, and are not free,
// and the superblock's copy.
func hostRoom(h disk.Host, free, end uint64) uint64 {
	if h == nil {
		return free
	}
	room, backed := h.Room()
	backed -= min(backed, backed/256+1) // what the host keeps about the image counts as its room
	all := h.Below(end)
	used := all + 1 - min(free, all)
	return min(free, room+backed-min(backed, used))
}

// hostLog tells the log now and then that the host is full.
type hostLog struct {
	log  *slog.Logger
	next atomic.Int64 // not before (nanoseconds)
}

// tellEvery is how often it does.
const tellEvery = time.Minute

func (l *hostLog) full() {
	now := time.Now()
	next := l.next.Load()
	if now.UnixNano() >= next && l.next.CompareAndSwap(next, now.Add(tellEvery).UnixNano()) {
		l.log.Warn("the file system that the image lies on is full: what needs more room is refused (NFS3ERR_NOSPC); " +
			"free room there, or remove files here")
	}
}

// failureAdvice is what to do about a device that failed.
func failureAdvice(err error) string {
	switch {
	case errors.Is(err, disk.ErrNoRoom):
		return "free room on the file system that the image lies on, then start the server again"
	case errors.Is(err, disk.ErrLost):
		return "put the volume back where it was, then start the server again"
	}
	return "see to the device, then start the server again"
}
