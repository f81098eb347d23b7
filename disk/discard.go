package disk

import (
	"errors"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// A Discarder is a Disk that can take blocks for zeros without storing them, such as an image with holes or a thin
// device.
type Discarder interface {
	// Discard makes the n blocks from address a on zeros, as a write would, and gives
	// their room back to whoever lent it. A barrier makes that durable; until then a crash
	// may keep or lose each block on its own. After an error each may hold what it held, or zeros. An
	// error that wraps ErrNoDiscard says that this device can never do it, and one that
	// wraps ErrNoRoom not now; the device is sound then, and the blocks can be written.
	Discard(a, n uint64) error
}

// ErrNoDiscard: the room of single blocks cannot be given back.
var ErrNoDiscard = errors.New("the room of blocks cannot be given back")

// Discard asks d, if it is a Discarder.
func Discard(d Disk, a, n uint64) error {
	if x, ok := d.(Discarder); ok {
		return x.Discard(a, n)
	}
	return &Error{Op: "discard", Block: a, Err: ErrNoDiscard}
}

// Discards tells whether Discard is worth a try: for a sparse image, and for a device.
func (d *File) Discards() bool { return d.lender() != nil || d.device && !d.readOnly }

// Discard implements Discarder. In an image it punches holes. A block device writes zeros without data, if it can; a
// plain discard would not do, since anything may be read after it. A preallocated image keeps its room, which it was
// made for.
func (d *File) Discard(a, n uint64) error {
	d.changing.RLock()
	defer d.changing.RUnlock()
	fail := func(err error) error { return &Error{Op: "discard", Path: d.path, Block: a, Err: err} }
	if size := d.Size(); a > size || n > size-a {
		return fail(ErrRange)
	}
	if d.readOnly {
		return fail(ErrReadOnly)
	}
	if e := d.lost.Load(); e != nil {
		return fail(e.Err)
	}
	punch := func() error {
		return withFD(d.conn, func(fd int) error {
			return retry(func() error { return d.punch(fd, int64(a)*BlockSize, int64(n)*BlockSize) })
		})
	}
	var err error
	if r := d.lender(); r != nil {
		err = r.giveBack(a, n, punch)
	} else if d.device {
		err = punch()
	} else {
		err = ErrNoDiscard
	}
	switch {
	case err == nil:
		return nil
	case isUnsupported(err) || errors.Is(err, unix.ENOTTY):
		err = errors.Join(ErrNoDiscard, err)
	}
	return fail(noRoom(err))
}

// Discard implements Discarder.
func (d *Mem) Discard(a, n uint64) error {
	if err := CheckTransfer("discard", "", d.size, a, zeroBlocks(n)); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return &Error{Op: "discard", Block: a, Err: os.ErrClosed}
	}
	for i := range n {
		delete(d.blocks, a+i)
	}
	return nil
}

// Discard implements Discarder. To a crash it is a write of zeros.
func (s *Sim) Discard(a, n uint64) error { return s.WriteAt(a, zeroBlocks(n)) }

// zeroBlocks are n blocks to be written.
func zeroBlocks(n uint64) [][]byte { return slices.Repeat([][]byte{zeros[:]}, int(n)) }
