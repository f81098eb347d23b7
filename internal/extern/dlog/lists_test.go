package dlog

import (
	"math/rand/v2"
	"slices"
	"testing"

	"tansy/internal/extern/dbytes"
	"tansy/internal/extern/ddisk"
)

// TestBMapLists: a list stays what it is, whatever happens to the map it came from.
func TestBMapLists(t *testing.T) {
	for seed := uint64(1); seed <= 50; seed++ {
		r := rand.New(rand.NewPCG(seed, 0))
		m := NewBMap()
		for range 1 + r.IntN(30) {
			m.Put(r.Uint64(), block(byte(r.Uint32())))
		}
		lists := []*ddisk.BList{m.List(), m.Sorted()}
		var addrs [2][]uint64
		var blks [2][]*dbytes.Blk
		for i, l := range lists {
			addrs[i], blks[i] = slices.Clone(l.Addrs), slices.Clone(l.Blks)
		}
		if !slices.IsSorted(lists[1].Addrs) {
			t.Fatalf("seed %d: Sorted is not", seed)
		}
		m.Put(m.AddrAt(0), block(1))
		m.Put(r.Uint64(), block(2))
		m.Clear()
		for range 40 {
			m.Put(r.Uint64(), block(3))
		}
		for i, l := range lists {
			if !slices.Equal(l.Addrs, addrs[i]) || !slices.Equal(l.Blks, blks[i]) {
				t.Fatalf("seed %d: list %d has changed", seed, i)
			}
		}
	}
}

// TestParse: Parse takes any block, and says the same of the same bytes. What it
// returns has as many addresses as it says.
func TestParse(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 0))
	for range 2000 {
		b := dbytes.NewBytes(dbytes.BlkSize)
		for i := range b.Data {
			b.Data[i] = byte(r.Uint32())
		}
		magic, n, m := r.IntN(4) > 0, r.Uint64N(600), r.Uint64N(300)
		if magic {
			copy(b.Data, []string{descMagic, oldDescMagic}[r.IntN(2)])
			b.PutU32(40, uint32(n))
			b.PutU32(44, uint32(m))
		}
		blk := dbytes.Freeze(b)
		d, same := Parse(blk), Parse(dbytes.Freeze(blk.Thaw()))
		if (d != nil) != (magic && n+m <= GroupMax) || (d == nil) != (same == nil) {
			t.Fatal(magic, n, m, d, same)
		}
		if d == nil {
			continue
		}
		if d.N() != n || d.M() != m || d.Sq() != same.Sq() || d.Pos() != same.Pos() {
			t.Fatal(n, d.N(), m, d.M())
		}
		for i := range n {
			if d.Addr(i) != same.Addr(i) {
				t.Fatal(i)
			}
		}
		for i := range m {
			if d.Dir(i) != same.Dir(i) {
				t.Fatal(i)
			}
		}
	}
}
