package dtxn

import (
	"errors"
	"fmt"

	"tansy/journal"
)

// The errors of transactions.
var (
	// ErrConflict: a lock would have to be waited for out of order. The
	// transaction has to be aborted, and may be run again. Run does so itself.
	ErrConflict = errors.New("transaction conflicts with another")
	// ErrIO: the device failed. A commit that returns it may have taken effect in memory;
	// whether the device has it is not known before the volume is opened again.
	ErrIO = errors.New("device error")
	// ErrTooLarge: more blocks are written than one transaction can.
	ErrTooLarge = errors.New("transaction too large")
	// ErrReadOnly: nothing is written any more since the device failed, or the
	// transaction was begun as a read-only one.
	ErrReadOnly = errors.New("read-only")
	// ErrClosed: the journal is closed, or about to be.
	ErrClosed = journal.ErrClosed
	// ErrDamaged: the volume refers to a block where there can be nothing of the kind.
	ErrDamaged = errors.New("wild pointer")
)

// status returns the error for a result of the verified code, which is not 0: never nil.
func (s *System) status(st uint32) error {
	switch st {
	case conflict:
		return ErrConflict
	case tooLarge:
		return ErrTooLarge
	case lost:
		return fmt.Errorf("%w: %w", ErrIO, s.j.Failure())
	case readOnly:
		err := s.j.Refusal()
		if err == ErrClosed {
			return err
		}
		return fmt.Errorf("%w: %w", ErrReadOnly, err)
	}
	if err := s.j.ReadFailure(); err != nil { // of this read, or of another one lately
		return fmt.Errorf("%w: %w", ErrIO, err)
	}
	return ErrIO
}

// wild is the error for a block that does not hold what was asked for. Verified code asks for none such on a sound
// volume.
func (s *System) wild(what uint32, blkno uint64) error {
	start, end := s.places.First(what)
	return fmt.Errorf("%w: block %d is not within %d to %d", ErrDamaged, blkno, start-s.base, end-s.base-1)
}
