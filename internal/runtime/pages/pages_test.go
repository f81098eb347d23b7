package pages

import (
	"math/rand/v2"
	"testing"

	"tansy/internal/runtime/blockmap"
	"tansy/internal/runtime/codes"
	"tansy/internal/runtime/dbytes"
)

func randomBlk(r *rand.Rand) *dbytes.Blk {
	b := make([]byte, dbytes.BlkSize)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return dbytes.BlkOf(b)
}

// TestPages: what is put is there, but for what belongs to an older version, and the pages that change with one.
func TestPages(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 3))
	g := New(1)
	const n = 1000 // home blocks
	if v, r0, r1 := g.Root(); v != 0 || r0 != 0 || r1 != 0 {
		t.Fatal(g.Root())
	}
	pages := map[uint64]*dbytes.Blk{}
	for p := range uint64(4) {
		pages[p] = randomBlk(r)
		g.Put(0, p, pages[p])
	}
	for p, b := range pages { // twice: the page that was asked for last is kept at hand
		for range 2 {
			if got := g.Get(0, p); got == nil || string(got.Data()) != string(b.Data()) {
				t.Errorf("page %d is not what was put", p)
			}
		}
	}
	if g.Get(0, 1) == nil {
		t.Error("page 1 is not there")
	}
	h := codes.New()
	h.Add(7, 1, 2)
	h.Add(8, 3, 4)
	g.HoldAll(h)
	c := codes.New()
	c.Add(7, 1, 2)   // in page 0
	c.Add(n+0, 5, 6) // page 0 itself, in page 3, the root (1000 / 255)
	const home = 50
	drop := blockmap.New()
	drop.Put(home+7, dbytes.ZeroBlk())
	g.Next(c, n, 9, 10, drop, home)
	if g.Get(0, 1) != nil {
		t.Error("the page of an older version that was asked for last")
	}
	if v, r0, r1 := g.Root(); v != 1 || r0 != 9 || r1 != 10 {
		t.Error(g.Root())
	}
	if has, _, _, v, r0, r1 := g.Look(7); has || v != 1 || r0 != 9 || r1 != 10 {
		t.Error("the code of a block that is in the tree is still held")
	}
	if has, c0, c1, v, r0, r1 := g.Look(8); !has || c0 != 3 || c1 != 4 || v != 1 || r0 != 9 || r1 != 10 {
		t.Error("the code of a block that is not in the tree is not held any more")
	}
	for p, b := range pages {
		got := g.Get(1, p)
		if p == 0 || p == 3 {
			if got != nil {
				t.Errorf("page %d has changed, and its older version is still there", p)
			}
			g.Put(0, p, b)
			if g.Get(1, p) != nil {
				t.Errorf("page %d of the older version is taken for the newest", p)
			}
		} else if got == nil || string(got.Data()) != string(b.Data()) {
			t.Errorf("page %d is not what was put", p)
		}
	}
	if g.Get(0, 1) != nil {
		t.Error("a page of a version that is not the newest")
	}
	g.Put(1, 0, pages[1])
	if got := g.Get(1, 0); got == nil || string(got.Data()) != string(pages[1].Data()) {
		t.Error("a page of the newest version is not there")
	}
	g.Begin(11, 12)
	if v, r0, r1 := g.Root(); v != 2 || r0 != 11 || r1 != 12 || g.Get(2, 1) != nil {
		t.Error("the pages of another tree are still there")
	}
}

// TestHeld: the codes that are held are, through any changes, those that a map has.
func TestHeld(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 4))
	g := New(1)
	const n, home = 300, 50
	version := uint64(0)
	want := map[uint64][2]uint64{}
	for range 2000 {
		c := codes.New()
		for x, k := r.Uint64N(n), r.Uint64N(40); k > 0; k-- {
			c.Add(x, r.Uint64(), r.Uint64())
			if x++; r.IntN(8) == 0 || x >= n {
				x = r.Uint64N(n)
			}
		}
		if r.IntN(2) == 0 {
			g.HoldAll(c)
			for _, e := range c.Nodes() {
				want[e.X] = [2]uint64{e.C0, e.C1}
			}
		} else {
			drop := blockmap.New()
			for _, e := range c.Nodes() {
				drop.Put(home+e.X, dbytes.ZeroBlk())
				delete(want, e.X)
			}
			version++
			g.Next(codes.New(), n, 0, version, drop, home)
		}
		if r.IntN(20) == 0 { // all of them
			drop := blockmap.New()
			for x := range uint64(n) {
				drop.Put(home+x, dbytes.ZeroBlk())
			}
			version++
			g.Next(codes.New(), n, 0, version, drop, home)
			clear(want)
		}
		for x := range uint64(n + 1) {
			w, ok := want[x]
			if has, c0, c1, v, r0, r1 := g.Look(x); has != ok || w != [2]uint64{c0, c1} || v != version || r0 != 0 || r1 != version {
				t.Fatalf("node %d: %v %v, not %v %v", x, has, [2]uint64{c0, c1}, ok, w)
			}
		}
	}
}
