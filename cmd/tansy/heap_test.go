package main

import (
	"testing"

	tansyfs "tansy/fs"
)

// What is lent never comes to more than what the caches do not use, nor than its bound.
func TestLent(t *testing.T) {
	for _, unused := range []uint64{0, 1, 4096, 1 << 20, 1 << 40} {
		if n := lent(unused); n < 0 || uint64(n) > unused || n > maxLent {
			t.Errorf("%d bytes of %d", n, unused)
		}
	}
	if lent(1<<40) != maxLent {
		t.Error("nothing is lent")
	}
}

// Go may have what moments take, and nothing when there are none.
func TestOfMoments(t *testing.T) {
	for n, m := range map[int64]tansyfs.Moments{
		0: {}, perMoment: {Open: 1, File: 1 << 30}, 2*perMoment + 1<<20: {Open: 2, Memory: 1 << 20},
	} {
		if got := ofMoments(m); got != n {
			t.Errorf("%+v: %d, not %d", m, got, n)
		}
	}
}
