package seal

import (
	"math/rand/v2"
	"testing"

	"tansy/internal/runtime/dbytes"
)

func randomBlk(r *rand.Rand) *dbytes.Blk {
	b := make([]byte, dbytes.BlkSize)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return dbytes.BlkOf(b)
}

// TestCode: a code is the same for the same node and contents, in every epoch and opening, and another one for
// other contents, nodes, and keys.
func TestCode(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	s := New([32]byte{1}, [16]byte{1}, 0)
	seen := map[[2]uint64]int{}
	for i := range 1000 {
		x, b := r.Uint64(), randomBlk(r)
		c0, c1 := s.Code(x, b)
		s.NewEpoch()
		if d0, d1 := New([32]byte{1}, [16]byte{2}, 0).Code(x, b); d0 != c0 || d1 != c1 {
			t.Fatal("another code for the same block, of another opening")
		}
		if d0, d1 := s.Code(x, b); d0 != c0 || d1 != c1 {
			t.Fatal("another code for the same block, in another epoch")
		}
		for _, other := range []func() (uint64, uint64){
			func() (uint64, uint64) { return s.Code(x, flip(b, r.IntN(8*dbytes.BlkSize))) },
			func() (uint64, uint64) { return s.Code(x^1<<r.IntN(64), b) },
			func() (uint64, uint64) { return New([32]byte{2}, [16]byte{1}, 0).Code(x, b) },
		} {
			c0, c1 := other()
			seen[[2]uint64{c0, c1}]++
		}
		seen[[2]uint64{c0, c1}]++
		if n := len(seen); n != 4*(i+1) {
			t.Fatalf("two codes of %d are the same", 4*(i+1))
		}
	}
}

func BenchmarkCode(b *testing.B) {
	s := New([32]byte{1}, [16]byte{1}, 0)
	blk := dbytes.ZeroBlk()
	b.SetBytes(dbytes.BlkSize)
	b.ReportAllocs()
	for i := range b.N {
		s.Code(uint64(i), blk)
	}
}
