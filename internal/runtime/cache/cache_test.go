package cache

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"tansy/internal/runtime/dbytes"
)

// checkCache tells if the table has what it says, where it is found, and no slot twice.
func checkCache(t *testing.T, c *Cache) {
	t.Helper()
	n, seen := 0, map[uint32]bool{}
	for i, s := range c.tab {
		if s == 0 {
			continue
		}
		n++
		if k, ok := c.find(c.addrs[s-1]); k != i || !ok || c.state[s-1] < slotNew || seen[s] {
			t.Fatalf("block %d is lost", c.addrs[s-1])
		}
		if c.spilled[c.addrs[s-1]] != nil {
			t.Fatalf("block %d is there twice", c.addrs[s-1])
		}
		seen[s] = true
	}
	free, gone := 0, 0
	for s := c.free; s != 0; s = c.addrs[s-1] {
		if free++; free > c.used || c.state[s-1] != slotFree || c.kept[s-1].Load() != 0 {
			t.Fatalf("slot %d is free, and is not", s-1)
		}
	}
	for _, s := range c.state[:c.used] {
		if s == slotGone {
			gone++
		}
	}
	if n != c.len || n+free+gone != c.used || c.used > len(c.blocks) || 2*n > len(c.tab) || len(c.order) > minCache || len(c.spilled) > len(c.order) {
		t.Fatalf("%d blocks, %d found, %d spilled of %d; %d slots were used, %d of them are free, and %d gone",
			c.len, n, len(c.spilled), len(c.order), c.used, free, gone)
	}
}

func number(i int) *dbytes.Blk {
	b := dbytes.NewBytes(dbytes.BlkSize)
	b.PutU64(0, uint64(i))
	return dbytes.Freeze(b)
}

// poison has memory spoiled during a test.
func poison(t *testing.T) {
	if !dbytes.Poison { // with the race detector it is, which would find that it is written here
		dbytes.Poison = true
		t.Cleanup(func() { dbytes.Poison = false })
	}
}

// A Cache gives back nothing else than what was put there last, is bounded, and keeps
// what is used. Blocks that are kept do not change before they are let go.
func TestCache(t *testing.T) {
	poison(t)
	seeds := uint64(4)
	if testing.Short() {
		seeds = 1
	}
	for seed := range seeds {
		testCache(t, seed, 96, 10)
		testCache(t, seed, 40, 100) // more is kept at times than there are slots
	}
}

type keptBlock struct {
	b *dbytes.Blk
	x int
}

// keeper keeps slots of a cache, as a Hold does.
type keeper struct {
	c     *Cache
	slots []uint32
}

func (k *keeper) keep(b *dbytes.Blk) {
	if s, ok := k.c.Slot(b); ok { // else it was spilled
		k.c.Keep(s)
		k.slots = append(k.slots, s)
	}
}

func (k *keeper) end() {
	for _, s := range k.slots {
		k.c.LetGo(s)
	}
	k.slots = nil
}

func testCache(t *testing.T, seed uint64, slots, keep int) {
	r := rand.New(rand.NewPCG(seed, 0))
	c := newCache(slots, allocate)
	last := map[uint64]int{}
	var holds [8]struct {
		keeper
		kept []keptBlock
	}
	for i := range holds {
		holds[i].c = c
	}
	hits, misses, spills := 0, 0, 0
	for i := 1; i < 100_000; i++ {
		a := r.Uint64N(200)
		switch r.IntN(9) {
		case 0, 1, 2:
			b := number(i)
			c.Put(a, b)
			clear(b.Data()) // the cache has a copy
			last[a] = i
			if b := c.Get(a); b == nil || b.U64(0) != uint64(i) {
				t.Fatalf("seed %d: block %d is not there", seed, a)
			}
			hits++
			spills += len(c.spilled)
		case 3:
			c.Forget(a)
			delete(last, a)
		default:
			b := c.Get(a)
			if b == nil {
				misses++
				break
			}
			hits++
			if x, ok := last[a]; !ok || b.U64(0) != uint64(x) {
				t.Fatalf("seed %d: block %d: an old or a foreign block", seed, a)
			}
			h := &holds[r.IntN(len(holds))]
			h.keep(b)
			h.kept = append(h.kept, keptBlock{b, last[a]})
		}
		if c.Len() > c.Limit()+minCache {
			t.Fatal(c.Len())
		}
		if r.IntN(keep) == 0 {
			h := &holds[r.IntN(len(holds))]
			for _, k := range h.kept {
				if k.b.U64(0) != uint64(k.x) {
					t.Fatalf("seed %d: a block changed that is kept", seed)
				}
			}
			h.end()
			h.kept = nil
		}
		if i%97 == 0 {
			checkCache(t, c)
		}
	}
	if hits < 30_000 || (spills > 0) != (keep > 50) {
		t.Errorf("%d hits, %d spilled", hits, spills)
	}
	if h, m := c.Asked(); h != uint64(hits) || m != uint64(misses) {
		t.Errorf("%d hits and %d misses are counted, of %d and %d", h, m, hits, misses)
	}
	for i := range holds {
		holds[i].end()
	}
	for s := range c.kept {
		if c.kept[s].Load() != 0 {
			t.Fatalf("slot %d is kept for nobody", s)
		}
	}
	for i := uint64(1000); i < 2000; i++ {
		c.Put(i, number(int(i)))
		if i > 1000 && c.Get(1000) == nil {
			t.Fatal("a block in constant use was forgotten")
		}
	}
	if len(c.spilled) > 0 {
		t.Errorf("%d blocks are still spilled", len(c.spilled))
	}
}

// Blocks are let go beside a cache in use, and none changes before.
func TestKeep(t *testing.T) {
	poison(t)
	c := newCache(64, allocate)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for seed := range uint64(4) {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(seed, 1))
			k := keeper{c: c}
			for range 5000 {
				var kept []keptBlock
				for range r.IntN(12) {
					a := int(r.Uint64N(100))
					mu.Lock()
					b := c.Get(uint64(a))
					if b == nil {
						c.Put(uint64(a), number(a))
						b = c.Get(uint64(a))
					}
					k.keep(b)
					mu.Unlock()
					kept = append(kept, keptBlock{b, a})
				}
				for _, b := range kept {
					if b.b.U64(0) != uint64(b.x) {
						t.Errorf("block %d is another one", b.x)
						return
					}
				}
				k.end()
			}
		})
	}
	wg.Wait()
	checkCache(t, c)
}

// A large cache keeps all that it has room for, and gives the memory back when nobody has it any more.
func TestCacheLarge(t *testing.T) {
	const limit = 20_000
	c := New(limit, nil)
	c.atOnce = limit
	if n := c.Limit(); n > limit || n < limit-limit/64 {
		t.Errorf("room for %d blocks, not for %d", n, limit)
	}
	if n := len(c.memory); n > limit*dbytes.BlkSize {
		t.Errorf("%d bytes for %d blocks", n, limit)
	}
	for a := range uint64(2 * limit) {
		c.Put(a, number(int(a)))
	}
	there := 0
	for a := range uint64(2 * limit) {
		if b := c.Get(a); b != nil {
			if there++; b.U64(0) != a {
				t.Fatalf("block %d is another one", a)
			}
		}
	}
	if n := c.Limit(); there != n || there != c.Len() {
		t.Errorf("%d blocks of %d", there, n)
	}
	checkCache(t, c)
}

// With less memory than it should have a cache is smaller.
func TestCacheSmaller(t *testing.T) {
	if c := newCache(minCache, func(int) ([]byte, bool) { return nil, false }); c != nil {
		t.Error("a cache without memory")
	}
	if n := New(1<<31, nil).Limit(); n < minCache-minCache/64 { // 8 TiB: as much as the system gives
		t.Error(n)
	}
}

// A stream of blocks that are asked for once does not push out what is in use.
func TestCacheStream(t *testing.T) {
	c := newCache(1000, allocate)
	for a := range uint64(500) {
		c.Put(a, dbytes.ZeroBlk())
	}
	for a := uint64(1000); a < 20_000; a++ {
		c.Put(a, dbytes.ZeroBlk())
		c.Get(a)
		for i := range uint64(4) { // each of the 500 twice before the hand is round
			if b := (4*a + i) % 500; c.Get(b) == nil {
				t.Fatalf("block %d was forgotten when %d came", b, a)
			}
		}
	}
}

// However much of the cache is in use, a block that comes in finds a place, and what was there stays
// but for one.
func TestCacheInUse(t *testing.T) {
	const limit = 1 << 10
	c := newCache(limit, allocate)
	for a := uint64(0); a < 3*limit; a++ {
		c.Put(a, dbytes.ZeroBlk())
		if c.Get(a) == nil {
			t.Fatalf("block %d found no place", a)
		}
		for b := range a {
			c.Get(b)
		}
		if a >= limit && c.Len() != limit {
			t.Fatalf("%d of %d blocks are left", c.Len(), limit)
		}
	}
	checkCache(t, c)
}

// A cache takes memory that is ready, and else the place of what was there, while more is made ready; it does not wait
// for that, unless the device is slow.
func TestCacheGrows(t *testing.T) {
	const atOnce, limit = 2 * populated, 1000
	c := newCache(limit, allocate)
	c.atOnce = atOnce
	slow := false
	c.slow = func() bool { return slow }
	next := uint64(0)
	put := func() {
		t.Helper()
		c.Put(next, number(int(next)))
		if b := c.Get(next); b == nil || b.U64(0) != next {
			t.Fatalf("block %d is not there", next)
		}
		next++
	}
	has := func(n int) {
		t.Helper()
		checkCache(t, c)
		if c.Len() != n {
			t.Fatalf("%d blocks, not %d", c.Len(), n)
		}
		for a := range next {
			if b := c.Get(a); b != nil && b.U64(0) != a {
				t.Fatalf("block %d is another one", a)
			}
		}
	}

	c.growing.Store(true) // nobody makes any ready
	for range 5 * atOnce {
		put()
	}
	has(atOnce)

	k := keeper{c: c} // all that is there is kept: then it waits
	for a := range next {
		if b := c.Get(a); b != nil {
			k.keep(b)
		}
	}
	put()
	has(atOnce + 1)
	k.end()

	c.growing.Store(false)
	slow = true
	for range 300 {
		put()
	}
	has(atOnce + 301)

	slow = false
	for c.used < int(c.ready.Load()) {
		put()
	}
	n := c.Len()
	put() // which has more made ready
	has(n)
	for range 1 << 26 {
		if put(); c.Len() == limit {
			break
		}
		runtime.Gosched()
	}
	has(limit)
	put()
	has(limit)
}
