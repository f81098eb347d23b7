package txn_test

import (
	"encoding/binary"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"

	"tansy/disk"
	"tansy/journal"
	"tansy/test/kit/replay"
	"tansy/txn"
)

// The volume of the tests: counters and accounts of 256 bytes, many in a block,
// bits, and whole blocks.
const (
	counters = 1300
	bits     = 1310
	blocks   = 1320
	size     = 2200
)

var params = journal.Params{Start: 0, Units: 16, Ring: 1000, Key: [32]byte{1, 2, 3}}

func open(d disk.Disk) (*journal.Journal, *txn.System, error) {
	j, err := journal.Open(d, params, journal.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, nil, err
	}
	s, err := txn.Open(j, txn.Region{Start: counters, Count: 5, Kind: txn.Smalls},
		txn.Region{Start: bits, Count: 2, Kind: txn.Bits}, txn.Region{Start: blocks, Count: 800, Kind: txn.Blocks})
	return j, s, err
}

func counter(i int) txn.Addr {
	return txn.Addr{Block: counters + uint64(i/16), Index: i % 16}
}

func get(t *txn.Txn, a txn.Addr, update bool) (uint64, error) {
	read := t.Read
	if update {
		read = t.ReadForUpdate
	}
	p, err := read(a)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(p), nil
}

func put(t *txn.Txn, a txn.Addr, x uint64) error {
	p := make([]byte, txn.SmallSize)
	if a.Block >= blocks {
		p = make([]byte, txn.BlockSize)
	}
	binary.LittleEndian.PutUint64(p, x)
	return t.Write(a, p)
}

// A witness says that after n operations of the device somebody was told that
// counter i stood at x, by a stable transaction.
type witness struct {
	n uint64
	i int
	x uint64
}

const workers = 6

// work runs workers that count in counters of their own, each count being one
// stable transaction that also writes a bit and a block, or an unstable one;
// and look at the counters of others. Counter i belongs to worker i. Every block of worker i holds
// the same number as counter i. It returns what has been seen, and per worker the last count tried.
func work(t *testing.T, sim *disk.Sim, s *txn.System, seed uint64, rounds int) (seen []witness, tried [workers]uint64) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	for w := range workers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			r := rand.New(rand.NewPCG(seed, uint64(w)))
			for i := range rounds {
				if r.IntN(2) == 0 { // look
					o := r.IntN(workers)
					var x uint64
					err := s.View(func(t *txn.Txn) (err error) {
						x, err = get(t, counter(o), false)
						return err
					})
					if err != nil {
						return
					}
					mu.Lock()
					seen = append(seen, witness{sim.Ops(), o, x})
					mu.Unlock()
					continue
				}
				x := uint64(i + 1)
				tried[w] = x
				err := s.Run(true, func(t *txn.Txn) error {
					if _, err := get(t, counter(w), true); err != nil {
						return err
					}
					if err := put(t, counter(w), x); err != nil {
						return err
					}
					if err := t.WriteBit(txn.Addr{Block: bits, Index: w}, x%2 == 1); err != nil {
						return err
					}
					return put(t, txn.Addr{Block: blocks + uint64(w)}, x)
				})
				if err != nil {
					return
				}
				mu.Lock()
				seen = append(seen, witness{sim.Ops(), w, x})
				mu.Unlock()
			}
		}()
	}
	wg.Wait()
	return seen, tried
}

// check recovers the device and compares it with what has been seen up to
// operation n.
func check(t *testing.T, d disk.Disk, n uint64, seen []witness, tried [workers]uint64) {
	t.Helper()
	j, s, err := open(d)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	err = s.View(func(tx *txn.Txn) error {
		var have [workers]uint64
		for w := range have {
			x, err := get(tx, counter(w), false)
			if err != nil {
				return err
			}
			p, err := tx.Read(txn.Addr{Block: blocks + uint64(w)})
			if err != nil {
				return err
			}
			bit, err := tx.ReadBit(txn.Addr{Block: bits, Index: w})
			if err != nil {
				return err
			}
			if y := binary.LittleEndian.Uint64(p); y != x || bit != (x%2 == 1) {
				t.Errorf("after %d operations: a transaction in parts: counter %d, block %d, bit %v", n, x, y, bit)
			}
			if x > tried[w] {
				t.Errorf("counter %d is %d, but only %d was tried", w, x, tried[w])
			}
			have[w] = x
		}
		for _, v := range seen {
			if v.n <= n && have[v.i] < v.x {
				t.Errorf("after %d operations: counter %d is %d, but was seen at %d after %d operations",
					n, v.i, have[v.i], v.x, v.n)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestCrash crashes the machine at many points of a concurrent workload, with
// random outcomes for what was not behind a barrier. Every transaction must be
// there as a whole or not at all, and what anybody was told must be there:
// also what a reader has only seen.
func TestCrash(t *testing.T) {
	seed := replay.Seed(t)
	r := rand.New(rand.NewPCG(seed, 99))
	sim := disk.NewSim(size * disk.BlockSize)
	if err := journal.Format(sim, params); err != nil {
		t.Fatal(err)
	}
	j, s, err := open(sim)
	if err != nil {
		t.Fatal(err)
	}
	sim.Record()
	first := sim.Ops()
	seen, tried := work(t, sim, s, seed, 40)
	last := sim.Ops()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if testing.Short() {
		first = max(first, last-20)
	}
	for n := first; n <= last; n++ {
		img := sim.At(n).Crash(disk.RandomChoice(r, true))
		if r.IntN(4) == 0 { // a crash in recovery as well
			img.FreezeAfter(r.Uint64N(6), false)
			if j, _, err := open(img); err == nil {
				_ = j.Close()
			}
			img = img.Crash(disk.RandomChoice(r, true))
		}
		check(t, img, n, seen, tried)
	}
	t.Logf("%d crashes, %d observations", last-first+1, len(seen))
}

// TestDeviceDies lets the device fail for good at some operation. Nothing may hang
// or be acknowledged that is not durable; reads go on.
func TestDeviceDies(t *testing.T) {
	seed := replay.Seed(t)
	r := rand.New(rand.NewPCG(seed, 99))
	for range 15 {
		sim := disk.NewSim(size * disk.BlockSize)
		if err := journal.Format(sim, params); err != nil {
			t.Fatal(err)
		}
		f := disk.NewFault(sim, seed, nil)
		j, s, err := open(f)
		if err != nil {
			t.Fatal(err)
		}
		kinds := []disk.Kind{disk.Write, disk.Barrier}[:1+r.IntN(2)]
		f.SetPlan(disk.FailFrom(f.Ops()+r.Uint64N(40), disk.ErrInjected, kinds...))
		seen, tried := work(t, sim, s, seed, 30)
		err = s.Run(true, func(t *txn.Txn) error { return put(t, counter(20), 1) })
		if !errors.Is(err, txn.ErrIO) && !errors.Is(err, txn.ErrReadOnly) || !errors.Is(err, disk.ErrInjected) {
			t.Errorf("writing after the failure: %v", err)
		}
		err = s.View(func(t *txn.Txn) error { _, err := get(t, counter(30), false); return err })
		if err != nil && !errors.Is(err, txn.ErrIO) {
			t.Errorf("reading after the failure: %v", err)
		}
		_ = j.Close()
		check(t, sim.Crash(disk.RandomChoice(r, true)), sim.Ops(), seen, tried)
	}
}

// TestLogFull has large transactions chase each other through a small log: they
// must wait for room, and get it.
func TestLogFull(t *testing.T) {
	sim := disk.NewMem(size * disk.BlockSize)
	if err := journal.Format(sim, params); err != nil {
		t.Fatal(err)
	}
	j, s, err := open(sim)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range 12 {
				err := s.Run(i%5 == 0, func(t *txn.Txn) error {
					for k := range uint64(180) {
						if err := put(t, txn.Addr{Block: blocks + uint64(w)*190 + k}, uint64(i)); err != nil {
							return err
						}
					}
					return put(t, counter(w), uint64(i))
				})
				if err != nil {
					t.Error(err)
				}
			}
		}()
	}
	wg.Wait()
	err = s.Run(true, func(t *txn.Txn) error {
		for k := range uint64(txn.MaxBlocks + 1) {
			if err := put(t, txn.Addr{Block: blocks + k}, 1); err != nil {
				return err
			}
		}
		return nil
	})
	if !errors.Is(err, txn.ErrTooLarge) {
		t.Errorf("too large: %v", err)
	}
	err = s.View(func(tx *txn.Txn) error {
		for w := range uint64(4) {
			for k := range uint64(180) {
				if p, err := tx.Read(txn.Addr{Block: blocks + w*190 + k}); err != nil || p[0] != 11 {
					t.Fatal(w, k, p[0], err)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
