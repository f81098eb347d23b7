package dlog

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"

	"tansy/disk"
	"tansy/internal/runtime/dbytes"
	"tansy/internal/runtime/ddisk"
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
		t.Fatalf("%d blocks, %d found, %d spilled of %d; %d slots were used, %d of them are free, and %d gone", c.len, n, len(c.spilled), len(c.order), c.used, free, gone)
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
// what is used. Blocks that are kept for a Hold do not change before it ends.
func TestCache(t *testing.T) {
	poison(t)
	for seed := range uint64(4) {
		testCache(t, seed, 96, 10)
		testCache(t, seed, 40, 100) // more is kept at times than there are slots
	}
}

type keptBlock struct {
	b *dbytes.Blk
	x int
}

func testCache(t *testing.T, seed uint64, slots, keep int) {
	r := rand.New(rand.NewPCG(seed, 0))
	c := newCache(slots, allocate)
	last := map[uint64]int{}
	var holds [8]struct {
		*Hold
		kept []keptBlock
	}
	for i := range holds {
		holds[i].Hold = NewHold()
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
			h.Keep(c, b)
			h.kept = append(h.kept, keptBlock{b, last[a]})
		}
		if c.Len() > c.Limit()+minCache {
			t.Fatal(c.Len())
		}
		if r.IntN(keep) == 0 {
			h := &holds[r.IntN(len(holds))]
			for _, k := range h.kept {
				if k.b.U64(0) != uint64(k.x) {
					t.Fatalf("seed %d: a block changed before its Hold ended", seed)
				}
			}
			h.End()
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
		holds[i].End()
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

// TestSmall: what Small returns is the caller's own up to EndSmall, also of more than are kept; a Hold of it passes
// none on.
func TestSmall(t *testing.T) {
	poison(t)
	h, to := NewHold(), NewHold()
	for range 3 {
		var all []*dbytes.Bytes
		for i := range byte(3 * maxSmall) {
			b := h.Small()
			if len(b.Data) != 256 {
				t.Fatal(len(b.Data))
			}
			copy(b.Data, bytes.Repeat([]byte{i}, 256))
			all = append(all, b)
		}
		mem := all[0].Data
		h.Pass(to)
		to.End()
		h.End()
		for i, b := range all {
			if string(b.Data) != strings.Repeat(string([]byte{byte(i)}), 256) {
				t.Errorf("number %d changed", i)
			}
		}
		h.EndSmall()
		if all[0].Data != nil || mem[0] == 0 {
			t.Error("what nobody sees is not spoiled")
		}
	}
	if testing.AllocsPerRun(100, func() { h.Small(); h.EndSmall() }) > 0 {
		t.Error("its memory is not used again")
	}
}

// TestSmallLast: the memory that Small gave out last is used again once nobody sees it, but no other; the view of it is
// another one.
func TestSmallLast(t *testing.T) {
	poison(t)
	h := NewHold()
	a := h.Small()
	a.Data[0] = 1
	b := h.Small()
	b.Data[0] = 2
	mem := b.Data
	h.EndLast(a.Data)
	if a.Data[0] != 1 || b.Data[0] != 2 {
		t.Error("what was not given out last is spoiled")
	}
	b.Data = nil // it is taken over
	h.EndLast(mem)
	if a.Data[0] != 1 || mem[0] == 2 {
		t.Error("not spoiled, or another one is")
	}
	c := h.Small()
	if c == b || &c.Data[0] != &mem[0] || len(c.Data) != 256 || b.Data != nil {
		t.Error("its memory is not used again, or is seen by its last owner")
	}
	c.Data = nil // taken over, and not seen to the end
	h.EndSmall()
	for range 2 {
		if x := h.Small(); len(x.Data) != 256 || x == b || x == c {
			t.Error("what was taken over is seen by its last owner")
		}
	}
	if testing.AllocsPerRun(320, func() { m := h.Small().Data; h.small[h.lent-1].b.Data = nil; h.EndLast(m) }) > 0 {
		t.Error("views are allocated one by one")
	}
}

// TestHoldCopy: a copy stays until the Hold ends, or longer if a map has it, but not longer than that.
func TestHoldCopy(t *testing.T) {
	poison(t)
	h, m, b := NewHold(), NewBMap(), block(1)
	x, y := h.Copy(b), h.Copy(b)
	if x.Data[0] ^= 1; *b != *block(1) || y.Data[0] != b.Data()[0] {
		t.Fatal("a copy is not the caller's own")
	}
	seen := y.Data
	m.Put(5, dbytes.Freeze(x))
	want := *m.Get(5)
	h.EndSeen()
	if *dbytes.BlkOf(seen) != *b {
		t.Error("a copy is spoiled before the Hold ends")
	}
	h.End()
	if *dbytes.BlkOf(seen) == *b {
		t.Error("the memory of a copy that nobody sees is not used again")
	}
	for range 3000 { // more than there are in all
		h.Copy(b)
	}
	if *m.Get(5) != want {
		t.Error("a copy that a map has is spoiled")
	}
	h.End()
	k := m.Get(5)
	m.Clear()
	if *k == want {
		t.Error("the memory of a copy that a map had is not used again")
	}
}

// TestHold: the memory of a block that is not kept is used again, that of one that is kept is not; and a block of other
// memory may be kept, too.
func TestHold(t *testing.T) {
	poison(t)
	c := newCache(minCache, allocate)
	h, h2 := NewHold(), NewHold()
	c.Put(1, block(1))
	b := c.Get(1)
	h.Keep(c, b)
	h2.Keep(c, b)
	other := block(9)
	h.Keep(c, other)
	if h.Len() != 1 || h2.Len() != 1 { // the other is the garbage collector's
		t.Error(h.Len(), h2.Len())
	}
	for _, forget := range []func(){
		func() { c.Put(1, block(2)) },
		func() { c.Forget(1) },
		func() {
			for a := range uint64(5 * minCache) {
				c.Put(100+a, block(3))
			}
		},
		func() { h.End(); c.Put(2, block(4)) },
		func() { h2.Pass(h); h2.End() },
		func() { h.Pass(h2); h.End() },
	} {
		forget()
		for a := range uint64(2 * minCache) {
			c.Put(100+a, block(5))
		}
		if *b != *block(1) {
			t.Fatal("a block that is kept changed")
		}
		checkCache(t, c)
	}
	h2.End()
	for a := range uint64(2 * minCache) {
		c.Put(100+a, block(6))
	}
	if *b == *block(1) || *other != *block(9) {
		t.Error("the memory of a block that was kept is not used again, or another's is")
	}
	c.Put(7, block(7))
	b = c.Get(7)
	c.Forget(7)
	if *b == *block(7) {
		t.Error("what nobody sees is not spoiled")
	}
}

// Holds end beside a cache in use, and no block changes before.
func TestHolds(t *testing.T) {
	poison(t)
	c := newCache(64, allocate)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for seed := range uint64(4) {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(seed, 1))
			h := NewHold()
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
					h.Keep(c, b)
					mu.Unlock()
					kept = append(kept, keptBlock{b, a})
				}
				for _, k := range kept {
					if k.b.U64(0) != uint64(k.x) {
						t.Errorf("block %d is another one", k.x)
						return
					}
				}
				h.End()
			}
		})
	}
	wg.Wait()
	checkCache(t, c)
}

// What a list of blocks lies in is used again when the Hold ends to which it was taken, and not before.
func TestTake(t *testing.T) {
	poison(t)
	d := ddisk.New(disk.NewMem(64 * disk.BlockSize))
	for a := range uint64(64) {
		d.Write(a, number(int(a)))
	}
	h := NewHold()
	_, untaken := d.ReadAny(16, 16)
	for round := range 20 {
		var all []*ddisk.BList
		for i := range uint64(4) {
			ok, l := d.ReadRun(32+4*i, 16)
			if !ok {
				t.Fatal(d.ReadErr())
			}
			h.Take(l)
			h.Take(l) // again: nothing
			all = append(all, l)
		}
		for _, l := range append(all, untaken) {
			first := l.BlkAt(0).U64(0)
			for i := range l.Len() {
				if x := l.BlkAt(i).U64(0); x != first+i || first == 0 {
					t.Fatalf("round %d: block %d is %d", round, i, x)
				}
			}
		}
		m := h.Mark()
		_, late := d.ReadRun(48, 16)
		h.Take(late)
		if h.EndSince(m); late.BlkAt(0).U64(0) == 48 || all[0].BlkAt(0).U64(0) != 32 {
			t.Error("not what was taken since the mark is given back")
		}
		b := all[0].BlkAt(0)
		h.End()
		if b.U64(0) == 32 {
			t.Error("the memory is not given back")
		}
	}
}

// A large cache keeps all that it has room for, and gives the memory back when nobody has it any more.
func TestCacheLarge(t *testing.T) {
	const limit = 20_000
	c := NewCache(limit, nil)
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
	if n := NewCache(1<<31, nil).Limit(); n < minCache-minCache/64 { // 8 TiB: as much as the system gives
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

	h := NewHold() // all that is there is kept: then it waits
	for a := range next {
		if b := c.Get(a); b != nil {
			h.Keep(c, b)
		}
	}
	put()
	has(atOnce + 1)
	h.End()

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
