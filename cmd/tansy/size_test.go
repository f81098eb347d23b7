package main

import (
	"strings"
	"testing"
)

func TestByteSize(t *testing.T) {
	for text, want := range map[string]uint64{
		"0": 0, "4096": 4096, "1K": 1 << 10, "10g": 10 << 30, "3GiB": 3 << 30, "7MB": 7 << 20, "16T": 16 << 40,
		"1.5T": 3 << 39, "0.5k": 512, "2E": 2 << 60, "7.5E": 15 << 59, "3P": 3 << 50, "1.0": 1, ".5M": 1 << 19, "1.M": 1 << 20,
		"10 GiB": 10 << 30, "10GB": 10 << 30, "10 g": 10 << 30, "10gi": 10 << 30, " 1.5 TiB ": 3 << 39, "4096 bytes": 4096, "512B": 512,
		"0.1G": 107372544, "0.0001K": 0, // whole blocks, rounded down
	} {
		var s byteSize
		if err := s.Set(text); err != nil || uint64(s) != want {
			t.Errorf("%q is %d (%v), want %d", text, s, err, want)
		}
	}
	for _, text := range []string{"", "G", "-1", "1.5", "10X", "99999999999T", "8E", "0x10", "1e3", "1/2", "1_0", "1.2.3", ".", "+1", "Inf", "10I", "10IB", "1 0", "10 G G", "10 BG", "B", strings.Repeat("1", 1000)} {
		if err := new(byteSize).Set(text); err == nil {
			t.Errorf("%q is taken for a size", text)
		}
	}
	for _, n := range []uint64{0, 1, 1 << 10, 10 << 30, 1<<30 + 1, 1 << 60, 3 << 50, 3 << 59} {
		s := byteSize(n)
		var back byteSize
		if err := back.Set(s.String()); err != nil || back != s {
			t.Errorf("%d prints as %q, which reads as %d (%v)", n, s.String(), back, err)
		}
	}
}
