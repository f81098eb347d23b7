package disk

import (
	"errors"
	"fmt"
	"os"

	"tansy/internal/lockorder"
)

// Moment is what a Disk held when Take was called, as a Disk that cannot be written. Its methods may be called
// concurrently, also beside writes to the Disk.
//
// Where the moment is lost, every read fails with ErrMomentLost, and Err says why. No read ever gets anything of a
// later time.
type Moment struct {
	of   *Moments
	size uint64

	mu      lockorder.Mutex[lockorder.Moment]
	settled blockSet        // blocks that the moment does not need from the device: kept, zeros, or released
	has     blockSet        // of these, the blocks in kept
	kept    map[uint64]*old // what they held
	err     error           // why it has ended
}

// A Releaser is a Disk that keeps blocks for who reads it.
type Releaser interface {
	// Release says that nobody needs the blocks from from on before to any more. They read as zeros from then on.
	Release(from, to uint64)
}

// Release calls Release of d, or of the Disk that d wraps (Unwrap), if that is a Releaser.
func Release(d Disk, from, to uint64) {
	if x, ok := within[Releaser](d); ok {
		x.Release(from, to)
	}
}

// Size implements Disk. It is that of the moment.
func (t *Moment) Size() uint64 { return t.size }

// WriteAt implements Disk. It is refused.
func (t *Moment) WriteAt(a uint64, _ [][]byte) error {
	return &Error{Op: "write", Block: a, Err: ErrReadOnly}
}

// Barrier implements Disk. It is refused, as there is nothing to be made durable.
func (t *Moment) Barrier() error { return &Error{Op: "barrier", Err: ErrReadOnly} }

// Err is why the moment is lost, or nil.
func (t *Moment) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// Close ends the moment: nothing is kept for it any more.
func (t *Moment) Close() error {
	if err := t.Err(); errors.Is(err, errMomentClosed) {
		return &Error{Op: "close", Err: os.ErrClosed}
	}
	t.end(errMomentClosed)
	return nil
}

// errMomentClosed is why a moment ended that was closed.
var errMomentClosed = fmt.Errorf("closed: %w", os.ErrClosed)

// lose ends the moment because of why.
func (t *Moment) lose(why error) { t.end(fmt.Errorf("%w: %w", ErrMomentLost, why)) }

// end ends the moment, unless it has ended before.
func (t *Moment) end(why error) {
	t.mu.Lock()
	if t.err == nil || errors.Is(why, errMomentClosed) {
		t.err = why
	}
	kept := t.kept
	t.kept, t.settled, t.has = nil, blockSet{}, blockSet{}
	t.mu.Unlock()
	for _, o := range kept {
		t.of.spill.drop(o)
	}
	t.of.change(func(held []*Moment) []*Moment {
		left := held[:0]
		for _, h := range held {
			if h != t {
				left = append(left, h)
			}
		}
		return left
	})
}

// needs sets those of needed whose blocks, from a on, the moment needs from the device; some: there are such.
func (t *Moment) needs(a uint64, needed []bool) (some bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil {
		return false
	}
	end := min(a+uint64(len(needed)), t.size)
	for b := t.settled.next(a, end, false); b < end; b = t.settled.next(b+1, end, false) {
		needed[b-a], some = true, true
	}
	return some
}

// settle notes that n blocks from a on, as far as the moment needs them from the device, held zeros.
func (t *Moment) settle(a, n uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil {
		t.settled.add(a, a+n)
	}
}

// keep has the moment be a user of o, which is what block a held, if it needs that from the device.
func (t *Moment) keep(a uint64, o *old) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil || a >= t.size || t.settled.has(a) {
		return
	}
	o.users.Add(1)
	t.settled.add(a, a+1)
	t.has.add(a, a+1)
	t.kept[a] = o
}

// Release implements Releaser.
func (t *Moment) Release(from, to uint64) {
	for _, o := range t.release(from, to) {
		t.of.spill.drop(o) // without the lock, for which writes wait
	}
}

// release is Release, but for what the moment is no user of any more.
func (t *Moment) release(from, to uint64) (dropped []*old) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil || from >= t.size {
		return nil
	}
	to = min(to, t.size)
	for b := t.has.next(from, to, true); b < to; b = t.has.next(b+1, to, true) {
		dropped = append(dropped, t.kept[b])
		delete(t.kept, b)
	}
	t.has.drop(from, to)
	t.settled.add(from, to)
	return dropped
}

// A held is how a moment has a block.
type held struct {
	settled bool // not from the device
	old     *old // nil: zeros, if settled
}

// look says how the moment has the blocks from a on.
func (t *Moment) look(a uint64, blocks []held) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil {
		return &Error{Op: "read", Block: a, Err: t.err}
	}
	for i := range blocks {
		b := a + uint64(i)
		blocks[i] = held{settled: t.settled.has(b)}
		if t.has.has(b) {
			blocks[i].old = t.kept[b]
		}
	}
	return nil
}

// ReadAt implements Disk.
func (t *Moment) ReadAt(a uint64, bufs [][]byte) error {
	if err := CheckTransfer("read", "", t.size, a, bufs); err != nil {
		return err
	}
	for len(bufs) > 0 {
		n := min(len(bufs), saveStep)
		for done := false; !done; {
			var err error
			if done, err = t.read(a, bufs[:n]); err != nil {
				return err
			}
		}
		a, bufs = a+uint64(n), bufs[n:]
	}
	return t.look(a, nil)
}

// read reads few blocks. Not done: some were released meanwhile, so that it has to be tried again.
func (t *Moment) read(a uint64, bufs [][]byte) (done bool, err error) {
	var before, after [saveStep]held
	n := len(bufs)
	if err := t.look(a, before[:n]); err != nil {
		return false, err
	}
	var failed error
	for lo := 0; lo < n; {
		hi := lo + 1
		for hi < n && before[hi].settled == before[lo].settled {
			hi++
		}
		if !before[lo].settled {
			if err := t.of.Disk.ReadAt(a+uint64(lo), bufs[lo:hi]); err != nil {
				failed = err
			}
		}
		lo = hi
	}
	// What is not settled now was not written before the read above ended.
	if err := t.look(a, after[:n]); err != nil {
		return false, err
	}
	if failed != nil {
		return false, failed
	}
	for i, b := range bufs {
		switch h := after[i]; {
		case !h.settled:
		case h.old == nil:
			clear(b)
		default:
			ok, err := t.of.spill.read(h.old, b)
			if err != nil {
				t.lose(err)
				return false, t.look(a, nil)
			}
			if !ok {
				return false, nil
			}
		}
	}
	return true, nil
}

// NextData implements Holes. It passes over what was released.
func (t *Moment) NextData(a uint64) (uint64, error) {
	for a < t.size {
		next, err := NextData(t.of.Disk, a)
		if err != nil {
			return 0, err
		}
		next, found, err := t.nextData(a, min(max(next, a), t.size))
		if found || err != nil {
			return next, err
		}
		a = next
	}
	return t.size, nil
}

// nextData is NextData, where the device has none from block a on before next. Not found: it is to be asked again, from
// at on.
func (t *Moment) nextData(a, next uint64) (at uint64, found bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil {
		return 0, false, &Error{Op: "read", Block: a, Err: t.err}
	}
	if kept := t.has.next(a, min(next+1, t.size), true); kept <= next {
		return kept, true, nil
	}
	if next == t.size || !t.settled.has(next) {
		return next, true, nil
	}
	return t.has.next(next, t.settled.next(next, t.size, false), true), false, nil
}
