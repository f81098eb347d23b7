package dlog

import "tansy/internal/extern/dbytes"

// Cache holds up to a fixed number of blocks and forgets those not asked for lately
// (second chance: a hand goes round, passes what was used since it last came by, and
// takes the first that was not). The caller has a mutex around it.
type Cache struct {
	at    map[uint64]uint32 // slot of an address
	slots []slot
	hand  uint32
	limit int
}

type slot struct {
	addr uint64
	blk  *dbytes.Blk
	used bool
}

// minCache is the least number of blocks of a cache.
const minCache = 64

// NewCache returns an empty cache for limit blocks.
func NewCache(limit int) *Cache {
	return &Cache{at: map[uint64]uint32{}, limit: min(max(limit, minCache), 1<<31)}
}

// Get returns the block at address a, or nil.
func (c *Cache) Get(a uint64) *dbytes.Blk {
	i, ok := c.at[a]
	if !ok {
		return nil
	}
	s := &c.slots[i]
	if !s.used {
		s.used = true
	}
	return s.blk
}

// Put remembers b as the block at address a.
func (c *Cache) Put(a uint64, b *dbytes.Blk) {
	if i, ok := c.at[a]; ok {
		c.slots[i].blk = b
		return
	}
	if len(c.slots) < c.limit {
		c.at[a] = uint32(len(c.slots))
		c.slots = append(c.slots, slot{addr: a, blk: b})
		return
	}
	for c.slots[c.hand].used {
		c.slots[c.hand].used = false
		c.step()
	}
	delete(c.at, c.slots[c.hand].addr)
	c.slots[c.hand] = slot{addr: a, blk: b}
	c.at[a] = c.hand
	c.step()
}

func (c *Cache) step() {
	if c.hand++; int(c.hand) == len(c.slots) {
		c.hand = 0
	}
}

// Len is the number of blocks remembered.
func (c *Cache) Len() int { return len(c.slots) }
