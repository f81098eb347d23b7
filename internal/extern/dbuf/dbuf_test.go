package dbuf

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"tansy/internal/extern/dbytes"
	"tansy/internal/replay"
)

// TestParts: each block counts once, those written as a whole do not.
func TestParts(t *testing.T) {
	b := NewBuf()
	for n := range uint64(100) {
		if got := b.Parts(); got != int(n) {
			t.Fatalf("%d, want %d", got, n)
		}
		a := n * 37 % 100 // not in order
		b.PutBytes(a*blockBits, dbytes.NewBytes(256))
		b.PutBit((n/2*74%100)*blockBits+32767, true) // one that was there
		b.PutBlk((200+a)*blockBits, dbytes.ZeroBlk())
	}
}

// TestDeclarations compares random calls with a plain map, the ghost state of
// buf.s.dfy. Key k stands for a block, bytes or a bit by its remainder mod 3.
func TestDeclarations(t *testing.T) {
	seed := replay.Seed(t)
	r := rand.New(rand.NewPCG(seed, 0))
	b := NewBuf()
	for range 30 {
		m := map[uint64][]byte{}
		n := 1 + r.IntN(60)
		for range 200 {
			k := uint64(r.IntN(n) * 77 % 61)
			v := make([]byte, []int{4096, 256, 1}[k%3])
			for i := range v {
				v[i] = byte(r.Uint32()) & 1
			}
			old, in := m[k]
			switch write := r.IntN(2) == 0; k % 3 {
			case 0:
				if x := b.GetBlk(k); (x != nil) != in || in && !bytes.Equal(x.Data(), old) {
					t.Fatal("GetBlk")
				}
				if write {
					b.PutBlk(k, dbytes.BlkOf(v))
					m[k] = v
				}
			case 1:
				x, was := dbytes.NewBytes(256), make([]byte, 256)
				for i := range x.Data {
					x.Data[i] = byte(i)
				}
				copy(was, x.Data)
				if in {
					was = old
				}
				if b.GetBytes(k, x) != in || !bytes.Equal(x.Data, was) {
					t.Fatal("GetBytes")
				}
				x.Data[0]++ // it is the caller's
				if write {
					w := &dbytes.Bytes{Data: slices.Clone(v)}
					b.PutBytes(k, w)
					w.Data[3]++ // so is this
					m[k] = v
				}
			case 2:
				if found, x := b.GetBit(k); found != in || in && x != (old[0] == 1) {
					t.Fatal("GetBit")
				}
				if write {
					b.PutBit(k, v[0] == 1)
					m[k] = v
				}
			}
			if b.Len() != uint64(len(m)) {
				t.Fatal("Len")
			}
			if r.IntN(20) == 0 {
				b.Sort()
			}
		}
		b.Sort()
		var keys []uint64
		for i := range b.Len() {
			k := b.KeyAt(i)
			keys = append(keys, k)
			blk := b.BlkAt(i)
			is, bit := b.BitAt(i)
			if (blk != nil) != (k%3 == 0) || is != (k%3 == 2) {
				t.Fatal("BlkAt or BitAt: kind")
			}
			switch k % 3 {
			case 0:
				if !bytes.Equal(blk.Data(), m[k]) {
					t.Fatal("BlkAt")
				}
			case 1:
				w := dbytes.NewBytes(300)
				b.CopyAt(i, w, 40)
				if !bytes.Equal(w.Data[40:296], m[k]) || !bytes.Equal(w.Data[:40], make([]byte, 40)) || !bytes.Equal(w.Data[296:], make([]byte, 4)) {
					t.Fatal("CopyAt")
				}
			case 2:
				if bit != (m[k][0] == 1) {
					t.Fatal("BitAt")
				}
			}
		}
		if !slices.IsSorted(keys) || len(keys) != len(m) || len(slices.Compact(keys)) != len(m) {
			t.Fatal("Sort")
		}
		for _, k := range keys {
			if _, ok := m[k]; !ok {
				t.Fatal("a key from nowhere")
			}
		}
		b.Clear()
		if b.Len() != 0 {
			t.Fatal("Clear")
		}
	}
}
