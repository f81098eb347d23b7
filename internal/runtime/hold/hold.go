// Package hold is the Go behind verified/trusted/hold.s.dfy: who sees blocks whose memory is used again.
package hold

import (
	"unsafe"

	"tansy/internal/runtime/cache"
	"tansy/internal/runtime/dbytes"
	"tansy/internal/runtime/ddisk"
)

// Hold is for one who sees blocks whose memory is used again. It belongs to one goroutine.
type Hold struct {
	seen
	made  []*dbytes.Blk // copies, that are retained
	small []small       // so many of the first
	lent  int           // were given out
	views []dbytes.Bytes
}

// small are 256 bytes, and what they were given out as.
type small struct {
	b   *dbytes.Bytes
	mem []byte
}

// seen are blocks that somebody looks at.
type seen struct {
	cache *cache.Cache
	slots []uint32       // of cache, that are kept
	blks  []*dbytes.Blk  // others, that are retained
	runs  [][]dbytes.Blk // that were taken
}

// maxSmall is the most of them that are kept.
const maxSmall = 16

// New returns a Hold of nothing.
func New() *Hold { return &Hold{} }

// Keep lets block b, which c or a map of blocks has just given, be seen until the end of the Hold. The caller has
// not given back the mutex meanwhile. A Hold is for one cache.
func (h *Hold) Keep(c *cache.Cache, b *dbytes.Blk) {
	s, ok := c.Slot(b)
	if !ok {
		if dbytes.Retain(b) {
			h.blks = append(h.blks, b)
		}
		return
	}
	if n := len(h.slots); n > 0 && h.slots[n-1] == s {
		return
	}
	h.cache = c // which must not be collected before
	c.Keep(s)
	h.slots = append(h.slots, s)
}

// Take makes the memory of l the Hold's: its blocks may be seen until the end.
func (h *Hold) Take(l *ddisk.BList) {
	if run := l.Take(); run != nil {
		h.runs = append(h.runs, run)
	}
}

// Copy returns a mutable copy of b, which is the caller's, and that of whoever it passes it to, up to End.
func (h *Hold) Copy(b *dbytes.Blk) *dbytes.Bytes {
	c := dbytes.Copy(b)
	if c == nil {
		return b.Thaw()
	}
	h.made = append(h.made, c)
	return c.Melt()
}

// CopyTo copies b, which was kept for the Hold or taken to it, to dst.
func (h *Hold) CopyTo(dst *dbytes.Bytes, b *dbytes.Blk) { copy(dst.Data, b.Data()) }

// Small returns 256 bytes that hold anything. They are the caller's up to EndSmall; without that, for good.
func (h *Hold) Small() *dbytes.Bytes {
	if h.lent == len(h.small) {
		if h.lent == maxSmall {
			return dbytes.NewBytes(256)
		}
		b := dbytes.NewBytes(256)
		h.small = append(h.small, small{b, b.Data})
	}
	h.lent++
	return h.small[h.lent-1].b
}

// EndLast says that nobody sees mem any more. If it is of what Small returned last, it may be used again; whoever has
// that does not have mem by it.
func (h *Hold) EndLast(mem []byte) {
	if h.lent == 0 || unsafe.SliceData(h.small[h.lent-1].mem) != unsafe.SliceData(mem) {
		return
	}
	h.lent--
	h.small[h.lent].b = h.view(mem)
	dbytes.SpoilBytes(mem)
}

// EndSmall says that nobody sees what Small returned any more.
func (h *Hold) EndSmall() {
	for i := range h.lent {
		s := &h.small[i]
		if dbytes.Poison {
			s.b.Data = nil // nor does anybody ask it how long it is
		}
		if s.b.Data == nil { // or it was taken over
			s.b = h.view(s.mem)
		}
		dbytes.SpoilBytes(h.small[i].mem)
	}
	h.lent = 0
}

// view is a new view of mem.
func (h *Hold) view(mem []byte) *dbytes.Bytes {
	if len(h.views) == 0 {
		h.views = make([]dbytes.Bytes, 32)
	}
	v := &h.views[0]
	h.views = h.views[1:]
	v.Data = mem
	return v
}

// DropSmall leaves what Small returned to those who see it.
func (h *Hold) DropSmall() {
	if h.lent > 0 {
		h.small, h.lent = nil, 0
	}
}

// Pass gives all blocks that h has kept or taken to a Hold that has none.
func (h *Hold) Pass(to *Hold) { h.seen, to.seen = to.seen, h.seen }

// Len is how many blocks it has.
func (h *Hold) Len() int {
	n := len(h.slots) + len(h.blks)
	for _, run := range h.runs {
		n += len(run)
	}
	return n
}

// End ends the Hold: nobody sees a block of it any more, nor a copy but where a map has it. It may be used again.
func (h *Hold) End() {
	h.EndSeen()
	for _, c := range h.made {
		dbytes.Release(c)
	}
	clear(h.made)
	h.made = h.made[:0]
}

// EndSeen ends the Hold but for the copies.
func (h *Hold) EndSeen() {
	for _, s := range h.slots {
		h.cache.LetGo(s)
	}
	for _, b := range h.blks {
		dbytes.Release(b)
	}
	clear(h.blks)
	for i, run := range h.runs {
		dbytes.RecycleBlks(run)
		h.runs[i] = nil
	}
	h.slots, h.blks, h.runs = h.slots[:0], h.blks[:0], h.runs[:0]
}
