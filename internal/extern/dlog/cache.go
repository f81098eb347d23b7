package dlog

import "tansy/internal/extern/dbytes"

// Cache holds up to a fixed number of blocks and forgets those not asked for lately
// (second chance: a hand goes round, passes what was used since it last came by, and
// takes the first that was not). The caller has a mutex around it.
//
// Nearly every read of the file system looks here, for blocks that the processor's
// caches seldom know. So the table is made for few misses: open addressing, linear
// probing, address and block in one entry, at most half full.
type Cache struct {
	tab   []entry  // a power of two
	used  []uint64 // a bit for each entry of tab
	shift uint     // 64 - log2 of the size of tab
	order []uint64 // addresses, as the hand meets them
	hand  int
	limit int
}

type entry struct {
	addr uint64
	blk  *dbytes.Blk // nil: the entry is free
}

// minCache is the least number of blocks of a cache.
const minCache = 64

// NewCache returns an empty cache for limit blocks.
func NewCache(limit int) *Cache {
	c := &Cache{limit: min(max(limit, minCache), 1<<31)}
	c.resize(2*minCache, 64-7)
	return c
}

// resize makes a table of n entries, 2 to the power of 64-shift.
func (c *Cache) resize(n int, shift uint) {
	old, used := c.tab, c.used
	c.tab, c.used, c.shift = make([]entry, n), make([]uint64, n/64), shift
	for i, e := range old {
		if e.blk != nil {
			k, _ := c.find(e.addr)
			c.tab[k] = e
			c.mark(k, used[i/64]>>(i%64)&1)
		}
	}
}

// start is where the search for address a begins.
func (c *Cache) start(a uint64) int { return int(a * 0x9E3779B97F4A7C15 >> c.shift) }

// find returns the entry of address a, or the free one that it would get.
func (c *Cache) find(a uint64) (i int, ok bool) {
	for i = c.start(a); ; i = (i + 1) & (len(c.tab) - 1) {
		switch e := &c.tab[i]; {
		case e.blk == nil:
			return i, false
		case e.addr == a:
			return i, true
		}
	}
}

// mark sets the bit of entry i to b.
func (c *Cache) mark(i int, b uint64) {
	w := &c.used[i/64]
	*w = *w&^(1<<(i%64)) | b<<(i%64)
}

// Get returns the block at address a, or nil.
func (c *Cache) Get(a uint64) *dbytes.Blk {
	i, ok := c.find(a)
	if !ok {
		return nil
	}
	if w, bit := &c.used[i/64], uint64(1)<<(i%64); *w&bit == 0 {
		*w |= bit
	}
	return c.tab[i].blk
}

// Put remembers b as the block at address a.
func (c *Cache) Put(a uint64, b *dbytes.Blk) {
	i, ok := c.find(a)
	if ok {
		c.tab[i].blk = b
		return
	}
	if len(c.order) < c.limit {
		c.order = append(c.order, a)
		if 2*len(c.order) > len(c.tab) {
			c.resize(2*len(c.tab), c.shift-1)
		}
	} else {
		c.order[c.evict()] = a
	}
	i, _ = c.find(a)
	c.tab[i] = entry{a, b}
	c.mark(i, 0)
}

// Update is Put where the cache has a block of address a, and nothing else. The block
// that takes the place is a copy: b may share an allocation with others.
func (c *Cache) Update(a uint64, b *dbytes.Blk) {
	if i, ok := c.find(a); ok {
		c.tab[i].blk = dbytes.Freeze(b.Thaw())
	}
}

// evict forgets a block, and returns its place in the order.
func (c *Cache) evict() int {
	for {
		at := c.hand
		if c.hand++; c.hand == len(c.order) {
			c.hand = 0
		}
		i, _ := c.find(c.order[at])
		if c.used[i/64]>>(i%64)&1 == 0 {
			c.remove(i)
			return at
		}
		c.mark(i, 0)
	}
}

// remove frees entry i, and moves up those behind it that would not be found any more.
func (c *Cache) remove(i int) {
	mask := len(c.tab) - 1
	for k := (i + 1) & mask; c.tab[k].blk != nil; k = (k + 1) & mask {
		if from := c.start(c.tab[k].addr); (k-from)&mask >= (k-i)&mask {
			c.tab[i] = c.tab[k]
			c.mark(i, c.used[k/64]>>(k%64)&1)
			i = k
		}
	}
	c.tab[i] = entry{}
}

// Len is the number of blocks remembered.
func (c *Cache) Len() int { return len(c.order) }
