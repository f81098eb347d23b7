package disk

import (
	"math/rand/v2"
	"testing"

	"tansy/test/kit/replay"
)

// TestThere: the runs that are there are those of the layout, cut at both ends, also within other Disks; all of a Disk
// that is no Pieced is.
func TestThere(t *testing.T) {
	r := rand.New(rand.NewPCG(replay.Seed(t), 0))
	for range 200 {
		const size = 60
		there := make([]bool, size)
		for i := range there {
			there[i] = r.IntN(3) > 0
		}
		locate := func(a uint64) (bool, uint64, uint64) { return there[a], a, 1 }
		p := NewPieced(NewMem(size*BlockSize), size, locate)
		prefix := NewPrefix(p, size-5)
		for d, end := range map[Disk]uint64{p: size, NewStats(p): size, prefix: size - 5} {
			from, to := r.Uint64N(size+5), r.Uint64N(size+5)
			want, got := map[uint64]bool{}, map[uint64]bool{}
			for a := from; a < min(to, end); a++ {
				if there[a] {
					want[a] = true
				}
			}
			for lo, hi := range There(d, from, to) {
				for a := lo; a < hi; a++ {
					if got[a] {
						t.Errorf("block %d is there twice", a)
					}
					got[a] = true
				}
			}
			if len(got) != len(want) || CountThere(d, from, to) != uint64(len(want)) {
				t.Errorf("blocks %d to %d of %v: %v, want %v", from, to, there, got, want)
			}
			for a := range got {
				if !want[a] {
					t.Errorf("block %d is not there", a)
				}
			}
			for range There(d, 0, size) {
				break
			}
		}
	}
	d := NewMem(10 * BlockSize)
	if n := CountThere(d, 3, 20); n != 7 {
		t.Errorf("%d of 7 blocks of a Disk that has all are there", n)
	}
	if n := CountThere(d, 8, 3); n != 0 {
		t.Errorf("%d blocks are there before the first one", n)
	}
}
