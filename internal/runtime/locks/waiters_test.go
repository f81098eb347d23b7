package locks

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"tansy/test/kit/replay"
)

// queued is the number of those that wait for key k.
func (t *Table) queued(k uint64) (n int) {
	s, place := t.at(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	for l := s.bucket(place).locks; l != nil; l = l.next {
		if l.key == k {
			n = len(l.queue)
		}
	}
	return n
}

func (t *Table) untilQueued(k uint64, n int) {
	for t.queued(k) < n {
		runtime.Gosched()
	}
}

// TestWaiters: those that wait get the lock in the order in which they came, readers
// together; what they are told to have seen covers what was noted while they waited.
func TestWaiters(t *testing.T) {
	seed := replay.Seed(t)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 200 {
		const k = 3 << 15
		tab := NewTable()
		holder := NewOwner()
		tab.take(holder, k, true)
		excl := make([]bool, 1+r.IntN(6))
		type grant struct {
			who  int
			seen uint64
		}
		granted := make(chan grant, len(excl))
		release := make([]chan uint64, len(excl))
		var wg sync.WaitGroup
		for i := range excl {
			excl[i] = r.IntN(2) == 0
			release[i] = make(chan uint64)
			wg.Add(1)
			go func() {
				defer wg.Done()
				o := NewOwner()
				ok, queued, _ := tab.Lock(o, k, excl[i], true)
				if ok || !queued {
					t.Error("one that came later is not queued")
				}
				granted <- grant{i, tab.Await(o)}
				tab.Release(o, <-release[i])
			}()
			tab.untilQueued(k, i+1)
		}
		last := uint64(0)
		give := func(n uint64, noted bool) uint64 {
			if noted {
				last = max(last, n)
			}
			return n
		}
		tab.Release(holder, give(r.Uint64N(100), true))
		for i := 0; i < len(excl); {
			end := i + 1
			for !excl[i] && end < len(excl) && !excl[end] {
				end++
			}
			in := map[int]bool{}
			for range end - i {
				g := <-granted
				in[g.who] = true
				if g.seen < last {
					t.Fatalf("seen %d, last %d", g.seen, last)
				}
			}
			for w := i; w < end; w++ {
				if !in[w] {
					t.Fatalf("%v: %v were let in, not %d to %d", excl, in, i, end-1)
				}
			}
			if len(granted) != 0 || tab.queued(k) != len(excl)-end {
				t.Fatalf("%v: more than %d to %d were let in", excl, i, end-1)
			}
			for w := i; w < end; w++ {
				release[w] <- give(r.Uint64N(100), excl[w])
			}
			i = end
		}
		wg.Wait()
		if ok, _, seen := tab.Lock(holder, k, false, false); !ok || seen < last {
			t.Fatalf("at the end: %v, seen %d, last %d", ok, seen, last)
		}
		if tab.Release(holder, 0); tab.Held() != 0 {
			t.Fatal("locks are left")
		}
	}
}
