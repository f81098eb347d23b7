package fs_test

import (
	"testing"

	"tansy/fs"
)

// TestLimit: a page has room for what it may have in all, and for its first entry however little may be of names.
func TestLimit(t *testing.T) {
	size, names := func(n int) int { return 100 + n }, func(n int) int { return 10 + n }
	for _, x := range []struct {
		lim   fs.Limit
		takes string // of names of 5 bytes, and at the end one of 1
	}{
		{fs.Limit{Bytes: 314, Size: size}, "yyny"},
		{fs.Limit{Bytes: 310, Size: size}, "yynn"},
		{fs.Limit{Bytes: 104, Size: size}, "nnny"},
		{fs.Limit{}, "yyyy"},
		{fs.Limit{Bytes: -1, Size: func(int) int { return 0 }}, "nnnn"},
		{fs.Limit{Bytes: 1000, Size: size}, "yyyy"},
		{fs.Limit{Bytes: 1000, Size: size, DirSize: names}, "ynnn"},
		{fs.Limit{Bytes: 1000, Size: size, DirBytes: 30, DirSize: names}, "yynn"},
		{fs.Limit{Bytes: 1000, Size: size, DirBytes: 41, DirSize: names}, "yyny"},
		{fs.Limit{Bytes: 104, Size: size, DirBytes: 41, DirSize: names}, "nnny"},
	} {
		got, lim := "", x.lim
		for _, n := range []int{5, 5, 5, 1} {
			if lim.Take(n) {
				got += "y"
			} else {
				got += "n"
			}
		}
		if got != x.takes {
			t.Errorf("%d bytes, %d of names: %s, want %s", x.lim.Bytes, x.lim.DirBytes, got, x.takes)
		}
	}
}
