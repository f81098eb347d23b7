package cache

import (
	"time"

	"tansy/internal/runtime/dbytes"
)

// The memory of a cache is the system's before blocks are put there, and to get it takes time: where the host of a
// virtual machine has to find it first, ten times as long as to read the block from the system's own cache. So who puts
// a block into a cache that has some does not wait for that: the block takes the place of another one, and memory is
// made ready meanwhile, for some of the time. Where the device takes longer than that, memory comes first.

const (
	readyAtOnce = 64 << 20 / dbytes.BlkSize // slots
	growthRests = 3                         // times as long as it has worked
	fewest      = 8                         // slots made ready at once
)

// grown takes one more slot into use, if one is ready. What is not is being made so.
func (c *Cache) grown() bool {
	switch {
	case c.used < int(c.ready.Load()):
	case c.used == len(c.blocks):
		return false
	case c.used < c.atOnce:
		c.grow()
	case !c.growing.CompareAndSwap(false, true):
		return false
	case c.slow != nil && c.slow():
		c.grow()
		c.growing.Store(false)
	default:
		go c.growBeside()
		return false
	}
	c.used++
	return true
}

// growBeside makes the next slots ready, and rests, in that growing stays true.
func (c *Cache) growBeside() {
	begin := time.Now()
	c.grow()
	time.AfterFunc(growthRests*time.Since(begin), func() { c.growing.Store(false) })
}

// grow makes the next slots ready: as many as there are, but at least a few, for a cache that is hardly used, and at
// most populated.
func (c *Cache) grow() {
	n := int(c.ready.Load())
	end := min(n+min(max(n, fewest), populated), len(c.blocks))
	populate(c.blocks[n:end])
	c.ready.Store(int64(end))
}
