package disk

import (
	"errors"
	"fmt"
)

// Error is what every operation of a Disk returns when it fails.
type Error struct {
	// Op is "open", "create", "preallocate", "rename", "lock", "check", "reserve", "read", "write", "discard", "barrier"
	// or "close".
	Op    string
	Path  string // the file or device; empty for one in memory
	Block uint64 // the first block not transferred; for "read", "write" and "discard" only
	Err   error  // the cause
}

func (e *Error) Error() string {
	s := e.Op
	if e.Op == "read" || e.Op == "write" || e.Op == "discard" {
		s = fmt.Sprintf("%s block %d", e.Op, e.Block)
	}
	if e.Path != "" {
		s += " " + e.Path
	}
	return s + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Causes of an Error, for errors.Is. Failures of the operating system are
// syscall.Errno or *fs.PathError as usual.
var (
	// ErrRange: the operation reaches beyond the end of the device.
	ErrRange = errors.New("beyond the end of the device")
	// ErrBuffer: a buffer is not exactly one block long.
	ErrBuffer = errors.New("buffer is not one block long")
	// ErrLocked: another process, or another File of this one, has the volume.
	ErrLocked = errors.New("volume is in use by another server or tool")
	// ErrReadOnly: a write or barrier on a File opened read-only.
	ErrReadOnly = errors.New("opened read-only")
	// ErrLost: the file was deleted, renamed, replaced or cut while it was open, or the
	// device is gone. Nothing written since may be relied on.
	ErrLost = errors.New("the volume was taken away while in use")
	// ErrNoRoom: the file system that an image lies on is full.
	ErrNoRoom = errors.New("no room on the file system that the image lies on")
	// ErrFrozen: the simulated machine has crashed.
	ErrFrozen = errors.New("simulated crash")
	// ErrNotThere: no block of the device stands for this one of the layout (Pieced).
	ErrNotThere = errors.New("no block of the device stands for this one")
	// ErrInjected: the fault injector's default error.
	ErrInjected = errors.New("injected fault")
)

// CheckTransfer refuses a transfer that no device of size blocks can do. All Disks, also those of other packages,
// refuse it alike.
func CheckTransfer(op, path string, size, a uint64, bufs [][]byte) error {
	if err := checkRange(op, path, size, a, uint64(len(bufs))); err != nil {
		return err
	}
	for i, b := range bufs {
		if len(b) != BlockSize {
			return &Error{Op: op, Path: path, Block: a + uint64(i), Err: ErrBuffer}
		}
	}
	return nil
}

// checkRange refuses n blocks from a on that reach beyond the end of a device of size blocks.
func checkRange(op, path string, size, a, n uint64) error {
	if a > size || n > size-a {
		return &Error{Op: op, Path: path, Block: max(a, size), Err: ErrRange}
	}
	return nil
}
