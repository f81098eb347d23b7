package dlog

import (
	"math/bits"

	"tansy/internal/extern/dbytes"
)

// Cache holds up to a fixed number of blocks and forgets those not asked for lately. The
// caller has a mutex around it.
//
// It keeps copies, in slabs that are filled one after the other, round and round. A slab
// whose turn has come again is replaced by a new one, because readers may have blocks of
// the old one. What is worth it is copied over (a second chance): blocks that were asked for
// more than once, because what is read ahead is asked for when its turn comes, and all as
// long as the slots of blocks since replaced make a quarter. A slab that is worth it on the
// whole stays. There are as many slabs as the blocks need, up to the limit.
//
// So to the garbage collector the cache is a few objects without pointers. With one for
// each block, to find, mark, and sweep them took a tenth of the server's time in a stream of reads.
//
// Of a large cache that is so for the blocks that are in use, up to maxHeap; what it would
// forget of these goes to an arena, which is the rest of it, and comes back from there when it is asked
// for twice.
//
// Nearly every read of the file system looks here, for blocks that the processor's
// caches seldom know. So the table is made for few misses: open addressing, linear
// probing, at most half full.
type Cache struct {
	tab   []entry // a power of two
	shift uint    // 64 - log2 of the size of tab
	len   int     // entries in use
	slabs []*slab
	addrs []uint64 // of each slot of the slabs; the block is there if the table says so
	asked []uint16 // of each slab: a bit for each slot asked for since it was filled
	again []uint16 // and for each asked for more than once
	next  int      // the slot to fill
	limit int      // slots, a multiple of slabLen
	rest  *arena   // or nil

	hits, misses uint64 // of Get
}

// slabLen is the number of blocks of a slab.
const slabLen = 16

// maxKept is the number of blocks of a slab that are copied at most, to win the other slots.
const maxKept = slabLen * 3 / 4

type slab [slabLen]dbytes.Blk

// entry says in which slot the block at an address is.
type entry struct {
	addr uint64
	slot uint32 // plus 1; 0: the entry is free
}

// minCache is the least number of blocks of a cache. A transaction that writes parts of
// blocks needs all of these in memory at once when it commits, up to 500: if they pushed
// each other out, the commit would never come to an end.
const minCache = 1024

// maxHeap is the most blocks that a cache keeps in Go's heap.
const maxHeap = 64 << 20 / dbytes.BlkSize

// HeapBytes is what a cache of so many bytes takes of Go's heap.
func HeapBytes(cache uint64) uint64 { return min(cache, maxHeap*dbytes.BlkSize) }

// NewCache returns an empty cache for limit blocks, or less if the system has no room for so
// many.
func NewCache(limit int) *Cache {
	limit = min(max(limit, minCache), 1<<31)
	c := &Cache{tab: make([]entry, 128), shift: 64 - 7, limit: limit - limit%slabLen}
	if limit > maxHeap {
		c.limit, c.rest = maxHeap, newArena(limit-maxHeap)
	}
	return c
}

// Get returns the block at address a, or nil.
func (c *Cache) Get(a uint64) *dbytes.Blk {
	i, ok := c.find(a)
	if !ok {
		return c.fetch(a)
	}
	c.hits++
	s := int(c.tab[i].slot - 1)
	if k, bit := s/slabLen, uint16(1)<<(s%slabLen); c.asked[k]&bit == 0 {
		c.asked[k] |= bit
	} else if c.again[k]&bit == 0 {
		c.again[k] |= bit
	}
	return &c.slabs[s/slabLen][s%slabLen]
}

// fetch is Get of what is not in the heap.
func (c *Cache) fetch(a uint64) *dbytes.Blk {
	if c.rest != nil {
		if b, again := c.rest.get(a); b != nil {
			c.hits++
			if again {
				c.Put(a, b)
			}
			return b
		}
	}
	c.misses++
	return nil
}

// Put remembers a copy of b as the block at address a.
func (c *Cache) Put(a uint64, b *dbytes.Blk) {
	if c.rest != nil {
		c.rest.forget(a)
	}
	if i, ok := c.find(a); ok {
		c.remove(i) // readers may have its older contents, so these stay where they are
	}
	if c.next%slabLen == 0 {
		c.turn()
	}
	s := c.next
	c.next++
	c.slabs[s/slabLen][s%slabLen] = *b
	c.addrs[s] = a
	if c.len++; 2*c.len > len(c.tab) {
		c.grow()
	}
	i, _ := c.find(a)
	c.tab[i] = entry{a, uint32(s + 1)}
}

// Forget drops the block at address a.
func (c *Cache) Forget(a uint64) {
	if i, ok := c.find(a); ok {
		c.remove(i)
	}
	if c.rest != nil {
		c.rest.forget(a)
	}
}

// Len is the number of blocks remembered.
func (c *Cache) Len() int {
	if c.rest != nil {
		return c.len + c.rest.len
	}
	return c.len
}

// Limit is the number of blocks that there is room for.
func (c *Cache) Limit() int {
	if c.rest != nil {
		return c.limit + len(c.rest.blocks)
	}
	return c.limit
}

// Asked is how often Get found a block, and how often it found none.
func (c *Cache) Asked() (hits, misses uint64) { return c.hits, c.misses }

// turn finds the slab to fill next, and begins it with what is kept of its older contents.
func (c *Cache) turn() {
	for {
		if end := len(c.slabs) * slabLen; c.next == end {
			if end < c.limit && c.len >= end/4*3 {
				c.slabs = append(c.slabs, (*slab)(dbytes.AnyBlks(slabLen)))
				c.addrs = append(c.addrs, make([]uint64, slabLen)...)
				c.asked, c.again = append(c.asked, 0), append(c.again, 0)
				return
			}
			c.next = 0
		}
		k := c.next / slabLen
		keep := c.worth(k)
		c.asked[k], c.again[k] = 0, 0
		if bits.OnesCount16(keep) <= maxKept {
			c.renew(k, keep)
			return
		}
		c.next += slabLen // it stays as it is
	}
}

// worth tells which slots of slab k to keep: what was asked for again, or, while there is
// room, all that has not been replaced or forgotten.
func (c *Cache) worth(k int) (keep uint16) {
	room := c.len < c.limit/4*3
	for s := range slabLen {
		at := k*slabLen + s
		if i, ok := c.find(c.addrs[at]); ok && c.tab[i].slot == uint32(at+1) && (room || c.again[k]>>s&1 == 1) {
			keep |= 1 << s
		}
	}
	return keep
}

// renew makes a new slab k of which the first slots hold what is to be kept.
func (c *Cache) renew(k int, keep uint16) {
	old := c.slabs[k]
	c.slabs[k] = (*slab)(dbytes.AnyBlks(slabLen))
	for s := range slabLen {
		at := k*slabLen + s
		a := c.addrs[at]
		i, ok := c.find(a)
		switch {
		case !ok || c.tab[i].slot != uint32(at+1): // replaced or forgotten
		case keep>>s&1 == 0:
			c.remove(i)
			if c.rest != nil {
				c.rest.put(a, &old[s])
			}
		default:
			c.slabs[k][c.next%slabLen], c.addrs[c.next] = old[s], a
			c.next++
			c.tab[i].slot = uint32(c.next)
		}
	}
}

// start is where the search for address a begins.
func (c *Cache) start(a uint64) int { return int(a * 0x9E3779B97F4A7C15 >> c.shift) }

// find returns the entry of address a, or the free one that it would get.
func (c *Cache) find(a uint64) (i int, ok bool) {
	for i = c.start(a); ; i = (i + 1) & (len(c.tab) - 1) {
		switch e := &c.tab[i]; {
		case e.slot == 0:
			return i, false
		case e.addr == a:
			return i, true
		}
	}
}

// grow doubles the table.
func (c *Cache) grow() {
	old := c.tab
	c.tab, c.shift = make([]entry, 2*len(old)), c.shift-1
	for _, e := range old {
		if e.slot != 0 {
			i, _ := c.find(e.addr)
			c.tab[i] = e
		}
	}
}

// remove frees entry i, and moves up those behind it that would not be found any more.
func (c *Cache) remove(i int) {
	mask := len(c.tab) - 1
	for k := (i + 1) & mask; c.tab[k].slot != 0; k = (k + 1) & mask {
		if from := c.start(c.tab[k].addr); (k-from)&mask >= (k-i)&mask {
			c.tab[i] = c.tab[k]
			i = k
		}
	}
	c.tab[i] = entry{}
	c.len--
}
