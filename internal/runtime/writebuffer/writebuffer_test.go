package writebuffer

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"tansy/internal/runtime/dbytes"
	"tansy/test/kit/replay"
)

// TestParts: each block counts once, those written as a whole do not.
func TestParts(t *testing.T) {
	b := NewBuf()
	add := func(k uint64) (i uint64) {
		i, found := find(b, k)
		if !found {
			b.Add(i, k)
		}
		return i
	}
	for n := range uint64(100) {
		if got := b.Parts(); got != int(n) {
			t.Fatalf("%d, want %d", got, n)
		}
		a := n * 37 % 100 // not in order
		b.SetBytes(add(a*blockBits), dbytes.NewBytes(256))
		b.SetBit(add((n/2*74%100)*blockBits+32767), true) // one that was there
		b.SetBlk(add((200+a)*blockBits), dbytes.ZeroBlk())
	}
}

// find is the place of key k, or where it belongs.
func find(b *Buf, k uint64) (uint64, bool) {
	var keys []uint64
	for i := range b.Len() {
		keys = append(keys, b.KeyAt(i))
	}
	i, found := slices.BinarySearch(keys, k)
	return uint64(i), found
}

// TestDeclarations compares random calls with a plain list of keys and a map, the ghost state of writebuffer.s.dfy.
func TestDeclarations(t *testing.T) {
	seed := replay.Seed(t)
	r := rand.New(rand.NewPCG(seed, 0))
	b := NewBuf()
	random := func(n int) []byte {
		v := make([]byte, n)
		for i := range v {
			v[i] = byte(r.Uint32())
		}
		return v
	}
	var order []uint64
	for k := range uint64(100) { // places need not be in the order of keys
		i := r.IntN(len(order) + 1)
		order = slices.Insert(order, i, k)
		b.Add(uint64(i), k)
	}
	for i, k := range order {
		if b.KeyAt(uint64(i)) != k {
			t.Fatal("Add")
		}
	}
	b.Clear()
	for range 30 {
		var keys []uint64
		m := map[uint64][]byte{}
		for range 200 {
			if k := uint64(r.IntN(1 + r.IntN(60))); !slices.Contains(keys, k) {
				i := 0
				for i < len(keys) && keys[i] < k {
					i++
				}
				keys, m[k] = slices.Insert(keys, i, k), nil
				b.Add(uint64(i), k)
				b.SetBit(uint64(i), false)
				m[k] = []byte{0}
			}
			i := uint64(r.IntN(len(keys)))
			switch k := keys[i]; r.IntN(3) {
			case 0:
				m[k] = random(4096)
				b.SetBlk(i, dbytes.BlkOf(slices.Clone(m[k])))
			case 1:
				m[k] = random(256)
				w := &dbytes.Bytes{Data: slices.Clone(m[k])}
				b.SetBytes(i, w)
				w.Data[3]++ // it is the caller's
			case 2:
				m[k] = []byte{byte(r.IntN(2))}
				b.SetBit(i, m[k][0] == 1)
			}
			if b.Len() != uint64(len(keys)) {
				t.Fatal("Len")
			}
			i = uint64(r.IntN(len(keys)))
			k := keys[i]
			if b.KeyAt(i) != k {
				t.Fatal("KeyAt")
			}
			v := m[k]
			blk := b.BlkAt(i)
			is, bit := b.BitAt(i)
			if (blk != nil) != (len(v) == 4096) || is != (len(v) == 1) {
				t.Fatal("BlkAt or BitAt: kind")
			}
			switch {
			case blk != nil:
				if !bytes.Equal(blk.Data(), v) {
					t.Fatal("BlkAt")
				}
			case is:
				if bit != (v[0] == 1) {
					t.Fatal("BitAt")
				}
			default:
				w := dbytes.NewBytes(300)
				b.CopyAt(i, w, 40)
				if !bytes.Equal(w.Data[40:296], v) || !bytes.Equal(w.Data[:40], make([]byte, 40)) || !bytes.Equal(w.Data[296:], make([]byte, 4)) {
					t.Fatal("CopyAt")
				}
				w.Data[41]++ // so is this
			}
		}
		b.Clear()
		if b.Len() != 0 {
			t.Fatal("Clear")
		}
	}
}
