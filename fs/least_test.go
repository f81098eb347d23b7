package fs

import (
	"errors"
	"strings"
	"testing"
)

// The size that is told to be the least one is: with a block less it is too small.
func TestLeast(t *testing.T) {
	above := uint64(3000)
	if testing.Short() {
		above = 300
	}
	for _, o := range []MkfsOptions{
		{}, {Inodes: 1_000_000}, {LogBytes: 5 << 20}, {LogBytes: 64 << 20}, {Replies: 100_000},
		{LogBytes: 1 << 30, Inodes: 100_000_000, Replies: 4096},
		{MaxBytes: 1 << 40}, {MaxBytes: 16 << 40, Inodes: 1_000_000},
	} {
		_, err := plan(1, o)
		e := new(TooSmallError)
		if !errors.As(err, &e) || !errors.Is(err, ErrOptions) || e.Bytes != BlockSize || e.Least%BlockSize != 0 {
			t.Fatalf("%+v: %v", o, err)
		}
		n := e.Least / BlockSize
		for _, size := range []uint64{2, n / 8, n / 2, n - 100, n - 2, n - 1} {
			if _, err := plan(size, o); !errors.As(err, &e) || e.Least != n*BlockSize {
				t.Errorf("%+v, %d blocks: %v, want %d as the least", o, size, err, n)
			}
		}
		for size := n; size < n+above; size++ {
			if _, err := plan(size, o); err != nil {
				t.Errorf("%+v, %d blocks: %v, but the least are %d", o, size, err, n)
				break
			}
		}
	}
}

// TestLeastInodes: fewer inodes than the procedures need are refused, also of a volume that may grow.
func TestLeastInodes(t *testing.T) {
	for _, o := range []MkfsOptions{{Inodes: inodesLeast}, {Inodes: inodesLeast, MaxBytes: 1 << 40}} {
		if _, err := plan(6000, o); err != nil {
			t.Errorf("%+v: %v", o, err)
		}
		o.Inodes--
		if _, err := plan(6000, o); !errors.Is(err, ErrOptions) || !strings.Contains(err.Error(), "too few") {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// With options that no size is enough for, none is told.
func TestLeastNone(t *testing.T) {
	for _, o := range []MkfsOptions{{Inodes: 1 << 60}, {LogBytes: 1 << 62}, {Replies: 1 << 62}} {
		_, err := plan(6000, o)
		if e := new(TooSmallError); err == nil || errors.As(err, &e) && e.Least != 0 {
			t.Errorf("%+v: %v", o, err)
		}
	}
}
