// Package dlog is the Go behind verified/trusted/log.s.dfy: what the verified journal
// keeps in memory (maps of blocks, a cache, a mutex), and the records of its log.
package dlog

import (
	"cmp"
	"maps"
	"math/bits"
	"runtime"
	"slices"
	"sync"
	"time"

	"tansy/internal/lockorder"
	"tansy/internal/runtime/dbytes"
	"tansy/internal/runtime/ddisk"
)

// linear is the size up to which a BMap needs no index.
const linear = 8

// BMap maps block addresses to blocks and remembers the order of insertion. Many
// readers or one writer at a time.
//
// Every block written passes through some of these. So the index is the simplest table:
// open addressing, linear probing, at most half full, nothing is ever removed.
//
// Its blocks may be seen as long as they are in it (dbytes.Retain).
type BMap struct {
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

// NewBMap returns an empty map.
func NewBMap() *BMap { return &BMap{retained: &none} }

func (m *BMap) find(a uint64) int {
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
func (m *BMap) start(a uint64) int { return int(a * 0x9E3779B97F4A7C15 >> m.shift) }

// index makes address i, which is new, known to find.
func (m *BMap) index(i int) {
	h := m.start(m.addrs[i])
	for m.idx[h] != 0 {
		h = (h + 1) & (len(m.idx) - 1)
	}
	m.idx[h] = uint32(i + 1)
}

// Put maps a to b.
func (m *BMap) Put(a uint64, b *dbytes.Blk) {
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
	m.addrs, m.blks = push(m.addrs, a), push(m.blks, b)
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

// push is append, but a slice that is full grows to the length that longer says. By a quarter at a time, as append has
// long ones grow, it would leave more than twice as much behind for the garbage collector.
func push[T any](s []T, x T) []T {
	if n := len(s); n == cap(s) {
		s = slices.Grow(s, longer(n)-n)
	}
	return append(s, x)
}

// longer is how long a list of n becomes when it grows: short ones, as most are, to four times that.
func longer(n int) int {
	if n < 256 {
		return max(linear, 4*n)
	}
	return 2 * n
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
func (m *BMap) Get(a uint64) *dbytes.Blk {
	if i := m.find(a); i >= 0 {
		return m.blks[i]
	}
	return nil
}

// Len is the number of blocks.
func (m *BMap) Len() uint64 { return uint64(len(m.addrs)) }

// AddrAt is the address that was i-th to be put.
func (m *BMap) AddrAt(i uint64) uint64 { return m.addrs[i] }

// BlkAt is the block of the address that was i-th to be put.
func (m *BMap) BlkAt(i uint64) *dbytes.Blk { return m.blks[i] }

// Clear makes the map empty.
func (m *BMap) Clear() {
	if m.retained != &none {
		m.release()
	}
	m.idx, m.addrs = m.idx[:0], m.addrs[:0]
}

// List returns the blocks in the order of insertion.
func (m *BMap) List() *ddisk.BList {
	return &ddisk.BList{Addrs: slices.Clone(m.addrs), Blks: slices.Clone(m.blks)}
}

// Sorted returns the blocks in the order of their addresses.
func (m *BMap) Sorted() *ddisk.BList {
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

// Mutex is a mutex with condition variables.
type Mutex struct {
	mu lockorder.Mutex[lockorder.Journal]
	c  [5]sync.Cond
}

// NewMutex returns an unlocked mutex.
func NewMutex() *Mutex {
	m := &Mutex{}
	for i := range m.c {
		m.c[i].L = &m.mu
	}
	return m
}

// Lock takes the mutex.
func (m *Mutex) Lock() { m.mu.Lock() }

// Unlock gives it back.
func (m *Mutex) Unlock() { m.mu.Unlock() }

// Wait gives the mutex back, waits to be woken on c, and takes it again.
func (m *Mutex) Wait(c uint32) {
	if lockorder.On {
		mayWait(c)
	}
	m.c[c].Wait()
}

// mayWait checks what the caller holds beside the mutex, by what the conditions are for (verified/journal/state.dfy).
func mayWait(c uint32) {
	switch c {
	case 0, 1:
		lockorder.WaitWith[lockorder.Idle, lockorder.Journal]()
	case 2, 3:
		lockorder.WaitWith[lockorder.Durable, lockorder.Journal]()
	default:
		lockorder.WaitWith[lockorder.Room, lockorder.Journal]()
	}
}

// WakeOne wakes one that waits on c.
func (m *Mutex) WakeOne(c uint32) { m.c[c].Signal() }

// WakeAll wakes all that wait on c.
func (m *Mutex) WakeAll(c uint32) { m.c[c].Broadcast() }

// Notes are fifteen numbers, which belong to the holder of the journal's mutex, and a list
// of wishes, which anybody may add to. Two of the numbers grow by themselves.
type Notes struct {
	x   [15]uint64
	set [2]time.Time // of numbers age and since

	mu      lockorder.Mutex[lockorder.Notes]
	bulk    map[uint64]struct{}
	damaged map[uint64]struct{}
	tell    func(a uint64)
}

// maxWishes bounds the list of wishes. Most are granted or refused soon. Those for blocks
// that are not written after all (an aborted transaction's) stay, until there are so many
// that all are forgotten.
const maxWishes = 1 << 16

// NewNotes returns notes that are all 0, and no wishes.
func NewNotes() *Notes {
	return &Notes{bulk: map[uint64]struct{}{}, damaged: map[uint64]struct{}{}}
}

// age and since are the numbers that grow: the milliseconds since they were set, whatever to.
const age, since = 10, 11

// Get returns number i.
func (n *Notes) Get(i uint32) uint64 {
	if i == age || i == since {
		now, set := time.Now(), n.set[i-age] // the clock that never goes back may have stood still while the machine did
		return uint64(max(now.Sub(set), now.Round(0).Sub(set.Round(0)).Abs()).Milliseconds())
	}
	return n.x[i]
}

// Set changes number i.
func (n *Notes) Set(i uint32, x uint64) {
	if i == age || i == since {
		n.set[i-age] = time.Now()
		return
	}
	n.x[i] = x
}

// Wish asks that the next contents of block a go straight home and not through the log.
func (n *Notes) Wish(a uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.bulk) == maxWishes {
		clear(n.bulk)
	}
	n.bulk[a] = struct{}{}
}

// Bulk tells whether there is a wish for block a, and strikes it out.
func (n *Notes) Bulk(a uint64) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	_, ok := n.bulk[a]
	delete(n.bulk, a)
	return ok
}

// maxDamaged bounds the list of damaged blocks.
const maxDamaged = 1 << 16

// Damaged notes that block a was found damaged.
func (n *Notes) Damaged(a uint64) {
	n.mu.Lock()
	_, known := n.damaged[a]
	if !known && len(n.damaged) < maxDamaged {
		n.damaged[a] = struct{}{}
	}
	tell := n.tell
	n.mu.Unlock()
	if !known && tell != nil {
		tell(a)
	}
}

// IsDamaged tells whether block a was found damaged.
func (n *Notes) IsDamaged(a uint64) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	_, known := n.damaged[a]
	return known
}

// OnDamage has tell called for every block that is found damaged, for most of them once. The journal's mutex may
// be held then.
func (n *Notes) OnDamage(tell func(a uint64)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.tell = tell
}

// DamagedBlocks lists, in order, the blocks that were found damaged, as far as there was room to note them.
func (n *Notes) DamagedBlocks() []uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Sorted(maps.Keys(n.damaged))
}
