package txn_test

import (
	"encoding/binary"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"tansy/disk"
	"tansy/journal"
	"tansy/test/kit/replay"
	"tansy/txn"
)

// The volume of these tests: a bit for each of some small objects, which names the owner of the bit, 0 for none.
const (
	taken  = 1300
	owners = 1302
	nBits  = 100
)

var bitRegion = txn.Region{Start: taken, Count: 2, Kind: txn.Bits, Allocate: nBits}

func openOwned(t *testing.T, d disk.Disk) (*journal.Journal, *txn.System, *txn.Allocator) {
	t.Helper()
	j, err := journal.Open(d, params, journal.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	s, err := txn.Open(j, bitRegion, txn.Region{Start: owners, Count: 7, Kind: txn.Smalls})
	if err != nil {
		t.Fatal(err)
	}
	a, err := s.Allocator(bitRegion)
	if err != nil {
		t.Fatal(err)
	}
	return j, s, a
}

func formatted(t *testing.T, d disk.Disk) {
	t.Helper()
	if err := journal.Format(d, params); err != nil {
		t.Fatal(err)
	}
}

func owner(n uint64) txn.Addr { return txn.Addr{Block: owners + n/16, Index: int(n % 16)} }

// own makes bit n, which was taken or is given back, another's.
func own(t *testing.T, x *txn.Txn, n, from, to uint64) error {
	p, err := x.ReadForUpdate(owner(n))
	if err != nil {
		return err
	}
	if was := binary.LittleEndian.Uint64(p); was != from {
		t.Errorf("bit %d is %d's, not %d's", n, was, from)
	}
	binary.LittleEndian.PutUint64(p, to)
	return x.Write(owner(n), p)
}

var errAbort = errors.New("on purpose")

// churn takes bits and gives them back, as owner w, in transactions of which some are aborted, until one fails for
// good.
func churn(t *testing.T, s *txn.System, a *txn.Allocator, r *rand.Rand, w uint64, rounds int) (mine []uint64) {
	for range rounds {
		var next []uint64
		abort, stable := r.IntN(4) == 0, r.IntN(2) == 0
		seed := r.Uint64()
		err := s.Run(stable, func(x *txn.Txn) error {
			r := rand.New(rand.NewPCG(seed, w)) // the same each time
			next = slices.Clone(mine)
			for range r.IntN(12) {
				n, err := a.Take(x, r.Uint64N(2)*r.Uint64N(nBits+10))
				if errors.Is(err, txn.ErrFull) {
					break
				}
				if err != nil {
					return err
				}
				if err := own(t, x, n, 0, w); err != nil {
					return err
				}
				next = append(next, n)
			}
			for range min(len(mine), r.IntN(12)) {
				n := next[0]
				next = next[1:]
				if err := own(t, x, n, w, 0); err != nil {
					return err
				}
				if err := a.GiveBack(x, n); err != nil {
					return err
				}
			}
			if abort {
				return errAbort
			}
			return nil
		})
		switch {
		case err == nil:
			mine = next
		case !errors.Is(err, errAbort):
			return mine
		}
	}
	return mine
}

// whole looks whether each bit that is set has an owner, and no other has one; and whether just the others can be
// taken. It returns whose how many are.
func whole(t *testing.T, s *txn.System, a *txn.Allocator) map[uint64]int {
	t.Helper()
	counts := map[uint64]int{}
	var free []uint64
	err := s.View(func(x *txn.Txn) error {
		for n := range uint64(nBits) {
			bit, err := x.ReadBit(a.Addr(n))
			if err != nil {
				return err
			}
			p, err := x.Read(owner(n))
			if err != nil {
				return err
			}
			o := binary.LittleEndian.Uint64(p)
			if bit != (o != 0) {
				t.Errorf("bit %d is %v, and its owner %d", n, bit, o)
			}
			if counts[o]++; !bit {
				free = append(free, n)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := a.Free(); err != nil || n != uint64(len(free)) {
		t.Errorf("%d are counted as free (%v), %d are", n, err, len(free))
	}
	err = s.Run(false, func(x *txn.Txn) error {
		var got []uint64
		for {
			n, err := a.Take(x, 0)
			if errors.Is(err, txn.ErrFull) {
				if slices.Sort(got); !slices.Equal(got, free) {
					t.Errorf("taken: %d, but free are %d", got, free)
				}
				return errAbort
			}
			if err != nil {
				return err
			}
			got = append(got, n)
		}
	})
	if err != errAbort {
		t.Fatal(err)
	}
	return counts
}

// TestAllocator has workers take bits and give them back beside each other. No bit is ever two workers', none is
// lost, also by transactions that abort, and after a crash at any point each bit has an owner or is free.
func TestAllocator(t *testing.T) {
	seed := replay.Seed(t)
	sim := disk.NewSim(size * disk.BlockSize)
	formatted(t, sim)
	j, s, a := openOwned(t, sim)
	sim.Record()
	first := sim.Ops()
	held := map[uint64]int{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for w := uint64(1); w <= 5; w++ {
		wg.Go(func() {
			mine := churn(t, s, a, rand.New(rand.NewPCG(seed, w)), w, 40)
			mu.Lock()
			defer mu.Unlock()
			held[w] = len(mine)
		})
	}
	wg.Wait()
	counts := whole(t, s, a)
	for w, n := range held {
		if counts[w] != n {
			t.Errorf("worker %d has %d bits, and %d are its", w, n, counts[w])
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	last := sim.Ops()
	r := rand.New(rand.NewPCG(seed, 99))
	for range 60 {
		img := sim.At(first + r.Uint64N(last-first+1)).Crash(disk.RandomChoice(r, true))
		j, s, a := openOwned(t, img)
		whole(t, s, a)
		if t.Failed() {
			t.FailNow()
		}
		// what the crash left goes on
		churn(t, s, a, r, 6, 5)
		whole(t, s, a)
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAllocatorBits: a bit on disk that was set by WriteBit is not handed out; and one that the transaction itself
// cleared comes again when that has committed, and not before.
func TestAllocatorBits(t *testing.T) {
	d := disk.NewMem(size * disk.BlockSize)
	formatted(t, d)
	j, s, a := openOwned(t, d)
	defer j.Close()
	run := func(f func(x *txn.Txn) error) {
		t.Helper()
		if err := s.Run(true, f); err != nil {
			t.Fatal(err)
		}
	}
	take := func(x *txn.Txn, near, want uint64) error {
		n, err := a.Take(x, near)
		if err == nil && n != want {
			t.Errorf("near %d, bit %d is handed out, not %d", near, n, want)
		}
		return err
	}
	run(func(x *txn.Txn) error {
		if err := x.WriteBit(a.Addr(0), true); err != nil { // beside the allocator
			return err
		}
		return take(x, 0, 1)
	})
	run(func(x *txn.Txn) error { return take(x, 70, 71) })
	run(func(x *txn.Txn) error {
		if err := a.GiveBack(x, 71); err != nil {
			return err
		}
		return take(x, 70, 72)
	})
	run(func(x *txn.Txn) error { return take(x, 70, 71) })
	run(func(x *txn.Txn) error { return take(x, nBits-1, 2) }) // from the end around
	run(func(x *txn.Txn) error {
		var addr *txn.AddrError
		for _, n := range []uint64{50, nBits, 1 << 63} {
			if err := a.GiveBack(x, n); !errors.As(err, &addr) {
				t.Errorf("giving back bit %d: %v", n, err)
			}
		}
		return take(x, 80, 81) // it goes on
	})
	if n, err := a.Free(); n != nBits-6 || err != nil {
		t.Errorf("%d are free: %v", n, err)
	}
	if err := s.View(func(x *txn.Txn) error { return take(x, 0, 82) }); !errors.Is(err, txn.ErrReadOnly) {
		t.Errorf("taking in a view: %v", err)
	}
}

// TestAllocatorRegions: what cannot be handed out is refused.
func TestAllocatorRegions(t *testing.T) {
	d := disk.NewMem(size * disk.BlockSize)
	formatted(t, d)
	j, s, _ := openOwned(t, d)
	defer j.Close()
	plain := bitRegion
	plain.Allocate = 0
	if a, err := s.Allocator(plain); err == nil || a != nil {
		t.Errorf("an allocator of a region without: %v", err)
	}
	for _, r := range []txn.Region{
		{Start: taken, Count: 2, Kind: txn.Bits, Allocate: 2*32768 + 1},
		{Start: taken, Count: 2, Kind: txn.Smalls, Allocate: 1},
		{Start: taken, Count: 2, Kind: 3},
		{Start: taken, Count: 2, Kind: -1},
	} {
		if _, err := txn.Open(j, r); err == nil {
			t.Errorf("opened: %+v", r)
		}
	}
}

// TestSize: a transaction tells how many blocks it writes, and at MaxBlocks it commits.
func TestSize(t *testing.T) {
	d := disk.NewMem(size * disk.BlockSize)
	j, s := format(t, d)
	defer j.Close()
	block := func(i int) txn.Addr { return txn.Addr{Block: blocks + uint64(i)} }
	var ended *txn.Txn
	err := s.Run(true, func(x *txn.Txn) error {
		ended = x
		want := func(n int) {
			t.Helper()
			if x.Size() != n {
				t.Errorf("size %d, not %d", x.Size(), n)
			}
		}
		want(0)
		if _, err := x.Read(block(0)); err != nil {
			return err
		}
		want(0)
		for i := range 2 {
			if err := put(x, counter(i), 1); err != nil {
				return err
			}
			want(1)
		}
		if err := x.WriteBit(txn.Addr{Block: bits}, true); err != nil {
			return err
		}
		want(2)
		for i := 0; x.Size() < txn.MaxBlocks; i++ {
			if err := errors.Join(put(x, block(i), 1), put(x, block(i), 2)); err != nil {
				return err
			}
			want(3 + i)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if n := ended.Size(); n != 0 {
		t.Errorf("size %d after the end", n)
	}
	x := s.Begin()
	if x.Size() != 0 || put(x, block(0), 1) != nil || x.Size() != 1 || x.Commit(false) != nil || x.Size() != 0 {
		t.Error("the size of a transaction of Begin")
	}
}
