package mount3

import (
	"errors"

	"tansy/fs"
)

// Status of MNT (mountstat3).
const (
	OK             = 0
	ErrPerm        = 1
	ErrNoEnt       = 2
	ErrIO          = 5
	ErrAcces       = 13
	ErrNotDir      = 20
	ErrInval       = 22
	ErrNameTooLong = 63
	ErrNotSupp     = 10004
	ErrServerFault = 10006
)

// status is the status of MNT for an error of a walk. MOUNT has fewer than NFS, with the
// same numbers.
func status(err error) uint32 {
	var e fs.Errno
	if !errors.As(err, &e) {
		return ErrIO // a fault below
	}
	switch e {
	case ErrPerm, ErrNoEnt, ErrIO, ErrAcces, ErrNotDir, ErrInval, ErrNameTooLong, ErrNotSupp:
		return uint32(e)
	case fs.ErrStale:
		return ErrNoEnt // removed between two steps
	}
	return ErrServerFault
}
