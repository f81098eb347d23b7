package dlog

import (
	"unsafe"

	"tansy/internal/extern/dbytes"
	"tansy/internal/extern/ddisk"
)

// Hold is for one who sees blocks whose memory is used again. It belongs to one goroutine.
type Hold struct {
	cache *Cache
	slots []uint32       // of cache, that are kept
	blks  []*dbytes.Blk  // others, that are retained
	runs  [][]dbytes.Blk // that were taken
}

// NewHold returns a Hold of nothing.
func NewHold() *Hold { return &Hold{} }

// Keep lets block b, which c or a map of blocks has just given, be seen until the end of the Hold. The caller has
// not given back the mutex meanwhile. A Hold is for one cache.
func (h *Hold) Keep(c *Cache, b *dbytes.Blk) {
	off := uintptr(unsafe.Pointer(b)) - uintptr(unsafe.Pointer(unsafe.SliceData(c.blocks)))
	s := off / dbytes.BlkSize
	if s >= uintptr(len(c.blocks)) {
		if dbytes.Retain(b) {
			h.blks = append(h.blks, b)
		}
		return
	}
	if n := len(h.slots); n > 0 && h.slots[n-1] == uint32(s) {
		return
	}
	h.cache = c // which must not be collected before
	c.kept[s].Add(1)
	h.slots = append(h.slots, uint32(s))
}

// Take makes the memory of l the Hold's: its blocks may be seen until the end.
func (h *Hold) Take(l *ddisk.BList) {
	if run := l.Take(); run != nil {
		h.runs = append(h.runs, run)
	}
}

// Pass gives all that h has to a Hold that has nothing.
func (h *Hold) Pass(to *Hold) { *h, *to = *to, *h }

// Len is how many blocks it has.
func (h *Hold) Len() int {
	n := len(h.slots) + len(h.blks)
	for _, run := range h.runs {
		n += len(run)
	}
	return n
}

// End ends the Hold: nobody sees a block of it any more. It may be used again.
func (h *Hold) End() { h.EndSince(Mark{}) }

// Mark is a point in time for a Hold.
type Mark struct{ slots, blks, runs int }

// Mark is now.
func (h *Hold) Mark() Mark { return Mark{len(h.slots), len(h.blks), len(h.runs)} }

// EndSince ends the Hold for the blocks that were kept or taken since m, which nobody sees any more.
func (h *Hold) EndSince(m Mark) {
	for _, s := range h.slots[m.slots:] {
		h.cache.kept[s].Add(-1)
	}
	for _, b := range h.blks[m.blks:] {
		dbytes.Release(b)
	}
	clear(h.blks[m.blks:])
	for i, run := range h.runs[m.runs:] {
		dbytes.RecycleBlks(run)
		h.runs[m.runs+i] = nil
	}
	h.slots, h.blks, h.runs = h.slots[:m.slots], h.blks[:m.blks], h.runs[:m.runs]
}
