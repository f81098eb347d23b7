package dtxn

import (
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"tansy/disk"
	"tansy/internal/runtime/dbytes"
)

// number is a block that begins with x.
func number(x uint64) *dbytes.Bytes {
	b := dbytes.NewBytes(dbytes.BlkSize)
	b.PutU64(0, x)
	return b
}

// openCold makes a volume whose data blocks hold their numbers, and opens it again.
func openCold(t *testing.T, d disk.Disk) *System {
	s, err := newOn(d, layout)
	if err != nil {
		t.Fatal(err)
	}
	for b := uint64(data); b < data+200; b++ {
		must(t, s.Run(false, false, func(x *Txn) error { x.WriteBlock(b, number(b)); return nil }))
	}
	must(t, s.Close())
	s, err = reopen(d, layout)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// forget makes the journal forget block b, unless it has to remember it.
func (s *System) forget(b uint64) {
	c := s.core
	c.Mutex.Lock()
	defer c.Mutex.Unlock()
	c.Cache.Forget(s.base + b)
}

// TestAhead: what was wished for is read at once, and not again; the wish is one for blocks
// that there are, and changes nothing.
func TestAhead(t *testing.T) {
	d := disk.NewFault(disk.NewMem((memLog+size)*disk.BlockSize), 1, nil)
	s := openCold(t, d)
	count := func(n, reads, blocks uint64, from uint64, ahead func(x *Txn)) {
		t.Helper()
		before := s.j.Stats()
		must(t, s.Run(false, true, func(x *Txn) error {
			ahead(x)
			for b := from; b < from+n; b++ {
				if got := x.ReadBlock(b, false).U64(0); got != b {
					t.Errorf("block %d: %d", b, got)
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
	count(20, 1, 20, data, func(x *Txn) { x.Ahead(data, 20) })
	count(20, 0, 0, data, func(x *Txn) { x.Ahead(data, 20) })                               // all there
	count(10, 1, 11, data+30, func(x *Txn) { x.Ahead(data+30, 11) })                        // one more than is read
	count(1, 1, 1, data+50, func(x *Txn) { x.Ahead(data+50, 0) })                           // none
	count(0, 1, 3, 0, func(x *Txn) { x.Ahead(size-3, 20) })                                 // to the end of the volume
	count(0, 0, 0, 0, func(x *Txn) { x.Ahead(size, 1); x.Ahead(math.MaxUint64-memLog, 1) }) // past it
	count(0, 0, 0, 0, func(x *Txn) { x.Ahead(math.MaxUint64, math.MaxUint64) })             // in the log

	s.forget(data + 33)
	count(1, 1, 1, data+33, func(x *Txn) { x.Ahead(data+30, 11) }) // the first is in memory
	for b := uint64(data + 30); b < data+40; b++ {
		s.forget(b)
	}
	damaged := errors.New("block 36")
	d.SetPlan(func(op disk.Op, _ *rand.Rand) (h disk.Harm) {
		if bad := s.base + data + 36; op.Kind == disk.Read && op.Addr <= bad && bad < op.Addr+uint64(op.Blocks) {
			h.Err = damaged
		}
		return h
	})
	for b := uint64(data + 30); b < data+40; b++ { // one that cannot be read is nothing to the others
		err := s.Run(false, true, func(x *Txn) error { x.Ahead(data+30, 11); x.ReadBlock(b, false); return nil })
		if bad := b == data+36; errors.Is(err, damaged) != bad || (err != nil) != bad {
			t.Errorf("block %d: %v", b, err)
		}
	}

	// of a wish that cannot be fulfilled only the reader hears
	boom := errors.New("boom")
	d.SetPlan(disk.FailFrom(1, boom, disk.Read))
	must(t, s.Run(false, true, func(x *Txn) error { x.Ahead(data+100, 8); return nil }))
	if err := s.Run(false, true, func(x *Txn) error { x.Ahead(data+100, 8); x.ReadBlock(data+100, false); return nil }); !errors.Is(err, boom) {
		t.Error(err)
	}
	d.SetPlan(nil)
	count(8, 1, 8, data+100, func(x *Txn) { x.Ahead(data+100, 8) })
	must(t, s.Close())
}

// TestAheadMeetsWriters: blocks that are read ahead while others write them are never older
// than what was committed. Both blocks of a pair always hold the same.
func TestAheadMeetsWriters(t *testing.T) {
	random := seeded(t)
	s := openCold(t, disk.NewMem((memLog+size)*disk.BlockSize))
	const pairs = 100
	must(t, s.Run(false, false, func(x *Txn) error {
		for p := uint64(0); p < pairs; p++ {
			x.WriteBlock(data+p, number(p))
			x.WriteBlock(data+pairs+p, number(p))
		}
		return nil
	}))
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			r := random(w)
			for range 1500 {
				p := r.Uint64N(pairs)
				for range 8 {
					s.forget(data + r.Uint64N(2*pairs))
				}
				must(t, s.Run(r.IntN(8) == 0, w < 2, func(x *Txn) error {
					x.Ahead(data+r.Uint64N(2*pairs), 1+r.Uint64N(40))
					a, b := x.ReadBlock(data+p, w >= 2), x.ReadBlock(data+pairs+p, w >= 2)
					if a.U64(0) != b.U64(0) {
						t.Errorf("pair %d: %d and %d", p, a.U64(0), b.U64(0))
					}
					if w >= 2 {
						n := r.Uint64()
						x.WriteBlock(data+p, number(n))
						x.WriteBlock(data+pairs+p, number(n))
					}
					return nil
				}))
			}
		})
	}
	wg.Wait()
	must(t, s.Close())
}

// slowRead is a device that does something between reading blocks and handing them over.
type slowRead struct {
	disk.Disk
	meanwhile func()
}

func (d *slowRead) ReadAt(a uint64, bufs [][]byte) error {
	err := d.Disk.ReadAt(a, bufs)
	if f := d.meanwhile; f != nil {
		d.meanwhile = nil
		var others sync.WaitGroup
		others.Go(f) // whoever reads is in the midst of a transaction
		others.Wait()
	}
	return err
}

// TestAheadIsLate: while a run is read from the device, one of its blocks gets new contents,
// which go home and leave the cache. What was read is too old to be kept.
func TestAheadIsLate(t *testing.T) {
	d := &slowRead{Disk: disk.NewMem((memLog + size) * disk.BlockSize)}
	s := openCold(t, d)
	d.meanwhile = func() {
		write := func(b uint64) {
			must(t, s.Run(true, false, func(x *Txn) error { x.WriteBlock(b, number(1)); return nil }))
		}
		write(data + 5)
		// one installation may have begun before that
		for until := s.j.Stats().Installs + 2; s.j.Stats().Installs < until; {
			write(data + 15)
		}
		s.forget(data + 5)
	}
	must(t, s.Run(false, true, func(x *Txn) error {
		x.Ahead(data, 10)
		if got := x.ReadBlock(data+5, false).U64(0); got != 1 {
			t.Errorf("read %d, which is too old", got)
		}
		return nil
	}))
	must(t, s.Close())
}
