package dbytes

import (
	"bytes"
	"testing"
)

// TestPieces: they are the bytes that were added, in this order, and lie in the blocks, until they are copied; a copy
// is one's own.
func TestPieces(t *testing.T) {
	r := seeded(t)
	for range 300 {
		p := NewPieces()
		var want []byte
		if got := p.Join(); got.Len() != 0 || p.Len() != 0 || len(p.List()) != 0 {
			t.Fatal("new pieces hold something")
		}
		var blocks []*Blk
		for range r.Intn(20) {
			b := BlkOf(random(r, BlkSize))
			so := r.Intn(BlkSize + 1)
			n := r.Intn(BlkSize - so + 1)
			p.Add(b, uint64(so), uint64(n))
			want = append(want, b.Data()[so:so+n]...)
			blocks = append(blocks, b)
		}
		check := func(what string, got []byte) {
			if !bytes.Equal(got, want) {
				t.Fatalf("%s: other bytes than were added", what)
			}
		}
		joined := p.Join()
		check("joined", joined.Data)
		check("pieces", bytes.Join(p.List(), nil))
		if p.Len() != len(want) {
			t.Fatalf("%d bytes, want %d", p.Len(), len(want))
		}
		if r.Intn(2) == 0 {
			check("copy", p.Copy())
			for _, b := range blocks {
				clear(b.v[:])
			}
			check("pieces after a copy", bytes.Join(p.List(), nil))
		}
		for i := range joined.Data {
			joined.Data[i]++
		}
		if len(want) > 0 && bytes.Equal(bytes.Join(p.List(), nil), joined.Data) {
			t.Fatal("what was joined is no copy")
		}
		p.Recycle()
	}
}

// To answer with blocks takes no memory of the heap once it was done.
func TestPiecesAllocs(t *testing.T) {
	if Poison {
		t.Skip("with the race detector a sync.Pool forgets")
	}
	b := ZeroBlk()
	if n := testing.AllocsPerRun(100, func() {
		p := NewPieces()
		for range 16 {
			p.Add(b, 0, BlkSize)
		}
		p.Recycle()
	}); n >= 1 {
		t.Error(n)
	}
}
