package dtxn

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"tansy/disk"
	"tansy/internal/runtime/dbytes"
)

// TestReadBlocks: blocks side by side come with one read of the device from the first that is not in memory; what the
// transaction wrote itself is among them; and of what stands in the way it is told which block that is.
func TestReadBlocks(t *testing.T) {
	poison(t)
	d := disk.NewFault(disk.NewMem((memLog+size)*disk.BlockSize), 1, nil)
	s := openCold(t, d)
	numbers := func(p *dbytes.Pieces) (l []uint64) {
		b := p.Join()
		for at := uint64(0); at < b.Len(); at += dbytes.BlkSize {
			l = append(l, b.U64(at))
		}
		return l
	}
	count := func(n, reads, blocks uint64, from uint64) {
		t.Helper()
		before := s.j.Stats()
		must(t, s.Run(false, true, func(x *Txn) error {
			p := dbytes.NewPieces()
			x.ReadBlocks(from, n, p)
			got := numbers(p)
			for i := range n {
				if uint64(len(got)) != n || got[i] != from+i {
					t.Errorf("%d blocks from %d on: %d", n, from, got)
				}
			}
			return nil
		}))
		after := s.j.Stats()
		if after.Reads-before.Reads != reads || after.ReadBlocks-before.ReadBlocks != blocks {
			t.Errorf("%d reads of %d blocks, want %d of %d",
				after.Reads-before.Reads, after.ReadBlocks-before.ReadBlocks, reads, blocks)
		}
	}
	count(0, 0, 0, data)
	count(20, 1, 20, data)
	count(20, 0, 0, data)
	for b := uint64(data + 3); b < data+8; b++ {
		s.forget(b)
	}
	count(11, 1, 8, data) // what is not in memory is read with what lies behind it
	s.forget(data + 19)
	count(20, 1, 1, data)

	must(t, s.Run(false, false, func(x *Txn) error {
		s.forget(data + 2)
		x.WriteBlock(data+1, number(77))
		p := dbytes.NewPieces()
		x.ReadBlocks(data, 4, p)
		if got, want := fmt.Sprint(numbers(p)), fmt.Sprint([]uint64{data, 77, data + 2, data + 3}); got != want {
			t.Errorf("%s beside a block of its own, want %s", got, want)
		}
		x.WriteBlock(data+1, number(data+1))
		return nil
	}))

	// another's
	a, x := s.Begin(), s.Begin()
	a.WriteBlock(data+5, number(5))
	x.WriteBlock(data+9, number(9)) // so that it must not wait for what lies below
	if err := x.TryReadBlocks(data+2, 6, dbytes.NewPieces()); err != ErrConflict {
		t.Error(err)
	}
	if len(x.first) != 1 || x.first[0].key != s.key(data+5, 0) {
		t.Errorf("in the way is %v", x.first)
	}
	x.Abort()
	a.Abort()

	// where there are none
	for _, c := range []struct{ from, n, first uint64 }{
		{size - 2, 3, size}, {data - 1, 2, data - 1}, {size, 1, size}, {data, math.MaxUint64, size},
	} {
		x := s.Begin()
		err := x.TryReadBlocks(c.from, c.n, dbytes.NewPieces())
		if !errors.Is(err, ErrDamaged) || c.n < 10 && !strings.Contains(err.Error(), fmt.Sprintf("block %d ", c.first)) {
			t.Errorf("%d blocks from %d on: %v", c.n, c.from, err)
		}
		x.Abort()
	}

	// one that cannot be read
	damaged := errors.New("block 36")
	d.SetPlan(func(op disk.Op, _ *rand.Rand) (h disk.Harm) {
		if bad := s.base + data + 36; op.Kind == disk.Read && op.Addr <= bad && bad < op.Addr+uint64(op.Blocks) {
			h.Err = damaged
		}
		return h
	})
	count(6, 1, 6, data+30) // up to it
	err := s.Run(false, true, func(x *Txn) error { x.ReadBlocks(data+30, 10, dbytes.NewPieces()); return nil })
	if !errors.Is(err, damaged) {
		t.Error(err)
	}
	d.SetPlan(nil)
	count(10, 1, 4, data+30)
	must(t, s.Close())
	if s.held() != 0 {
		t.Error("locks are left")
	}
}
