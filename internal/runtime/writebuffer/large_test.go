package writebuffer_test

import (
	"math/rand/v2"
	"testing"

	"tansy/internal/gen/txn/bufferm"
	"tansy/internal/runtime/writebuffer"
)

// TestLarge: a buffer beyond the size that Clear keeps, and what comes after it.
func TestLarge(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 0))
	b := writebuffer.NewBuf()
	for _, n := range []int{10000, 5, 20, 5000, 0, 13} {
		b.Clear()
		if b.Len() != 0 {
			t.Fatal("Clear")
		}
		keys := r.Perm(n)
		for _, k := range keys {
			if found, _ := bufferm.BufferedBit(b, uint64(k)); found {
				t.Fatalf("%d: key %d is there before it is put", n, k)
			}
			bufferm.BufferBit(b, uint64(k), k%3 == 1)
			bufferm.BufferBit(b, uint64(k), k%3 == 0)
		}
		for _, k := range keys {
			if found, v := bufferm.BufferedBit(b, uint64(k)); !found || v != (k%3 == 0) {
				t.Fatalf("%d: key %d: %v %v", n, k, found, v)
			}
		}
		if found, _ := bufferm.BufferedBit(b, uint64(n)); found || b.Len() != uint64(n) {
			t.Fatalf("%d: length %d", n, b.Len())
		}
		for i := range uint64(n) {
			if is, v := b.BitAt(i); b.KeyAt(i) != i || !is || v != (i%3 == 0) {
				t.Fatalf("%d: object %d", n, i)
			}
		}
	}
}
