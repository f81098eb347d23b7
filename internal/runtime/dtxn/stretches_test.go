package dtxn

import (
	"math/rand"
	"testing"

	"tansy/disk"
	"tansy/test/kit/replay"
)

// overwriter writes files over and over in an allocator, and keeps where their blocks are.
type overwriter struct {
	t  *testing.T
	a  *alloc
	at map[piece]uint64 // by owner and block
}

func newOverwriter(t *testing.T) *overwriter {
	a := newAlloc(Bitmap{First: 10, Limit: 3 * rotorSpan, Start: 0},
		func(uint64) ([]byte, error) { return make([]byte, disk.BlockSize), nil })
	return &overwriter{t, a, map[piece]uint64{}}
}

// write writes n blocks of a file over, from block b on: those that it had are free then.
func (w *overwriter) write(owner, b, n uint64) {
	w.t.Helper()
	near := uint64(20)
	var old []uint64
	for i := b; i < b+n; i++ {
		x, ok, err := w.a.exchange(place{owner, near, i, true}, 0)
		if err != nil || !ok {
			w.t.Fatal(ok, err)
		}
		at := piece{owner, i}
		if o := w.at[at]; o != 0 {
			old = append(old, o)
		}
		w.at[at], near = x, x
	}
	for _, x := range old {
		w.a.giveBack(x)
	}
}

// runs is how many runs the file's blocks [lo, hi) lie in.
func (w *overwriter) runs(owner, lo, hi uint64) (n int) {
	for i := lo; i < hi; i++ {
		if i == lo || w.at[piece{owner, i}] != w.at[piece{owner, i - 1}]+1 {
			n++
		}
	}
	return n
}

// What is written over in order, but for the order of the WRITEs under way, lies as it does in the file, and each block
// is one's alone.
func TestStretches(t *testing.T) {
	const blocks, unit, window = 32 * stretchBits, 16, 16
	r := rand.New(rand.NewSource(int64(replay.Seed(t))))
	w := newOverwriter(t)
	for pass := range 12 {
		var under []uint64
		for b := uint64(0); b < blocks || len(under) > 0; {
			if b < blocks && len(under) < window {
				under = append(under, b)
				b += unit
				continue
			}
			i := r.Intn(len(under))
			w.write(7, under[i], unit)
			under = append(under[:i], under[i+1:]...)
		}
		if n := w.runs(7, 0, blocks); pass > 0 && n > 2*blocks/stretchBits { // without stretches several hundred
			t.Errorf("pass %d: %d blocks in %d runs", pass, blocks, n)
		}
		taken := map[uint64]bool{}
		for at, x := range w.at {
			if taken[x] {
				t.Fatalf("%v: %d is handed out twice", at, x)
			}
			taken[x] = true
		}
	}
}

// Files that are written over at the same time go on behind each other, as if there were no stretches.
func TestStretchesOfOne(t *testing.T) {
	w := newOverwriter(t)
	for b := uint64(0); b < 4*rotorRecent; b += 16 {
		for owner := uint64(1); owner <= 4; owner++ {
			w.write(owner, b, 16)
		}
	}
	lo, hi := ^uint64(0), uint64(0)
	for _, x := range w.at {
		lo, hi = min(lo, x), max(hi, x)
	}
	if n := uint64(len(w.at)); hi-lo+1 != n {
		t.Errorf("%d blocks lie among %d", n, hi-lo+1)
	}
}

// What is written here and there takes not much more room on the way round than it has blocks: it would be three and a
// half times as much.
func TestStretchesHereAndThere(t *testing.T) {
	const blocks, unit = 32 * stretchBits, 16
	r := rand.New(rand.NewSource(int64(replay.Seed(t))))
	w := newOverwriter(t)
	round, last := uint64(0), uint64(0)
	const n = 4096
	for range n {
		w.write(7, uint64(r.Intn(blocks/unit))*unit, unit)
		at := w.a.rotors[0]
		if at < last {
			at += rotorSpan
		}
		round, last = round+at-last, at%rotorSpan
	}
	if round > 5*n*unit/2 {
		t.Errorf("%d blocks went round %d", n*unit, round)
	}
}

// Who has no stretch does not run on into another's.
func TestStretchBegins(t *testing.T) {
	w := newOverwriter(t)
	s := w.a.stretches.note(piece{1, 1})
	s.base = 128
	if !w.a.stretches.begins(128) || w.a.stretches.begins(129) || w.a.stretches.begins(192) {
		t.Error("a stretch begins elsewhere")
	}
	w.a.turned(127, 128+stretchBits-1)
	if x, _, _ := w.a.exchange(place{near: 127}, 0); x != 128+stretchBits {
		t.Errorf("behind the bit before a stretch: %d", x)
	}
	for i := range uint64(2 * maxStretches) {
		w.a.stretches.note(piece{2, i})
	}
	if n := len(w.a.stretches.of); n > maxStretches {
		t.Errorf("%d pieces are remembered", n)
	}
}

// Who goes on behind what it was given a moment ago does not turn the others back to there.
func TestRotorStays(t *testing.T) {
	w := newOverwriter(t)
	w.a.turned(20, 1000)
	for _, c := range []struct{ near, x uint64 }{{20, 1001}, {600, 601}, {601, 602}, {9000, 1002}} {
		if x, _, _ := w.a.exchange(place{near: c.near}, 0); x != c.x {
			t.Errorf("near %d: %d, not %d", c.near, x, c.x)
		}
	}
}

// A wish from a damaged volume, for a place that is not there, does no harm where there is little room.
func TestStretchAtNoPlace(t *testing.T) {
	w := newOverwriter(t)
	for b := uint64(0); b < 4*stretchBits; b += 16 {
		w.write(7, b, 16)
	}
	for i := range w.a.free {
		w.a.free[i] = 1
	}
	for _, near := range []uint64{3 * rotorSpan, 3*rotorSpan - 1, 1 << 60, ^uint64(0)} {
		for b := range uint64(4 * stretchBits) {
			if x, ok, err := w.a.exchange(place{7, near, b, true}, 0); err != nil || ok && x >= w.a.limit {
				t.Fatalf("near %d: %d, %v", near, x, err)
			}
		}
	}
}
