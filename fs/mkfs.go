package fs

import (
	"errors"
	"fmt"
	"time"

	"tansy/disk"
	"tansy/internal/gen/fs/format/superblockformat"
	"tansy/internal/gen/fs/format/volumegeometry"
	"tansy/internal/gen/fs/mkfs/commissioned"
	"tansy/internal/gen/fs/mkfs/making"
	"tansy/internal/runtime/ddisk"
	"tansy/internal/runtime/pages"
	"tansy/internal/runtime/seal"
	"tansy/journal"
)

// MkfsOptions say how to make a volume. The zero value is fine.
type MkfsOptions struct {
	LogBytes uint64 // of the journal; 0: 64 MiB, less on a small device
	Inodes   uint64 // 0: one for every 16 KiB

	// Replies is how many calls, of all clients, have records at a time, so that they are done once; 0: 4096, less on a
	// small device.
	Replies uint64

	Zeroed   bool                     // the device reads as zeros: a new image file
	RootMode uint32                   // permission bits of the root directory; 0: 0755
	RootUID  uint32                   // its owner
	RootGID  uint32                   // its group
	Clock    Clock                    // nil: time.Now
	Progress func(done, total uint64) // called now and then with bytes written; may be nil
	Stop     func() error             // called before each write: an error ends Mkfs, which returns it; may be nil
}

// The journal's size, in blocks: the default, and the least that is useful. A small
// volume's is an eighth of it.
const (
	logDefault = 64 << 20 / BlockSize
	logLeast   = 5 << 20 / BlockSize
)

// Bounds of Plan (verified/fs/mkfs/making.dfy), for messages: the fewest inodes, the blocks that a journal is smaller
// than, and those that a volume is, but for its journal.
const (
	inodesLeast = 17
	logMost     = 1 << 32
	sizeMost    = 1 << 39
)

// The number of records of replies: the default, and that of the smallest volumes.
const (
	repliesDefault = 4096
	repliesLeast   = 64
)

// Check returns the error with which Mkfs refuses a device of so many bytes, or nil if the size is right. It writes
// nothing.
func (o MkfsOptions) Check(bytes uint64) error {
	_, err := plan(bytes/BlockSize, o)
	return err
}

// Mkfs makes a volume on d; what d held is lost. A crash in the middle leaves a
// device that Open refuses. What goes to the device, and when, is verified (verified/fs/mkfs).
func Mkfs(d disk.Disk, o MkfsOptions) error {
	if o.RootUID == NoID || o.RootGID == NoID {
		return fmt.Errorf("owner %d:%d of the root directory: %d is no user and no group", o.RootUID, o.RootGID, uint32(NoID))
	}
	s, err := plan(d.Size(), o)
	if err != nil {
		return err
	}
	p := journalParams(s)
	if err := p.Check(d); err != nil {
		return err
	}
	mode := o.RootMode & 0o7777
	if o.RootMode == 0 {
		mode = 0o755
	}
	// what takes long are inodes and records
	dd := ddisk.New(meter{d, s.Geometry().InodeTable() + 1, s.Geometry().Data0(), o.Progress, o.Stop})
	key := seal.New(p.Key, p.UUID, p.Home())
	if !commissioned.Make(dd, s, key, pages.New(0), o.Zeroed, mode, o.RootUID, o.RootGID) {
		return errors.Join(dd.Err(), dd.ReadErr())
	}
	return nil
}

// amounts are what a volume of size blocks has with these options: blocks of the journal, inodes, and records of
// replies.
func amounts(size uint64, o MkfsOptions) (log, inodes, replies uint64) {
	log, inodes, replies = o.LogBytes/BlockSize, o.Inodes, o.Replies
	if o.LogBytes == 0 {
		log = min(logDefault, max(logLeast, size/8))
	}
	if inodes == 0 {
		inodes = volumegeometry.DefaultInodes(size)
	}
	if replies == 0 {
		replies = min(repliesDefault, max(repliesLeast, size/64))
	}
	return log, inodes, replies
}

// plan lays a volume of size blocks out.
func plan(size uint64, o MkfsOptions) (s superblockformat.Super, err error) {
	tooLarge := tooLargeError(fmt.Sprintf("%d bytes are too many: a volume has less than %d",
		size*BlockSize, uint64(sizeMost)*BlockSize))
	if size > journal.MaxSize { // which no arithmetic here and below is for
		return s, tooLarge
	}
	log, n, replies := amounts(size, o)
	if log < logLeast {
		return s, fmt.Errorf("%w: a journal of %d bytes is too small: at least %d",
			ErrOptions, o.LogBytes, logLeast*BlockSize)
	}
	if n < inodesLeast {
		return s, fmt.Errorf("%w: %d inodes are too few: at least %d", ErrOptions, n, inodesLeast)
	}
	uuid, key, err := newSecrets()
	if err != nil {
		return s, err
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	sec, nsec := stamp(o.Clock())
	why, s := making.Plan(size, log, n, replies, sec, nsec, uuid[0], uuid[1], key[0], key[1], key[2], key[3])
	switch why {
	case 0:
		return s, nil
	case making.TOOLARGE():
		if log >= logMost {
			return s, tooLargeError(fmt.Sprintf("a journal of %d bytes is too large: less than %d",
				log*BlockSize, uint64(logMost)*BlockSize))
		}
		return s, tooLarge
	}
	return s, &TooSmallError{size * BlockSize, log * BlockSize, n, leastBytes(o)}
}
