package check

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"tansy/disk"
	"tansy/journal"
)

// maxFailures is the number of reads in a row that may fail before the whole device is
// taken for dead. It is 16 MiB, more than a bad spot of a medium usually has.
const maxFailures = 4096

// view reads the volume as recovery will leave it: blocks that the log still has
// to install come from there.
type view struct {
	d   disk.Disk
	log map[uint64][]byte

	// lost are the blocks that could not be read, or are not what was last written there. They are not tried again.
	lost map[uint64]error

	failed int    // reads that failed since the last one that did not
	tick   func() // called for every read; may be nil

	// genuine says of the contents of a block whether they are what was last written there, and if
	// not, which block is damaged: this one, or one of the tree of codes. nil: they are believed.
	genuine func(a uint64, b []byte) (ok bool, bad uint64)
	uncoded *bitset // blocks whose codes are lost: their contents are believed

	logged []uint64 // the keys of log in order, when somebody asked for them
}

func newView(d disk.Disk, log map[uint64][]byte) *view {
	return &view{d: d, log: log, lost: map[uint64]error{}, uncoded: newBitset(^uint64(0))}
}

// lostBlock is the error of a block that cannot be read while others can.
type lostBlock struct {
	block uint64
	err   error // the cause
}

func (e *lostBlock) Error() string { return fmt.Sprintf("block %d cannot be read: %v", e.block, e.err) }

// asLost returns err as a *lostBlock, or nil if it is another one, which ends the check.
func asLost(err error) *lostBlock {
	var l *lostBlock
	errors.As(err, &l)
	return l
}

// read fills buf with block a. The error is a *lostBlock, or the device is dead.
func (v *view) read(a uint64, buf []byte) error {
	if v.tick != nil {
		v.tick()
	}
	if b, ok := v.log[a]; ok {
		copy(buf, b)
		return nil
	}
	if err := v.lost[a]; err != nil {
		return &lostBlock{a, err}
	}
	err := v.d.ReadAt(a, [][]byte{buf})
	if err == nil {
		v.failed = 0
		return v.accept(a, buf)
	}
	return v.fail(a, err)
}

// fail is what it means that block a cannot be read: a *lostBlock, or that the device is dead, or not known any more.
func (v *view) fail(a uint64, err error) error {
	if errors.Is(err, disk.ErrMomentLost) { // which says nothing of the block
		return err
	}
	if v.failed++; v.failed > maxFailures {
		return fmt.Errorf("%d reads in a row failed, the last one with: %w", v.failed, err)
	}
	cause := err
	if e := new(disk.Error); errors.As(err, &e) {
		cause = e.Err
	}
	v.lost[a] = cause
	return &lostBlock{a, cause}
}

// accept takes what the device holds in block a for its contents, or else the error is a *lostBlock.
func (v *view) accept(a uint64, buf []byte) error {
	if v.genuine == nil {
		return nil
	}
	ok, bad := v.genuine(a, buf)
	switch {
	case ok:
	case bad != a:
		v.uncoded.add(a)
	default:
		v.lost[a] = journal.ErrNotAsWritten
		return &lostBlock{a, journal.ErrNotAsWritten}
	}
	return nil
}

// scan calls f for the blocks [from, to) in order, but not for those that the device
// knows to be all zeros, unless need says that they matter: need(a) is the first such
// block at or behind a. The buffer is f's until it returns, and nil for a block that
// cannot be read.
func (v *view) scan(from, to uint64, need func(a uint64) uint64, f func(a uint64, buf []byte) error) error {
	batch := min(64, to-from)
	bufs := slices.Collect(slices.Chunk(make([]byte, batch*disk.BlockSize), disk.BlockSize))
	for a := from; a < to; {
		data, err := disk.NextData(v.d, a)
		if err != nil {
			return err
		}
		next := min(data, v.nextLogged(a))
		if need != nil {
			next = min(next, need(a))
		}
		if a = next; a >= to {
			break
		}
		n := uint64(1)
		if a == data {
			n = min(to-a, batch)
		}
		whole := v.readMany(a, bufs[:n])
		for i, buf := range bufs[:n] {
			b := a + uint64(i)
			var err error
			if !whole || v.log[b] != nil {
				err = v.read(b, buf)
			} else {
				err = v.accept(b, buf)
			}
			if asLost(err) != nil {
				buf = nil
			} else if err != nil {
				return err
			}
			if err := f(b, buf); err != nil {
				return err
			}
		}
		a += n
	}
	return nil
}

// readMany fills bufs from the device alone. false: some block cannot be read, so that
// each has to be tried.
func (v *view) readMany(a uint64, bufs [][]byte) bool {
	if v.tick != nil {
		v.tick()
	}
	if v.d.ReadAt(a, bufs) != nil {
		return false
	}
	v.failed = 0
	return true
}

// nextLogged is the first block at or behind a that comes from the log.
func (v *view) nextLogged(a uint64) uint64 {
	if v.logged == nil {
		v.logged = slices.Sorted(maps.Keys(v.log))
	}
	if i, _ := slices.BinarySearch(v.logged, a); i < len(v.logged) {
		return v.logged[i]
	}
	return ^uint64(0)
}

// eachLogged calls f for the blocks that come from the log, in order.
func (v *view) eachLogged(f func(a uint64)) {
	for _, a := range slices.Sorted(maps.Keys(v.log)) {
		f(a)
	}
}
