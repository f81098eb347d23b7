package hold

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"

	"tansy/disk"
	"tansy/internal/runtime/blockmap"
	"tansy/internal/runtime/cache"
	"tansy/internal/runtime/dbytes"
	"tansy/internal/runtime/ddisk"
)

// minCache is the least number of blocks of a cache.
const minCache = 1024

func block(v byte) *dbytes.Blk {
	return dbytes.BlkOf(bytes.Repeat([]byte{v}, dbytes.BlkSize))
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

type keptBlock struct {
	b *dbytes.Blk
	x int
}

// TestSmall: what Small returns is the caller's own up to EndSmall, also of more than are kept; a Hold of it passes
// none on.
func TestSmall(t *testing.T) {
	poison(t)
	h, to := New(), New()
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
	h := New()
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
	h, m, b := New(), blockmap.New(), block(1)
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

// TestCopyTo: all of a block is copied, and nothing beside it.
func TestCopyTo(t *testing.T) {
	mem := make([]byte, dbytes.BlkSize+1)
	dst := &dbytes.Bytes{Data: mem[:dbytes.BlkSize]}
	if New().CopyTo(dst, block(7)); *dbytes.BlkOf(dst.Data) != *block(7) || mem[dbytes.BlkSize] != 0 {
		t.Error("not the block is copied, or more than that")
	}
}

// TestHold: the memory of a block that is not kept is used again, that of one that is kept is not; and a block of other
// memory may be kept, too.
func TestHold(t *testing.T) {
	poison(t)
	c := cache.New(minCache, nil)
	h, h2 := New(), New()
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
	c := cache.New(minCache, nil)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for seed := range uint64(4) {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(seed, 1))
			h := New()
			for range 5000 {
				var kept []keptBlock
				for range r.IntN(12) {
					a := int(r.Uint64N(minCache + 500))
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
}

// A map keeps its blocks until they are replaced, or it is cleared or dropped; a Hold keeps what a map gave.
func TestRetains(t *testing.T) {
	poison(t)
	src := dbytes.Source(make([]byte, 100*dbytes.BlkSize))
	base := dbytes.WritesHeld()
	held := func(want int) {
		t.Helper()
		if n := dbytes.WritesHeld() - base; n != want {
			t.Fatalf("%d blocks are held, not %d", n, want)
		}
	}
	copied := func(i, x uint64) *dbytes.Blk {
		c := src.CopyOf(i * dbytes.BlkSize)
		c.PutU64(0, x)
		return dbytes.Freeze(c)
	}
	m, m2 := blockmap.New(), blockmap.New()
	for i := range uint64(40) {
		b := copied(i, i)
		m.Put(i, b)
		if i < 10 {
			m2.Put(i, b)
		}
	}
	m.Put(100, block(1)) // not of the pool
	src.LetGo()
	held(40)
	for i := range uint64(20) {
		m.Put(i, copied(i, 1000+i))
	}
	src.LetGo()
	held(50) // the first ten are in m2 yet
	h, ahead, c := New(), New(), cache.New(16, nil)
	h.Keep(c, m2.Get(3))
	ahead.Keep(c, m2.Get(4))
	ahead.Keep(c, m.Get(100))
	three, four := m2.Get(3), m2.Get(4)
	m2.Clear()
	held(42)
	ahead.End()
	held(41)
	if three.U64(0) != 3 || four.U64(0) == 4 || m.Get(5).U64(0) != 1005 {
		t.Error("not what nobody may see is used again")
	}
	h.End()
	held(40)
	if m.Get(100) == nil || three.U64(0) == 3 {
		t.Error("the Hold has not ended")
	}
	m2.Put(1, copied(1, 1))
	src.LetGo()
	held(41)
	runtime.KeepAlive(m)
	m = nil
	for n := 0; dbytes.WritesHeld()-base > 1; n++ { // until the garbage collector has found it
		if n == 1000 {
			t.Fatal("a map that was dropped keeps its blocks")
		}
		runtime.GC()
	}
	if m2.Get(1).U64(0) != 1 {
		t.Error("a map that was not dropped does not keep its blocks")
	}
	m2.Clear()
	held(0)
}

// What a list of blocks lies in is used again when the Hold ends to which it was taken, and not before.
func TestTake(t *testing.T) {
	poison(t)
	d := ddisk.New(disk.NewMem(64 * disk.BlockSize))
	for a := range uint64(64) {
		d.Write(a, number(int(a)))
	}
	h, ahead := New(), New()
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
		_, late := d.ReadRun(48, 16)
		ahead.Take(late)
		if ahead.End(); late.BlkAt(0).U64(0) == 48 || all[0].BlkAt(0).U64(0) != 32 {
			t.Error("not what the other Hold has taken is given back")
		}
		b := all[0].BlkAt(0)
		h.End()
		if b.U64(0) == 32 {
			t.Error("the memory is not given back")
		}
	}
}
