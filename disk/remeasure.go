package disk

import (
	"errors"
	"fmt"
)

// A Remeasurer is a Disk that can become larger while it is open.
type Remeasurer interface {
	// Remeasure has Size be what the device has now, if that is more than before. What was there stays. It may be called
	// beside all other methods, but not beside itself. After an error Size is what it was.
	Remeasure() error
}

// ErrNotRemeasured: this device tells how large it is only when it is opened.
var ErrNotRemeasured = errors.New("the device tells its size only when it is opened")

// Remeasure calls Remeasure of d, or of the Disk that d wraps (Unwrap), if that is a Remeasurer; else the error wraps
// ErrNotRemeasured.
func Remeasure(d Disk) error {
	if x, ok := within[Remeasurer](d); ok {
		return x.Remeasure()
	}
	return &Error{Op: "measure", Err: ErrNotRemeasured}
}

// Remeasure implements Remeasurer. A preallocated image takes the room of what came, too; where the host has too
// little, the error wraps ErrNoRoom.
func (d *File) Remeasure() error {
	if e := d.lost.Load(); e != nil {
		return e
	}
	size, err := d.measured()
	has := d.Size()
	if err == nil && size > has && !d.device && !d.readOnly {
		err = d.makeRoom(has, size)
	}
	if err != nil {
		return &Error{Op: "measure", Path: d.path, Err: noRoom(cause(err))}
	}
	if size > has {
		d.size.Store(size)
	}
	return nil
}

// makeRoom is for the blocks from has on up to size, which an image is about to have.
func (d *File) makeRoom(has, size uint64) error {
	if d.lender() != nil {
		d.room.reach(size) // which is its size from then on
		return nil
	}
	return d.takeRoom(has, size)
}

// takeRoom has a preallocated image take the room of the blocks from has on up to size, which may lie behind its end.
func (d *File) takeRoom(has, size uint64) error {
	err := d.fits(size)
	if err == nil {
		err = d.allocateAll(has, size)
	}
	if err != nil {
		return fmt.Errorf("the image has all its room (--preallocate), and there is none for %d bytes more: %w",
			(size-has)*BlockSize, err)
	}
	return nil
}

// TakeRoom has d, or the File that it wraps (Unwrap), take the room of its first n blocks from its host, if that is a
// preallocated image: it may have been made longer before it was opened, without the room of what came. The error
// wraps ErrNoRoom where the host has too little. All other Disks stay as they are.
func TakeRoom(d Disk, n uint64) error {
	f, ok := within[*File](d)
	if !ok || f.device || f.readOnly || f.lender() != nil || n <= f.needed.Load() {
		return nil
	}
	if err := f.takeRoom(f.needed.Load(), n); err != nil {
		return &Error{Op: "preallocate", Path: f.path, Err: noRoom(err)}
	}
	return nil
}
