package disk

import (
	"math/rand/v2"
	"testing"

	"tansy/test/kit/replay"
)

// A set of blocks has what a plain one has, also where pieces become full or empty, and at its end.
func TestBlockSet(t *testing.T) {
	r := rand.New(rand.NewPCG(replay.Seed(t), 0))
	for _, size := range []uint64{0, 1, 64, 1000, setBlocks - 1, setBlocks, setBlocks + 1, 3*setBlocks + 77} {
		s, want := newBlockSet(size), make([]bool, size)
		for range 60 {
			a := r.Uint64N(size + 1)
			end := a + r.Uint64N(size-a+1)
			if r.IntN(3) == 0 { // whole pieces
				a, end = a/setBlocks*setBlocks, (end+setBlocks-1)/setBlocks*setBlocks
			}
			in := r.IntN(2) == 0
			if in {
				s.add(a, end)
			} else {
				s.drop(a, end)
			}
			for b := a; b < min(end, size); b++ {
				want[b] = in
			}
			compareSet(t, r, &s, want)
		}
	}
	if *full != *newFull() {
		t.Error("the piece that all sets share was written")
	}
}

func newFull() *setPiece {
	p := new(setPiece)
	for i := range p {
		p[i] = ^uint64(0)
	}
	return p
}

// compareSet compares s with what it is to have: here and there, and all of it by next.
func compareSet(t *testing.T, r *rand.Rand, s *blockSet, want []bool) {
	t.Helper()
	size := uint64(len(want))
	for range min(size, 50) {
		if a := r.Uint64N(size); s.has(a) != want[a] {
			t.Fatalf("of %d blocks it has %d: %v", size, a, s.has(a))
		}
	}
	for _, in := range []bool{true, false} {
		at := s.next(0, size, in)
		for a := range size {
			if want[a] == in {
				if at != a {
					t.Fatalf("of %d blocks the next is %d (in: %v), not %d", size, at, in, a)
				}
				if end := a + 1 + r.Uint64N(size-a); s.next(a+1, end, in) != min(end, s.next(a+1, size, in)) {
					t.Fatalf("of %d blocks the next from %d on before %d is %d (in: %v)", size, a+1, end,
						s.next(a+1, end, in), in)
				}
				at = s.next(a+1, size, in)
			}
		}
		if at != size {
			t.Fatalf("of %d blocks the next is %d (in: %v), not the end", size, at, in)
		}
	}
}

// TestBlockSetLooksNoFurther looks for a block in the first piece of a set that has no others.
func TestBlockSetLooksNoFurther(t *testing.T) {
	for _, p := range []*setPiece{nil, full, new(setPiece), newFull()} {
		s := blockSet{3 * setBlocks, []*setPiece{p}}
		for _, in := range []bool{true, false} {
			want := uint64(100)
			if (p != nil && p[0] != 0) == in {
				want = 50
			}
			if at := s.next(50, 100, in); at != want {
				t.Errorf("the next (in: %v) is %d, not %d", in, at, want)
			}
		}
	}
}
