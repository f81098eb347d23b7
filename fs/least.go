package fs

import (
	"errors"
	"fmt"

	"tansy/internal/gen/fs/mkfs/making"
	"tansy/journal"
)

// ErrOptions is wrapped by an error of Mkfs about sizes or numbers that no volume can have. Nothing was written.
var ErrOptions = errors.New("no such volume can be made")

// TooSmallError is the error of Mkfs for a device that is too small for the options. It wraps ErrOptions.
type TooSmallError struct {
	Bytes, Journal, Inodes uint64 // of the device, and what it has to have room for beside data; sizes in bytes
	Least                  uint64 // bytes, a multiple of BlockSize, that are enough with the same options; 0: not known
}

func (e *TooSmallError) Error() string {
	s := fmt.Sprintf("%d bytes are too few for a journal of %d bytes, %d inodes, and data", e.Bytes, e.Journal, e.Inodes)
	if e.Least == 0 {
		return s
	}
	return fmt.Sprintf("%s: it takes at least %d", s, e.Least)
}

// Unwrap returns ErrOptions.
func (e *TooSmallError) Unwrap() error { return ErrOptions }

// tooLargeError is the error of Mkfs for a volume that would be too large: what, and what is possible.
type tooLargeError string

func (e tooLargeError) Error() string { return string(e) }

// Unwrap returns ErrOptions, and the journal's own error for its part.
func (e tooLargeError) Unwrap() []error { return []error{ErrOptions, journal.ErrParams} }

// leastBytes is the size of the smallest device on which a volume with these options can be made, in bytes; 0 if there
// is none, or it is a giant.
func leastBytes(o MkfsOptions) uint64 {
	high := uint64(2)
	for !fits(high, o) {
		if high *= 2; high > journal.MaxSize {
			return 0
		}
	}
	low := high / 2 // which does not fit
	for low+1 < high {
		if middle := low + (high-low)/2; fits(middle, o) {
			high = middle
		} else {
			low = middle
		}
	}
	return high * BlockSize
}

// fits tells whether a volume with these options can be made on a device of so many blocks.
func fits(size uint64, o MkfsOptions) bool {
	if o.grows(size) {
		_, err := begin(size, o)
		return err == nil
	}
	log, inodes, replies := amounts(size, o)
	why, _ := making.Plan(size, log, inodes, replies, 0, 0, 0, 0, 0, 0, 0, 0)
	return why == 0
}
