// Package cache is the Go behind verified/trusted/cache.s.dfy: a cache of blocks.
package cache

import (
	"runtime"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"tansy/internal/runtime/dbytes"
)

// Cache holds up to a fixed number of blocks and forgets those not asked for lately. The
// caller has a mutex around it (the journal's), but for what Holds do.
//
// It keeps copies, in memory outside of Go's heap, where the garbage collector neither finds nor
// counts them: with a cache in the heap it runs as often as the little that is left beside it
// was filled, which took a third of the server's time in a stream of reads.
//
// So nothing but this package knows when the memory of a block may be used again:
//   - A block that Get returned may be seen while the mutex is held. To see it any longer,
//     it has to be kept for a Hold (internal/runtime/hold) before the mutex is given back.
//   - The slot of a block that is kept is not filled again before all its Holds have ended. A
//     block that is forgotten meanwhile is found no more, but stays where it is.
//
// It forgets by the clock algorithm: a hand goes round, and takes the first block
// that was not asked for twice since it came by last: what is read ahead is asked for when its
// turn comes, and should not push out what is in use.
//
// Nearly every read of the file system looks here, for blocks that the processor's
// caches seldom know. So the table is made for few misses: open addressing, linear
// probing, at most half full.
type Cache struct {
	memory []byte // all that follows lies in it, and takes no room until it is used
	blocks []dbytes.Blk
	addrs  []uint64       // of each slot; of a free one: the next free one plus 1
	kept   []atomic.Int32 // of each slot: the Holds that it is kept for
	tab    []uint32       // slots plus 1, by address; 0: free
	state  []uint8        // of each slot

	shift uint   // 64 - log2 of the size of tab
	free  uint64 // the first free slot plus 1, of those that were in use before
	used  int    // slots that were ever in use
	len   int    // blocks in slots
	hand  int

	atOnce  int          // slots that get their memory as soon as they are wanted, growth.go
	ready   atomic.Int64 // slots that have it
	growing atomic.Bool  // the next ones get it, or have to wait
	slow    func() bool  // is the device?

	spilled map[uint64]*dbytes.Blk // blocks for which there was no slot, as all were kept
	order   []uint64               // in which these came

	hits, misses uint64 // of Get
}

// States of a slot.
const (
	slotFree  uint8 = iota
	slotGone        // its block was forgotten while it was kept
	slotNew         // it has a block that was not asked for since the hand came by
	slotOnce        // ... that was asked for once
	slotAgain       // ... and more than once
)

// minCache is the least number of blocks of a cache. A transaction that writes parts of
// blocks needs all of these in memory at once when it commits, up to 500: if they pushed
// each other out, the commit would never come to an end. As many may be spilled.
const minCache = 1024

// New returns an empty cache that takes the memory of limit blocks, or of less if the system does not give so
// much. It asks slow, with its caller's mutex held, whether the device takes longer than to get memory for a block;
// nil: it does not.
func New(limit int, slow func() bool) *Cache {
	limit = min(max(limit, minCache), 1<<31)
	for {
		c := newCache(limit-limit/128, allocate) // the rest is for what is kept about them
		if c != nil {
			c.slow = slow
			return c
		}
		if limit == minCache {
			panic("out of memory")
		}
		limit = max(limit/2, minCache)
	}
}

// newCache returns an empty cache of n slots, or nil if there is no memory for it.
func newCache(n int, allocate func(n int) (m []byte, mapped bool)) *Cache {
	c := &Cache{shift: 63, atOnce: readyAtOnce}
	size := 2
	for size < 2*n {
		size *= 2
		c.shift--
	}
	m, mapped := allocate(n*(dbytes.BlkSize+8+4+1) + 4*size)
	if m == nil {
		return nil
	}
	c.memory = m
	if mapped {
		runtime.AddCleanup(c, func(m []byte) { unix.Munmap(m) }, m)
	}
	// Larger elements first, so that each is aligned.
	rest := c.memory
	c.blocks, rest = carve[dbytes.Blk](rest, n)
	c.addrs, rest = carve[uint64](rest, n)
	c.kept, rest = carve[atomic.Int32](rest, n)
	c.tab, rest = carve[uint32](rest, size)
	c.state, _ = carve[uint8](rest, n)
	return c
}

// allocate returns n zeros, or nil; if they are mapped, they have to be unmapped.
func allocate(n int) (m []byte, mapped bool) {
	if dbytes.Poison && n <= maxWatched {
		return make([]byte, n), false // only there does the race detector see who reads them
	}
	m, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_NORESERVE)
	if err != nil {
		return nil, false
	}
	return m, true
}

// maxWatched is the largest cache that lies in the heap for the race detector's sake, in bytes.
const maxWatched = 8 << 20

// carve makes the first bytes of memory n elements without pointers.
func carve[T any](memory []byte, n int) (s []T, rest []byte) {
	var x T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(memory))), n), memory[n*int(unsafe.Sizeof(x)):]
}

// Get returns the block at address a, or nil.
func (c *Cache) Get(a uint64) *dbytes.Blk {
	i, ok := c.find(a)
	if !ok {
		if b := c.spilled[a]; b != nil {
			c.hits++
			return b
		}
		c.misses++
		return nil
	}
	c.hits++
	s := c.tab[i] - 1
	if c.state[s] < slotAgain {
		c.state[s]++
	}
	return &c.blocks[s]
}

// Put remembers a copy of b as the block at address a.
func (c *Cache) Put(a uint64, b *dbytes.Blk) {
	c.Forget(a)
	s, ok := c.slot()
	if !ok {
		c.spill(a, b)
		return
	}
	c.blocks[s], c.addrs[s], c.state[s] = *b, a, slotNew
	i, _ := c.find(a)
	c.tab[i] = uint32(s + 1)
	c.len++
	if len(c.order) > 0 {
		c.unspill()
	}
}

// Forget drops the block at address a.
func (c *Cache) Forget(a uint64) {
	if i, ok := c.find(a); ok {
		s := int(c.tab[i] - 1)
		c.remove(i)
		if c.kept[s].Load() != 0 {
			c.state[s] = slotGone
			return
		}
		c.state[s], c.addrs[s], c.free = slotFree, c.free, uint64(s+1)
		dbytes.Spoil(c.blocks[s : s+1])
		return
	}
	delete(c.spilled, a)
}

// Slot is the slot in which block b lies, if it is one of the cache's.
func (c *Cache) Slot(b *dbytes.Blk) (s uint32, ok bool) {
	off := uintptr(unsafe.Pointer(b)) - uintptr(unsafe.Pointer(unsafe.SliceData(c.blocks)))
	i := off / dbytes.BlkSize
	return uint32(i), i < uintptr(len(c.blocks))
}

// Keep has slot s not filled again before as many calls of LetGo. Its block has just been got: the caller has not given
// back the mutex meanwhile.
func (c *Cache) Keep(s uint32) { c.kept[s].Add(1) }

// LetGo takes one Keep back. No mutex is needed.
func (c *Cache) LetGo(s uint32) { c.kept[s].Add(-1) }

// Len is the number of blocks remembered.
func (c *Cache) Len() int { return c.len + len(c.spilled) }

// Limit is the number of blocks that there is room for.
func (c *Cache) Limit() int { return len(c.blocks) }

// Asked is how often Get found a block, and how often it found none.
func (c *Cache) Asked() (hits, misses uint64) { return c.hits, c.misses }

// slot finds a slot for a block; it is not ok if all are kept.
func (c *Cache) slot() (s int, ok bool) {
	if c.free != 0 {
		s = int(c.free - 1)
		c.free = c.addrs[s]
		return s, true
	}
	if c.grown() {
		return c.used - 1, true
	}
	for range 2 * c.used { // in the second round nothing is in use any more
		s = c.hand
		if c.hand++; c.hand >= c.used {
			c.hand = 0
		}
		switch {
		case c.kept[s].Load() != 0:
			continue
		case c.state[s] == slotGone:
		case c.state[s] == slotAgain:
			c.state[s] = slotNew
			continue
		default:
			i, _ := c.find(c.addrs[s])
			c.remove(i)
		}
		dbytes.Spoil(c.blocks[s : s+1])
		return s, true
	}
	if c.used < len(c.blocks) { // all others are kept
		c.used++
		return c.used - 1, true
	}
	return 0, false
}

// spill remembers a copy of b in Go's heap.
func (c *Cache) spill(a uint64, b *dbytes.Blk) {
	if c.spilled == nil {
		c.spilled = map[uint64]*dbytes.Blk{}
	}
	if len(c.order) == minCache {
		c.unspill()
	}
	own := *b
	c.spilled[a] = &own
	c.order = append(c.order, a)
}

// unspill forgets what was spilled first.
func (c *Cache) unspill() {
	delete(c.spilled, c.order[0])
	c.order = c.order[1:]
}

// start is where the search for an address begins. The entries of neighbours are neighbours, so that those of a file
// that is read in order lie together in the processor's caches.
func (c *Cache) start(a uint64) int {
	return int(a/together*0x9E3779B97F4A7C15>>c.shift)&^(together-1) | int(a%together)
}

// together is how many neighbours that are: their entries fill 64 bytes.
const together = 16

// find returns the entry of an address, or the free one that it would get.
func (c *Cache) find(a uint64) (i int, ok bool) {
	for i = c.start(a); ; i = (i + 1) & (len(c.tab) - 1) {
		switch s := c.tab[i]; {
		case s == 0:
			return i, false
		case c.addrs[s-1] == a:
			return i, true
		}
	}
}

// remove frees entry i, and moves up those behind it that would not be found any more.
func (c *Cache) remove(i int) {
	mask := len(c.tab) - 1
	for k := (i + 1) & mask; c.tab[k] != 0; k = (k + 1) & mask {
		if from := c.start(c.addrs[c.tab[k]-1]); (k-from)&mask >= (k-i)&mask {
			c.tab[i] = c.tab[k]
			i = k
		}
	}
	c.tab[i] = 0
	c.len--
}
