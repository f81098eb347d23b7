package blockmap

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"tansy/internal/runtime/dbytes"
	"tansy/internal/runtime/ddisk"
)

func block(v byte) *dbytes.Blk {
	return dbytes.BlkOf(bytes.Repeat([]byte{v}, dbytes.BlkSize))
}

// Map against a Go map and a slice: Put, Get, Len, AddrAt, BlkAt, Clear, List, Sorted.
func TestMap(t *testing.T) {
	for seed := uint64(1); seed <= 200; seed++ {
		r := rand.New(rand.NewPCG(seed, 0))
		m := New()
		want := map[uint64]*dbytes.Blk{}
		var order []uint64
		for n := r.IntN(60); n > 0; n-- {
			a := r.Uint64N(40)
			if r.IntN(50) == 0 {
				m.Clear()
				want, order = map[uint64]*dbytes.Blk{}, nil
			}
			b := block(byte(n))
			if _, ok := want[a]; !ok {
				order = append(order, a)
			}
			want[a] = b
			m.Put(a, b)
		}
		if m.Len() != uint64(len(order)) {
			t.Fatalf("seed %d: %d entries, want %d", seed, m.Len(), len(order))
		}
		for a := uint64(0); a < 40; a++ {
			if m.Get(a) != want[a] {
				t.Fatalf("seed %d: Get(%d)", seed, a)
			}
		}
		sorted := slices.Sorted(slices.Values(order))
		for name, c := range map[string]struct {
			l    *ddisk.BList
			want []uint64
		}{"List": {m.List(), order}, "Sorted": {m.Sorted(), sorted}} {
			if !slices.Equal(c.l.Addrs, c.want) || len(c.l.Blks) != len(c.want) {
				t.Fatalf("seed %d: %s: %v, want %v", seed, name, c.l.Addrs, c.want)
			}
			for i, a := range c.want {
				if c.l.BlkAt(uint64(i)) != want[a] {
					t.Fatalf("seed %d: %s: block %d", seed, name, a)
				}
			}
		}
		l := m.List()
		for i, a := range order {
			if m.AddrAt(uint64(i)) != a || m.BlkAt(uint64(i)) != want[a] {
				t.Fatalf("seed %d: entry %d", seed, i)
			}
		}
		if m.Put(order0(order), block(255)); len(order) > 0 && l.BlkAt(0) != want[order[0]] {
			t.Fatalf("seed %d: a list changed", seed)
		}
	}
}

func order0(o []uint64) uint64 {
	if len(o) == 0 {
		return 0
	}
	return o[0]
}

// TestLists: a list stays what it is, whatever happens to the map it came from.
func TestLists(t *testing.T) {
	for seed := uint64(1); seed <= 50; seed++ {
		r := rand.New(rand.NewPCG(seed, 0))
		m := New()
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
