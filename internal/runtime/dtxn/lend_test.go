package dtxn

import (
	"testing"

	"tansy/disk"
	"tansy/internal/runtime/dbytes"
)

// TestLend: blocks that are lent stay what they were when their transaction has ended, though they are written over and
// pushed out of the cache; a quarter of the cache is lent at most, and what has ended can be lent again.
func TestLend(t *testing.T) {
	defer func(p bool) { dbytes.Poison = p }(dbytes.Poison)
	dbytes.Poison = true
	s := openCold(t, disk.NewMem((memLog+size)*disk.BlockSize))
	defer s.Close()
	type loan struct {
		Lent
		blocks []*dbytes.Blk
	}
	lend := func(n uint64, bytes int) *loan {
		l, lent := new(loan), false
		must(t, s.Run(false, true, func(x *Txn) error {
			for b := uint64(data); b < data+n; b++ {
				l.blocks = append(l.blocks, x.ReadBlock(b, false))
			}
			lent = x.Lend(&l.Lent, bytes)
			return nil
		}))
		if !lent {
			return nil
		}
		return l
	}
	const all = 50 * disk.BlockSize
	if l := lend(50, all/4-1); l != nil {
		t.Error("many blocks are lent for few bytes")
	}
	for round := range 3 {
		var loans []*loan
		total := int64(0)
		for l := lend(50, all); l != nil && total <= s.lendable; l = lend(50, all) {
			loans = append(loans, l)
			total += l.n
		}
		if total > s.lendable || total+50 <= s.lendable || total != s.lent.Load() {
			t.Fatalf("round %d: %d blocks are lent, %d counted, of at most %d", round, total, s.lent.Load(), s.lendable)
		}
		for b := uint64(data); b < data+200; b++ {
			must(t, s.Run(false, false, func(x *Txn) error { x.WriteBlock(b, number(b)); return nil }))
		}
		must(t, s.Flush())
		for b := uint64(data); b < data+200; b++ {
			s.forget(b)
			must(t, s.Run(false, true, func(x *Txn) error { x.ReadBlock(b, false); return nil }))
		}
		for _, l := range loans {
			for i, b := range l.blocks {
				if got, want := b.U64(0), uint64(data+i); got != want {
					t.Fatalf("round %d: a block that is lent holds %#x, not %d", round, got, want)
				}
			}
			l.End()
			if n := l.lent.Hold.Len(); n != 0 {
				t.Fatalf("%d blocks are kept after the end", n)
			}
		}
		if n := s.lent.Load(); n != 0 {
			t.Fatalf("round %d: %d blocks are lent when all has ended", round, n)
		}
	}
	var none Lent
	none.End()
}

// TestLendOnce: what has blocks already is lent no others, and its own last; what is no longer lent is not given back
// twice; and a transaction that has written lends nothing.
func TestLendOnce(t *testing.T) {
	poison(t)
	s := openCold(t, disk.NewMem((memLog+size)*disk.BlockSize))
	defer s.Close()
	var l Lent
	lend := func(a uint64) (b *dbytes.Blk, lent bool) {
		must(t, s.Run(false, true, func(x *Txn) error {
			b = x.ReadBlock(a, false)
			lent = x.Lend(&l, disk.BlockSize)
			return nil
		}))
		s.forget(a)
		return b, lent
	}
	b, lent := lend(data)
	if _, more := lend(data + 1); !lent || more || b.U64(0) != data {
		t.Errorf("%v, then %v; the block is %#x", lent, more, b.U64(0))
	}
	if n := s.lent.Load(); n != 1 {
		t.Errorf("%d blocks are lent", n)
	}
	l.End()
	l.End()
	if n := s.lent.Load(); n != 0 {
		t.Errorf("%d blocks are lent when all has ended", n)
	}
	if b, lent := lend(data + 1); !lent || b.U64(0) != data+1 {
		t.Error("it cannot be lent to again")
	}
	l.End()
	must(t, s.Run(false, false, func(x *Txn) error {
		x.ReadBlock(data+2, false)
		x.WriteBlock(data+3, number(data+3))
		if x.Lend(&l, disk.BlockSize) {
			t.Error("a transaction that has written lends its blocks")
		}
		return nil
	}))
	if n := s.lent.Load(); n != 0 {
		t.Errorf("%d blocks are lent by a transaction that has written", n)
	}
}
