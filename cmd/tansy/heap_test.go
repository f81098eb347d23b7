package main

import "testing"

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
