package dtxn

import (
	"slices"
	"testing"
)

// emptyMap is a bitmap of one block with the bits below used set.
func emptyMap(used uint64) *alloc {
	a := newAlloc(Bitmap{First: 1, Limit: 3 * Piece}, func(uint64) ([]byte, error) {
		b := make([]byte, windowBits/8)
		for x := range used {
			b[x/8] |= 1 << (x % 8)
		}
		return b, nil
	})
	a.unspare = func() {}
	return a
}

func mustTake(t *testing.T, a *alloc, near uint64) uint64 {
	t.Helper()
	x, ok, err := a.take(near)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	return x
}

// What is held is the free bits of the piece in runs that are long enough, and is handed out last: only after
// zeros written there need room again.
func TestHold(t *testing.T) {
	a := emptyMap(Piece + 10)
	alone := mustTake(t, a, Piece+13) // in the way: Piece+14
	var spare []Run
	runs, err := a.hold(Piece, 5, func(r Run) { spare = append(spare, r) })
	want := []Run{{Piece + 15, 2 * Piece}}
	if err != nil || !slices.Equal(runs, want) || !slices.Equal(spare, want) {
		t.Fatalf("%v, %v, %v; want %v", runs, spare, err, want)
	}
	took := []uint64{alone}
	for range 4 + Piece { // those that are not held: the short run, and the last piece
		x := mustTake(t, a, Piece+10)
		if want[0].Start <= x && x < want[0].End {
			t.Fatalf("%d was handed out and is held", x)
		}
		took = append(took, x)
	}
	calls := 0
	a.unspare = func() {
		if calls++; a.holding() != Piece-15 {
			t.Errorf("%d are held", a.holding())
		}
	}
	for range Piece - 15 {
		took = append(took, mustTake(t, a, 0))
	}
	if calls != 1 || a.holding() != 0 {
		t.Errorf("%d calls, %d held", calls, a.holding())
	}
	if x, ok, err := a.take(0); ok || err != nil {
		t.Error(x, err)
	}
	slices.Sort(took)
	if len(slices.Compact(took)) != 2*Piece-10 {
		t.Error("a bit was handed out twice")
	}
	a.done(took, nil)
	if n, err := a.count(); err != nil || n != 2*Piece-10 {
		t.Errorf("%d are free: %v", n, err)
	}
}

// A search within bounds gets what is held there, too; and what is let go of can be held again.
func TestHoldWithin(t *testing.T) {
	a := emptyMap(0)
	for range 2 {
		if runs, err := a.hold(0, 1, func(Run) {}); err != nil || !slices.Equal(runs, []Run{{1, Piece}}) {
			t.Fatal(runs, err)
		}
		if runs, err := a.hold(0, 1, func(Run) {}); err != nil || runs != nil {
			t.Fatal("held twice: ", runs, err)
		}
		x, ok, err := a.takeIn(20, 30)
		if !ok || err != nil || x != 20 {
			t.Fatal(x, ok, err)
		}
		a.giveBack(x)
	}
	if runs, err := a.hold(3*Piece, 1, func(Run) {}); err != nil || runs != nil {
		t.Error("beyond the end: ", runs, err)
	}
}

// What is held stays so when the bitmap is too large to be kept whole.
func TestHoldKeepsWindow(t *testing.T) {
	a := newAlloc(Bitmap{First: 1, Limit: 2 * maxWindows * windowBits},
		func(uint64) ([]byte, error) { return make([]byte, windowBits/8), nil })
	let := 0
	a.unspare = func() { let++ }
	runs, err := a.hold(Piece, 1, func(Run) {})
	if err != nil || len(runs) != 1 {
		t.Fatal(runs, err)
	}
	for w := uint64(1); w < 2*maxWindows; w++ {
		mustTake(t, a, w*windowBits)
	}
	if x := mustTake(t, a, Piece-2); x != Piece-1 {
		t.Errorf("%d was handed out", x)
	}
	if x := mustTake(t, a, Piece-1); x != 2*Piece || let != 0 {
		t.Errorf("%d was handed out, beside %v, which are held", x, runs)
	}
}

// Freed names the pieces in which committed transactions have freed something, once.
func TestFreed(t *testing.T) {
	s := NewMem(size, layout)
	defer s.Close()
	x, _ := take(t, s, Blocks, 0)
	free(t, s, Blocks, x)
	if ps := s.Freed(); ps != nil { // nobody had asked
		t.Error(ps)
	}
	y, _ := take(t, s, Blocks, 0)
	free(t, s, Blocks, y)
	s.Run(false, false, func(t *Txn) error { // nothing comes of this
		t.WriteBit(layout.Maps[Blocks].Start, 0, false)
		return ErrDamaged
	})
	if ps := s.Freed(); !slices.Equal(ps, []uint64{y / Piece}) {
		t.Error(ps)
	}
	if ps := s.Freed(); ps != nil {
		t.Error(ps)
	}
}
