package ddisk

import (
	"bytes"
	"errors"
	"sync/atomic"

	"tansy/disk"
	"tansy/internal/lockorder"
	"tansy/internal/runtime/dbytes"
)

// spare is the blocks that need not be stored if zeros are written there: a write of zeros to one of
// them is a discard, which leaves zeros, too. If the device cannot, it is a write like others.
type spare struct {
	any    atomic.Bool                      // the set is not empty
	mu     lockorder.Mutex[lockorder.Spare] // held during a discard
	set    map[uint64]struct{}
	cannot atomic.Bool // the device has said so

	runs, blocks, kept atomic.Uint64 // discarded; blocks written because that failed
}

// Spare says that the zeros which are written next to the n blocks from a on need not take room.
func (d *Disk) Spare(a, n uint64) {
	s := &d.spare
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.set == nil {
		s.set = map[uint64]struct{}{}
	}
	for i := range n {
		s.set[a+i] = struct{}{}
	}
	s.any.Store(len(s.set) > 0)
}

// Unspare takes back all that Spare said: when it returns, no block loses its room any more.
func (d *Disk) Unspare() {
	s := &d.spare
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.set)
	s.any.Store(false)
}

// CannotSpare tells that the device has refused to discard, for good.
func (d *Disk) CannotSpare() bool { return d.spare.cannot.Load() }

// KeptBlocks is the number of spare blocks that zeros were written to, because they could not be discarded.
func (d *Disk) KeptBlocks() uint64 { return d.spare.kept.Load() }

var zeros [dbytes.BlkSize]byte

// take tells which of bufs, for the blocks from a on, are zeros in spare blocks, and strikes all of these
// blocks out. The caller holds mu.
func (s *spare) take(a uint64, bufs [][]byte) (is []bool, some bool) {
	is = make([]bool, len(bufs))
	for i, b := range bufs {
		if _, ok := s.set[a+uint64(i)]; ok {
			delete(s.set, a+uint64(i))
			is[i] = bytes.Equal(b, zeros[:])
			some = some || is[i]
		}
	}
	s.any.Store(len(s.set) > 0)
	return is, some
}

// writeSpare writes bufs, but discards what are zeros in spare blocks.
func (d *Disk) writeSpare(a uint64, bufs [][]byte) bool {
	d.spare.mu.Lock()
	is, some := d.spare.take(a, bufs)
	if !some {
		d.spare.mu.Unlock()
		return d.put(a, bufs)
	}
	defer d.spare.mu.Unlock()
	for from := 0; from < len(bufs); {
		to := from + 1
		for to < len(bufs) && is[to] == is[from] {
			to++
		}
		if ok := is[from] && d.discard(a+uint64(from), uint64(to-from)); !ok && !d.put(a+uint64(from), bufs[from:to]) {
			return false
		}
		from = to
	}
	return true
}

// discard makes n spare blocks from a on zeros. If it is not ok, they are to be written, which fails if
// the device has failed. The caller holds mu.
func (d *Disk) discard(a, n uint64) (ok bool) {
	if d.bad.Load() {
		return false
	}
	s := &d.spare
	err := error(&disk.Error{Op: "discard", Block: a, Err: disk.ErrNoDiscard})
	if !s.cannot.Load() {
		d.sharing.begun.Add(1)
		lockorder.Wait[lockorder.Device]()
		err = disk.Discard(d.d, a, n)
		d.sharing.ended.Add(1)
	}
	switch {
	case err == nil:
		s.runs.Add(1)
		s.blocks.Add(n)
		return true
	case errors.Is(err, disk.ErrNoDiscard):
		s.cannot.Store(true)
		s.kept.Add(n)
	case errors.Is(err, disk.ErrNoRoom):
		s.kept.Add(n)
	default:
		d.fail(err)
	}
	return false
}
