package dlog

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"slices"
	"sync"
	"sync/atomic"

	"tansy/internal/lockorder"
	"tansy/internal/runtime/dbytes"
)

// coder makes the codes of the tree of codes: 128 bits of a node's number and contents. It is a GMAC with the
// number as its nonce, encrypted with AES under another key. A node has many contents in its life, all with the
// same nonce, which a GMAC alone would not forgive: two tags of one nonce tell of its key. Behind the
// encryption nobody sees the tags.
type coder struct {
	mac cipher.AEAD
	enc cipher.Block
}

func newCoder(key [32]byte) coder {
	mac := sha256.Sum256(append([]byte("tansy tree of codes: mac"), key[:]...))
	enc := sha256.Sum256(append([]byte("tansy tree of codes: encryption"), key[:]...))
	b, err := aes.NewCipher(enc[:])
	if err != nil {
		panic(err) // the length is right
	}
	return coder{mac: gcm(mac[:]), enc: b}
}

// Code returns the code of contents b of node x.
func (s *Seal) Code(x uint64, b *dbytes.Blk) (c0, c1 uint64) {
	w := works.Get().(*work)
	defer works.Put(w)
	s.code.put(w, w.tag[:], x, b.Data())
	return le.Uint64(w.tag[:]), le.Uint64(w.tag[8:])
}

// put makes the 16 bytes of dst the code of contents b of node x.
func (c coder) put(w *work, dst []byte, x uint64, b []byte) {
	w.mac(c.mac, dst, x, 0, b)
	c.enc.Encrypt(dst, dst)
	if le.Uint64(dst) == 0 && le.Uint64(dst[8:]) == 0 {
		le.PutUint64(dst[8:], 1) // 0 stands for zeros
	}
}

// work is the memory for one code or tag, of which one is made for every block that is read or written.
type work struct {
	nonce [12]byte
	tag   [tagSize]byte
}

var works = sync.Pool{New: func() any { return new(work) }}

// mac makes the 16 bytes of dst the GMAC of msg under a nonce of 8 and 4 bytes.
func (w *work) mac(key cipher.AEAD, dst []byte, n uint64, index uint32, msg []byte) {
	le.PutUint64(w.nonce[:], n)
	le.PutUint32(w.nonce[8:], index)
	key.Seal(dst[:0], w.nonce[:], nil, msg)
}

// Codes is a list of codes of nodes. It belongs to one goroutine at a time; lists that were joined to others may be
// looked at by others meanwhile.
type Codes struct {
	list   []nodeCode
	shared bool // others may have this memory, too
	ends   bool // so much of it as list has, and another one has what is behind
}

type nodeCode struct{ x, c0, c1 uint64 }

// PerPage is the number of codes in a page (verified/journal/codes.dfy).
const PerPage = 255

// NewCodes returns an empty list.
func NewCodes() *Codes { return &Codes{} }

// JoinCodes returns the codes of x and behind them those of y. It is y if x has none; else it is in the memory of x
// where that goes on: lists that each are the last one and a little more would else take the square of what they have.
func JoinCodes(x, y *Codes) *Codes {
	if len(x.list) == 0 {
		return y
	}
	c := &Codes{list: x.list, shared: true, ends: x.ends}
	x.shared, x.ends = true, true
	c.more(len(y.list))
	c.list = append(c.list, y.list...)
	return c
}

// more makes room for n codes behind those of c.
func (c *Codes) more(n int) {
	if have := len(c.list); c.ends || cap(c.list)-have < n {
		list := make([]nodeCode, have, max(longer(have), have+n))
		copy(list, c.list)
		c.list, c.shared, c.ends = list, false, false
	}
}

// Add appends the code of node x.
func (c *Codes) Add(x, c0, c1 uint64) {
	c.more(1)
	c.list = append(c.list, nodeCode{x, c0, c1})
}

// Len is the number of codes.
func (c *Codes) Len() uint64 { return uint64(len(c.list)) }

// At returns code i and its node.
func (c *Codes) At(i uint64) (x, c0, c1 uint64) {
	e := c.list[i]
	return e.x, e.c0, e.c1
}

// Sort puts the codes in the order of their nodes.
func (c *Codes) Sort() {
	if c.shared {
		c.list, c.shared, c.ends = slices.Clone(c.list), false, false
	}
	slices.SortFunc(c.list, func(a, b nodeCode) int {
		switch {
		case a.x < b.x:
			return -1
		case a.x > b.x:
			return 1
		}
		return 0
	})
}

// Pages is what is in memory of the tree of codes: the code of its root, a bounded number of pages, and the
// codes of blocks that went straight home and are not in the pages yet. Its methods may be called concurrently.
//
// For every block that is read from home Look and Get are called. Most of these calls take no lock: a page is asked for
// once for each block of a run.
type Pages struct {
	newest atomic.Pointer[version]
	near   [nearPages]atomic.Pointer[page] // copies of pages of the newest version that were asked for lately, by number

	mu    lockorder.Mutex[lockorder.Pages] // for the rest, and to change what is above
	cache *Cache
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

// NewPages returns an empty tree's, with room for limit pages.
func NewPages(limit int) *Pages {
	g := &Pages{cache: NewCache(limit, nil), held: held{}}
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
func (g *Pages) HoldAll(c *Codes) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.held.put(c)
	v := *g.newest.Load()
	v.holding = len(g.held) > 0
	g.newest.Store(&v)
}

// Look returns the code of home block x, if it is held, and what Root returns, of the same instant.
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
	g.cache = NewCache(g.cache.Limit(), nil)
	g.next(r0, r1)
}

// Next begins the next version, in which the codes of c are in their pages: these, and the root, are others than
// before. Nodes below n are home blocks. The codes of the blocks of drop are held no longer; home is the address of
// node 0.
func (g *Pages) Next(c *Codes, n, r0, r1 uint64, drop *BMap, home uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	last := ^uint64(0)
	for _, e := range c.list {
		if p := e.x / PerPage; p != last {
			g.cache.Forget(p)
			last = p
		}
	}
	g.held.drop(drop, home)
	g.next(r0, r1)
}
