package dlog

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"tansy/internal/runtime/dbytes"
	"tansy/test/kit/replay"
)

func randomBlk(r *rand.Rand) *dbytes.Blk {
	b := make([]byte, dbytes.BlkSize)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return dbytes.BlkOf(b)
}

// TestCode: a code is the same for the same node and contents, in every epoch and opening, and another one for
// other contents, nodes, and keys.
func TestCode(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	s := NewSeal([32]byte{1}, [16]byte{1}, 0)
	seen := map[[2]uint64]int{}
	for i := range 1000 {
		x, b := r.Uint64(), randomBlk(r)
		c0, c1 := s.Code(x, b)
		s.NewEpoch()
		if d0, d1 := NewSeal([32]byte{1}, [16]byte{2}, 0).Code(x, b); d0 != c0 || d1 != c1 {
			t.Fatal("another code for the same block, of another opening")
		}
		if d0, d1 := s.Code(x, b); d0 != c0 || d1 != c1 {
			t.Fatal("another code for the same block, in another epoch")
		}
		for _, other := range []func() (uint64, uint64){
			func() (uint64, uint64) { return s.Code(x, flip(b, r.IntN(8*dbytes.BlkSize))) },
			func() (uint64, uint64) { return s.Code(x^1<<r.IntN(64), b) },
			func() (uint64, uint64) { return NewSeal([32]byte{2}, [16]byte{1}, 0).Code(x, b) },
		} {
			c0, c1 := other()
			seen[[2]uint64{c0, c1}]++
		}
		seen[[2]uint64{c0, c1}]++
		if n := len(seen); n != 4*(i+1) {
			t.Fatalf("two codes of %d are the same", 4*(i+1))
		}
	}
}

func TestCodes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	c := NewCodes()
	var want []nodeCode
	for range 1000 {
		e := nodeCode{r.Uint64N(1 << 40), r.Uint64(), r.Uint64()}
		c.Add(e.x, e.c0, e.c1)
		want = append(want, e)
	}
	check := func() {
		t.Helper()
		if c.Len() != uint64(len(want)) {
			t.Fatal(c.Len())
		}
		for i, e := range want {
			if x, c0, c1 := c.At(uint64(i)); (nodeCode{x, c0, c1}) != e {
				t.Fatalf("code %d is %v, not %v", i, nodeCode{x, c0, c1}, e)
			}
		}
	}
	check()
	c.Sort()
	slices.SortFunc(want, func(a, b nodeCode) int { return int(a.x) - int(b.x) })
	check()
}

// TestJoinCodes: lists that were joined in any order, to the same ones or others, added to, and sorted, have what they
// should.
func TestJoinCodes(t *testing.T) {
	seed := replay.Seed(t)
	r := rand.New(rand.NewPCG(seed, 2))
	type pair struct {
		c    *Codes
		want []nodeCode
	}
	for range 200 {
		all := []pair{{c: NewCodes()}}
		for range 60 {
			i := r.IntN(len(all))
			p := &all[i]
			switch r.IntN(5) {
			case 0:
				all = append(all, pair{c: NewCodes()})
			case 1:
				e := nodeCode{r.Uint64N(1 << 40), r.Uint64(), r.Uint64()}
				p.c.Add(e.x, e.c0, e.c1)
				p.want = append(slices.Clip(p.want), e)
			case 2:
				p.c.Sort()
				p.want = slices.SortedFunc(slices.Values(p.want), func(a, b nodeCode) int { return cmp.Compare(a.x, b.x) })
			default:
				q := all[r.IntN(len(all))]
				if len(p.want) > 0 { // else it is q
					all = append(all, pair{JoinCodes(p.c, q.c), slices.Concat(p.want, q.want)})
				} else if JoinCodes(p.c, q.c) != q.c {
					t.Fatal("behind nothing it is another one")
				}
			}
			for k, p := range all {
				if !slices.Equal(p.c.list, p.want) {
					t.Fatalf("list %d of %d is %v, not %v", k, len(all), p.c.list, p.want)
				}
			}
		}
	}
	// 32 times a little more, as the codes of pending groups are
	some := NewCodes()
	for i := range uint64(500) {
		some.Add(i, i, i)
	}
	if n := testing.AllocsPerRun(10, func() {
		c := NewCodes()
		for range 32 {
			c = JoinCodes(c, some)
		}
	}); n > 1+32+7 {
		t.Errorf("%v allocations", n)
	}
}

// TestPages: what is put is there, but for what belongs to an older version, and the pages that change with one.
func TestPages(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 3))
	g := NewPages(1)
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
	h := NewCodes()
	h.Add(7, 1, 2)
	h.Add(8, 3, 4)
	g.HoldAll(h)
	c := NewCodes()
	c.Add(7, 1, 2)   // in page 0
	c.Add(n+0, 5, 6) // page 0 itself, in page 3, the root (1000 / 255)
	const home = 50
	drop := NewBMap()
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
	g := NewPages(1)
	const n, home = 300, 50
	version := uint64(0)
	want := map[uint64][2]uint64{}
	for range 2000 {
		c := NewCodes()
		for x, k := r.Uint64N(n), r.Uint64N(40); k > 0; k-- {
			c.Add(x, r.Uint64(), r.Uint64())
			if x++; r.IntN(8) == 0 || x >= n {
				x = r.Uint64N(n)
			}
		}
		if r.IntN(2) == 0 {
			g.HoldAll(c)
			for _, e := range c.list {
				want[e.x] = [2]uint64{e.c0, e.c1}
			}
		} else {
			drop := NewBMap()
			for _, e := range c.list {
				drop.Put(home+e.x, dbytes.ZeroBlk())
				delete(want, e.x)
			}
			version++
			g.Next(NewCodes(), n, 0, version, drop, home)
		}
		if r.IntN(20) == 0 { // all of them
			drop := NewBMap()
			for x := range uint64(n) {
				drop.Put(home+x, dbytes.ZeroBlk())
			}
			version++
			g.Next(NewCodes(), n, 0, version, drop, home)
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

func BenchmarkCode(b *testing.B) {
	s := NewSeal([32]byte{1}, [16]byte{1}, 0)
	blk := dbytes.ZeroBlk()
	b.SetBytes(dbytes.BlkSize)
	b.ReportAllocs()
	for i := range b.N {
		s.Code(uint64(i), blk)
	}
}
