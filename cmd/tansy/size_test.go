package main

import "testing"

func TestByteSize(t *testing.T) {
	for text, want := range map[string]uint64{
		"0": 0, "4096": 4096, "1K": 1 << 10, "10g": 10 << 30, "3GiB": 3 << 30, "7MB": 7 << 20, "16T": 16 << 40,
	} {
		var s byteSize
		if err := s.Set(text); err != nil || uint64(s) != want {
			t.Errorf("%q is %d (%v), want %d", text, s, err, want)
		}
	}
	for _, text := range []string{"", "G", "-1", "1.5G", "10X", "99999999999T", "0x10"} {
		if err := new(byteSize).Set(text); err == nil {
			t.Errorf("%q is taken for a size", text)
		}
	}
	for _, n := range []uint64{0, 1, 1 << 10, 10 << 30, 1<<30 + 1} {
		s := byteSize(n)
		var back byteSize
		if err := back.Set(s.String()); err != nil || back != s {
			t.Errorf("%d prints as %q, which reads as %d (%v)", n, s.String(), back, err)
		}
	}
}
