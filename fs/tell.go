package fs

import (
	"errors"

	"tansy/internal/runtime/dtxn"
	"tansy/journal"
)

// tell tells the log of what c ended with, if somebody should see to it.
func (v *FS) tell(c *call, err error) {
	switch {
	case err == nil:
		if Errno(c.Status) == ErrServerFault {
			v.log.Error("the volume contradicts itself; run tansy check", "err", ErrServerFault)
		}
	case errors.Is(err, dtxn.ErrTooLarge), errors.Is(err, ErrClosed):
	case errors.Is(err, dtxn.ErrDamaged):
		v.log.Error("the volume is damaged, and read-only from now on; run tansy check", "err", err)
	case v.Lost() != nil: // the journal has told of it
	case errors.Is(err, dtxn.ErrReadOnly):
		if !v.failed.Swap(true) {
			v.log.Error("the volume is read-only until it is served again", "err", err, "advice", failureAdvice(err))
		}
	case !errors.Is(err, journal.ErrNotAsWritten): // else the journal has told of the block
		v.log.Error("transaction failed", "err", err)
	}
}
