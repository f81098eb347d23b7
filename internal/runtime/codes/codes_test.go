package codes

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"tansy/test/kit/replay"
)

func TestCodes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	c := New()
	var want []Node
	for range 1000 {
		e := Node{r.Uint64N(1 << 40), r.Uint64(), r.Uint64()}
		c.Add(e.X, e.C0, e.C1)
		want = append(want, e)
	}
	check := func() {
		t.Helper()
		if c.Len() != uint64(len(want)) {
			t.Fatal(c.Len())
		}
		for i, e := range want {
			if x, c0, c1 := c.At(uint64(i)); (Node{x, c0, c1}) != e {
				t.Fatalf("code %d is %v, not %v", i, Node{x, c0, c1}, e)
			}
		}
	}
	check()
	c.Sort()
	slices.SortFunc(want, func(a, b Node) int { return int(a.X) - int(b.X) })
	check()
}

// TestJoin: lists that were joined in any order, to the same ones or others, added to, and sorted, have what they
// should.
func TestJoin(t *testing.T) {
	seed := replay.Seed(t)
	r := rand.New(rand.NewPCG(seed, 2))
	type pair struct {
		c    *Codes
		want []Node
	}
	for range 200 {
		all := []pair{{c: New()}}
		for range 60 {
			i := r.IntN(len(all))
			p := &all[i]
			switch r.IntN(5) {
			case 0:
				all = append(all, pair{c: New()})
			case 1:
				e := Node{r.Uint64N(1 << 40), r.Uint64(), r.Uint64()}
				p.c.Add(e.X, e.C0, e.C1)
				p.want = append(slices.Clip(p.want), e)
			case 2:
				p.c.Sort()
				p.want = slices.SortedFunc(slices.Values(p.want), func(a, b Node) int { return cmp.Compare(a.X, b.X) })
			default:
				q := all[r.IntN(len(all))]
				if len(p.want) > 0 { // else it is q
					all = append(all, pair{Join(p.c, q.c), slices.Concat(p.want, q.want)})
				} else if Join(p.c, q.c) != q.c {
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
	some := New()
	for i := range uint64(500) {
		some.Add(i, i, i)
	}
	if n := testing.AllocsPerRun(10, func() {
		c := New()
		for range 32 {
			c = Join(c, some)
		}
	}); n > 1+32+7 {
		t.Errorf("%v allocations", n)
	}
}
