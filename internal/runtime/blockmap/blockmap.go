// Package blockmap is the Go behind verified/trusted/blockmap.s.dfy: a map from block addresses to blocks.
package blockmap

import (
	"cmp"
	"math/bits"
	"runtime"
	"slices"

	"tansy/internal/runtime/dbytes"
	"tansy/internal/runtime/ddisk"
	"tansy/internal/runtime/lists"
)

// linear is the size up to which a map needs no index.
const linear = lists.Short

// Map maps block addresses to blocks and remembers the order of insertion. Many
// readers or one writer at a time.
//
// Every block written passes through some of these. So the index is the simplest table:
// open addressing, linear probing, at most half full, nothing is ever removed.
//
// Its blocks may be seen as long as they are in it (dbytes.Retain).
type Map struct {
	idx       []uint32 // place in addrs, plus 1; 0: free. A power of two of them; none while the map is small
	shift     uint     // 64 - log2 of the size of idx
	addrs     []uint64
	*retained // &none before the first Put
	watched   bool
}

// retained are the blocks of a map, in the order of insertion. A map that is dropped need not be cleared, but until the
// garbage collector finds it (watched) its blocks are kept.
type retained struct{ blks []*dbytes.Blk }

// release lets them go.
func (r *retained) release() {
	for _, b := range r.blks {
		dbytes.Release(b)
	}
	clear(r.blks)
	r.blks = r.blks[:0]
}

var none retained

// New returns an empty map.
func New() *Map { return &Map{retained: &none} }

func (m *Map) find(a uint64) int {
	if len(m.idx) == 0 {
		return slices.Index(m.addrs, a)
	}
	for h := m.start(a); ; h = (h + 1) & (len(m.idx) - 1) {
		switch i := m.idx[h]; {
		case i == 0:
			return -1
		case m.addrs[i-1] == a:
			return int(i - 1)
		}
	}
}

// start is where the search for address a begins.
func (m *Map) start(a uint64) int { return int(a * 0x9E3779B97F4A7C15 >> m.shift) }

// index makes address i, which is new, known to find.
func (m *Map) index(i int) {
	h := m.start(m.addrs[i])
	for m.idx[h] != 0 {
		h = (h + 1) & (len(m.idx) - 1)
	}
	m.idx[h] = uint32(i + 1)
}

// Put maps a to b.
func (m *Map) Put(a uint64, b *dbytes.Blk) {
	if m.retained == &none {
		m.addrs, m.retained = make([]uint64, 0, linear), &retained{make([]*dbytes.Blk, 0, linear)}
	}
	if dbytes.Retain(b) && !m.watched {
		m.watched = true
		runtime.AddCleanup(m, (*retained).release, m.retained)
	}
	if i := m.find(a); i >= 0 {
		dbytes.Release(m.blks[i])
		m.blks[i] = b
		return
	}
	m.addrs, m.blks = lists.Push(m.addrs, a), lists.Push(m.blks, b)
	switch n := len(m.addrs); {
	case n <= linear: // needs no index
	case 2*n > len(m.idx):
		size := bits.Len(uint(4*n - 1))
		m.idx, m.shift = zeros(m.idx, 1<<size), 64-uint(size)
		for i := range m.addrs {
			m.index(i)
		}
	default:
		m.index(n - 1)
	}
}

// zeros are n zeros, in the memory of s if there is so much.
func zeros(s []uint32, n int) []uint32 {
	if cap(s) < n {
		return make([]uint32, n)
	}
	s = s[:n]
	clear(s)
	return s
}

// Get returns the block of a, or nil.
func (m *Map) Get(a uint64) *dbytes.Blk {
	if i := m.find(a); i >= 0 {
		return m.blks[i]
	}
	return nil
}

// Len is the number of blocks.
func (m *Map) Len() uint64 { return uint64(len(m.addrs)) }

// AddrAt is the address that was i-th to be put.
func (m *Map) AddrAt(i uint64) uint64 { return m.addrs[i] }

// BlkAt is the block of the address that was i-th to be put.
func (m *Map) BlkAt(i uint64) *dbytes.Blk { return m.blks[i] }

// Addrs are the addresses in the order of insertion, which the caller does not change; it looks at them as long as the
// map does not change.
func (m *Map) Addrs() []uint64 { return m.addrs }

// Blks are the blocks, as Addrs.
func (m *Map) Blks() []*dbytes.Blk { return m.blks }

// Clear makes the map empty.
func (m *Map) Clear() {
	if m.retained != &none {
		m.release()
	}
	m.idx, m.addrs = m.idx[:0], m.addrs[:0]
}

// List returns the blocks in the order of insertion.
func (m *Map) List() *ddisk.BList {
	return &ddisk.BList{Addrs: slices.Clone(m.addrs), Blks: slices.Clone(m.blks)}
}

// Sorted returns the blocks in the order of their addresses.
func (m *Map) Sorted() *ddisk.BList {
	order := make([]int, len(m.addrs))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(m.addrs[i], m.addrs[j]) })
	l := &ddisk.BList{Addrs: make([]uint64, len(order)), Blks: make([]*dbytes.Blk, len(order))}
	for k, i := range order {
		l.Addrs[k], l.Blks[k] = m.addrs[i], m.blks[i]
	}
	return l
}
