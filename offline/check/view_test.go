package check

import (
	"bytes"
	"slices"
	"testing"

	"tansy/disk"
)

// A scan passes over what is known to be zeros, but not over what the log has, or what
// is needed.
func TestScan(t *testing.T) {
	block := func(x byte) []byte { return bytes.Repeat([]byte{x}, disk.BlockSize) }
	d := disk.NewMem(100_000 * disk.BlockSize)
	put(t, d, 5, block(5))
	put(t, d, 70_000, block(70))
	put(t, d, 70_002, block(72))
	v := newView(d, map[uint64][]byte{5: block(6), 30_000: block(30), 70_001: block(71), 99_999: block(99)})
	needed := []uint64{40_000, 70_000}
	need := func(a uint64) uint64 {
		for _, b := range needed {
			if a <= b {
				return b
			}
		}
		return ^uint64(0)
	}
	want := map[uint64]byte{5: 6, 30_000: 30, 40_000: 0, 70_000: 70, 70_001: 71, 70_002: 72}
	var before, seen uint64
	err := v.scan(3, 99_999, need, func(a uint64, buf []byte) error {
		if seen++; seen > 1 && a <= before || a >= 99_999 {
			t.Errorf("block %d after %d", a, before)
		}
		before = a
		if !bytes.Equal(buf, block(want[a])) {
			t.Errorf("block %d has %d", a, buf[0])
		}
		delete(want, a)
		return nil
	})
	if err != nil || len(want) > 0 || seen > 300 {
		t.Errorf("%d blocks seen, %v not among them: %v", seen, want, err)
	}

	var lost []uint64
	v = newView(badBlocks(d, 7, 70_000, 70_001), map[uint64][]byte{70_001: block(71)})
	if err := v.scan(0, 80_000, nil, func(a uint64, buf []byte) error {
		if buf == nil {
			lost = append(lost, a)
		}
		return nil
	}); err != nil || !slices.Equal(lost, []uint64{7, 70_000}) {
		t.Errorf("lost %v, %v", lost, err)
	}
}

func TestBitset(t *testing.T) {
	s := newBitset(10_000_000)
	if _, ok := s.next(0); ok {
		t.Error("an empty set has a member")
	}
	members := []uint64{0, 63, 64, 32767, 32768, 1_000_000, 9_999_999}
	for _, x := range members {
		if !s.add(x) || s.add(x) || !s.has(x) {
			t.Errorf("%d is not added once", x)
		}
		if got, ok := s.next(x); !ok || got != x {
			t.Errorf("next(%d) = %d, %v", x, got, ok)
		}
	}
	for i, x := range members[1:] {
		if got, ok := s.next(members[i] + 1); !ok || got != x {
			t.Errorf("next(%d) = %d, %v, want %d", members[i]+1, got, ok, x)
		}
	}
	s.addWord(128, 1<<5|1)
	s.addWord(1_000_000&^63, s.word(1_000_000&^63))
	if got, _ := s.next(65); got != 128 || s.n != uint64(len(members)+2) {
		t.Errorf("next(65) = %d of %d", got, s.n)
	}
	if got := s.nextBlock(101, 100, 64); got != 101 {
		t.Errorf("nextBlock = %d", got)
	}
	if got := s.nextBlock(103, 100, 64); got != 100+32767/64 {
		t.Errorf("nextBlock = %d", got)
	}
	if _, ok := s.next(10_000_000); ok {
		t.Error("a member behind the last")
	}
}
