package locks

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"tansy/test/kit/replay"
)

// take locks k for o, and waits for it.
func (t *Table) take(o *Owner, k uint64, excl bool) (seen uint64) {
	ok, queued, seen := t.Lock(o, k, excl, true)
	if ok == queued {
		panic("one that may wait is neither queued nor has the lock, or both")
	}
	if queued {
		seen = t.Await(o)
	}
	return seen
}

// model is the ghost state of locks.s.dfy.
type model struct {
	ex   map[uint64]int
	sh   map[[2]uint64]bool // key, owner
	last map[uint64]uint64
}

func (m *model) shared(k uint64) (n int) {
	for p := range m.sh {
		if p[0] == k {
			n++
		}
	}
	return
}

// newest is the highest commit noted for any key.
func (m *model) newest() (n uint64) {
	for _, l := range m.last {
		n = max(n, l)
	}
	return
}

// TestDeclarations runs random calls by several owners in one goroutine and
// compares each with the contract in locks.s.dfy. Here a lock that is free must
// also be granted, which the contract leaves open.
func TestDeclarations(t *testing.T) {
	seed := replay.Seed(t)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 30 {
		tab := NewTable()
		m := model{map[uint64]int{}, map[[2]uint64]bool{}, map[uint64]uint64{}}
		owners := make([]*Owner, 4)
		for i := range owners {
			owners[i] = NewOwner()
		}
		keys := uint64(1 + r.IntN(60))
		for range 2000 {
			i := r.IntN(len(owners))
			if r.IntN(40) == 0 {
				n := r.Uint64N(1000)
				tab.Release(owners[i], n)
				for k, o := range m.ex {
					if o == i {
						delete(m.ex, k)
						if n > 0 {
							m.last[k] = max(m.last[k], n)
						}
					}
				}
				for p := range m.sh {
					if p[1] == uint64(i) {
						delete(m.sh, p)
					}
				}
				if owners[i].Len() != 0 {
					t.Fatal("Release left locks")
				}
				continue
			}
			k, excl := r.Uint64N(keys)*2048, r.IntN(2) == 0
			mine := m.sh[[2]uint64{k, uint64(i)}]
			o, taken := m.ex[k]
			owns := taken && o == i
			n := m.shared(k)
			free := owns || !taken && (!excl || n == 0 || n == 1 && mine)
			ok, queued, seen := tab.Lock(owners[i], k, excl, false)
			if ok != free || queued {
				t.Fatalf("Lock(%d, %d, %v) = %v; exclusive %v, shared %d", i, k, excl, ok, taken, n)
			}
			if ok && seen < m.last[k] {
				t.Fatalf("seen %d, last %d", seen, m.last[k])
			}
			if newest := m.newest(); ok && seen > newest {
				t.Fatalf("seen %d, noted at most %d", seen, newest)
			}
			if ok && !owns {
				if excl {
					delete(m.sh, [2]uint64{k, uint64(i)})
					m.ex[k] = i
				} else {
					m.sh[[2]uint64{k, uint64(i)}] = true
				}
			}
		}
		for _, o := range owners {
			tab.Release(o, 0)
		}
		if n := tab.Held(); n > 0 {
			t.Fatalf("%d locks are left that nobody holds", n)
		}
	}
}

// TestExclusion has goroutines wait for locks in ascending order. Whoever holds a
// lock exclusively is alone, and everybody gets through.
func TestExclusion(t *testing.T) {
	const workers, rounds, nkeys = 8, 500, 6
	tab := NewTable()
	var readers, writers [nkeys]atomic.Int32
	var plain [nkeys]int // for the race detector
	var wg sync.WaitGroup
	seed := replay.Seed(t)
	for w := range workers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			r := rand.New(rand.NewPCG(seed, uint64(w)))
			o := NewOwner()
			for range rounds {
				var got [nkeys]int
				for k := range uint64(nkeys) {
					switch r.IntN(3) {
					case 0:
						tab.take(o, k+1, false)
						got[k] = 1
						readers[k].Add(1)
						_ = plain[k]
						if writers[k].Load() != 0 {
							t.Error("shared beside exclusive")
						}
					case 1:
						tab.take(o, k+1, true)
						got[k] = 2
						plain[k]++
						if writers[k].Add(1) != 1 || readers[k].Load() != 0 {
							t.Error("exclusive and not alone")
						}
					}
				}
				runtime.Gosched()
				for k := range got {
					switch got[k] {
					case 1:
						readers[k].Add(-1)
					case 2:
						writers[k].Add(-1)
					}
				}
				tab.Release(o, 0)
			}
		}()
	}
	wg.Wait()
}

// TestFair: who comes after a waiting writer does not overtake it.
func TestFair(t *testing.T) {
	tab := NewTable()
	a, b, c, d := NewOwner(), NewOwner(), NewOwner(), NewOwner()
	tab.take(a, 7, false)
	done := make(chan uint64)
	go func() {
		done <- tab.take(b, 7, true)
	}()
	for { // until b waits
		ok, _, _ := tab.Lock(c, 7, false, false)
		if !ok {
			break
		}
		tab.Release(c, 0)
		runtime.Gosched()
	}
	go func() {
		done <- tab.take(d, 7, false)
	}()
	tab.Release(a, 0)
	if <-done != 0 {
		t.Fatal("b saw a commit")
	}
	tab.Release(b, 42) // d waits or will come; either way it must see b's commit
	if seen := <-done; seen < 42 {
		t.Fatal("d did not see the commit of b")
	}
}

func BenchmarkLock(b *testing.B) {
	tab, o := NewTable(), NewOwner()
	for i := range b.N {
		tab.take(o, uint64(i)*2048, false)
		tab.Release(o, 0)
	}
}

func BenchmarkLock256(b *testing.B) {
	tab, o := NewTable(), NewOwner()
	for i := range b.N {
		for k := range uint64(256) {
			tab.take(o, (uint64(i)+k)<<15, true)
		}
		tab.Release(o, uint64(i))
	}
}
