// Package pages is the Go behind verified/trusted/pages.s.dfy: what is in memory of the tree of codes.
package pages

import (
	"sync/atomic"

	"tansy/internal/lockorder"
	"tansy/internal/runtime/blockmap"
	"tansy/internal/runtime/cache"
	"tansy/internal/runtime/codes"
	"tansy/internal/runtime/dbytes"
)

// PerPage is the number of codes in a page (verified/journal/codes.dfy).
const PerPage = 255

// Pages is what is in memory of the tree of codes: the code of its root, a bounded number of pages, and the
// codes of blocks that went straight home and are not in the pages yet. Its methods may be called concurrently.
//
// For every block that is read from home Look and Get are called. Most of these calls take no lock: a page is asked for
// once for each block of a run.
type Pages struct {
	newest atomic.Pointer[version]
	near   [nearPages]atomic.Pointer[page] // copies of pages of the newest version that were asked for lately, by number

	mu    lockorder.Mutex[lockorder.Pages] // for the rest, and to change what is above
	cache *cache.Cache
	held  held
}

type version struct {
	number, r0, r1 uint64
	holding        bool // codes are held beside it: here, so that one load tells of both
}

// nearPages is how many pages are found without a lock: for 64 MiB of blocks, if these lie together.
const nearPages = 64

type page struct {
	version, p uint64
	b          *dbytes.Blk
}

// New returns an empty tree's, with room for limit pages.
func New(limit int) *Pages {
	g := &Pages{cache: cache.New(limit, nil), held: held{}}
	g.newest.Store(&version{})
	return g
}

// Get returns page p of a version, or nil: it is not in memory, or that is not the newest version any more.
func (g *Pages) Get(version, p uint64) *dbytes.Blk {
	near := &g.near[p%nearPages]
	if l := near.Load(); l != nil && l.version == version && l.p == p {
		return l.b
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if version != g.newest.Load().number {
		return nil
	}
	b := g.cache.Get(p)
	if b == nil {
		return nil
	}
	own := *b // may be seen without the mutex
	near.Store(&page{version, p, &own})
	return &own
}

// Root returns the code of the root, and which version of the tree it belongs to.
func (g *Pages) Root() (version, r0, r1 uint64) {
	v := g.newest.Load()
	return v.number, v.r0, v.r1
}

// Put remembers page p of a version, if that is still the newest.
func (g *Pages) Put(version, p uint64, b *dbytes.Blk) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if version == g.newest.Load().number {
		g.cache.Put(p, b)
	}
}

// next begins a version; the mutex is held.
func (g *Pages) next(r0, r1 uint64) {
	g.newest.Store(&version{g.newest.Load().number + 1, r0, r1, len(g.held) > 0})
	for i := range g.near {
		g.near[i].Store(nil)
	}
}

// HoldAll remembers the codes of the home blocks of c, until the next version has them.
func (g *Pages) HoldAll(c *codes.Codes) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.held.put(c)
	v := *g.newest.Load()
	v.holding = len(g.held) > 0
	g.newest.Store(&v)
}

// Look returns the code of home block x, if it is held, and what Root returns, of the same instant. They are six
// results, as verified code asks for each block that it reads: one datatype would be on the heap.
func (g *Pages) Look(x uint64) (has bool, c0, c1, number, r0, r1 uint64) {
	v := g.newest.Load()
	if v.holding {
		g.mu.Lock()
		defer g.mu.Unlock()
		v = g.newest.Load()
		has, c0, c1 = g.held.get(x)
	}
	return has, c0, c1, v.number, v.r0, v.r1
}

// Begin begins the version that a header tells of.
func (g *Pages) Begin(r0, r1 uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.cache = cache.New(g.cache.Limit(), nil)
	g.next(r0, r1)
}

// Next begins the next version, in which the codes of c are in their pages: these, and the root, are others than
// before. Nodes below n are home blocks. The codes of the blocks of drop are held no longer; home is the address of
// node 0.
func (g *Pages) Next(c *codes.Codes, n, r0, r1 uint64, drop *blockmap.Map, home uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	last := ^uint64(0)
	for _, e := range c.Nodes() {
		if p := e.X / PerPage; p != last {
			g.cache.Forget(p)
			last = p
		}
	}
	g.held.drop(drop, home)
	g.next(r0, r1)
}
