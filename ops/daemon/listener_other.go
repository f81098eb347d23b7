//go:build !linux

package daemon

// taken is the error of an address that is in use; this system does not tell by whom.
func taken(_ int, err error) error { return err }
