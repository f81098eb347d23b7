//go:build !linux

package disk

// lockedBy returns ErrLocked: this system does not tell who has a lock.
func lockedBy(identity) error { return ErrLocked }

func busy(_ string, err error) error { return err }

// UseOf says what a block device is in use for; this system does not tell.
func UseOf(string) string { return "" }
