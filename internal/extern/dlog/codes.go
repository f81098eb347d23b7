package dlog

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"slices"
	"sync"

	"tansy/internal/extern/dbytes"
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
	le.PutUint64(w.nonce[:], x)
	s.code.mac.Seal(w.tag[:0], w.nonce[:], nil, b.Data())
	s.code.enc.Encrypt(w.tag[:], w.tag[:])
	c0, c1 = le.Uint64(w.tag[:]), le.Uint64(w.tag[8:])
	if c0 == 0 && c1 == 0 {
		c1 = 1 // 0 stands for zeros
	}
	return c0, c1
}

// work is the memory for one code; a code is made for every block that is read or goes home.
type work struct {
	nonce [12]byte
	tag   [tagSize]byte
}

var works = sync.Pool{New: func() any { return new(work) }}

// Codes is a list of codes of nodes.
type Codes struct{ list []nodeCode }

type nodeCode struct{ x, c0, c1 uint64 }

// PerPage is the number of codes in a page (verified/journal/codes.dfy).
const PerPage = 255

// NewCodes returns an empty list.
func NewCodes() *Codes { return &Codes{} }

// Add appends the code of node x.
func (c *Codes) Add(x, c0, c1 uint64) { c.list = append(c.list, nodeCode{x, c0, c1}) }

// Len is the number of codes.
func (c *Codes) Len() uint64 { return uint64(len(c.list)) }

// At returns code i and its node.
func (c *Codes) At(i uint64) (x, c0, c1 uint64) {
	e := c.list[i]
	return e.x, e.c0, e.c1
}

// Sort puts the codes in the order of their nodes.
func (c *Codes) Sort() {
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
type Pages struct {
	mu      sync.Mutex
	version uint64
	root    [2]uint64
	cache   *Cache
	held    map[uint64][2]uint64
}

// NewPages returns an empty tree's, with room for limit pages.
func NewPages(limit int) *Pages {
	return &Pages{cache: NewCache(limit), held: map[uint64][2]uint64{}}
}

// Get returns page p of a version, or nil: it is not in memory, or that is not the newest version any more.
func (g *Pages) Get(version, p uint64) *dbytes.Blk {
	g.mu.Lock()
	defer g.mu.Unlock()
	if version != g.version {
		return nil
	}
	return g.cache.Get(p)
}

// Root returns the code of the root, and which version of the tree it belongs to.
func (g *Pages) Root() (version, r0, r1 uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.version, g.root[0], g.root[1]
}

// Put remembers page p of a version, if that is still the newest.
func (g *Pages) Put(version, p uint64, b *dbytes.Blk) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if version == g.version {
		g.cache.Put(p, b)
	}
}

// Hold remembers the code of home block x, until the next version has it.
func (g *Pages) Hold(x, c0, c1 uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.held[x] = [2]uint64{c0, c1}
}

// Held returns the code of home block x, if it is held.
func (g *Pages) Held(x uint64) (has bool, c0, c1 uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c, has := g.held[x]
	return has, c[0], c[1]
}

// Begin begins the version that a header tells of.
func (g *Pages) Begin(r0, r1 uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.cache = NewCache(g.cache.Limit())
	g.version++
	g.root = [2]uint64{r0, r1}
}

// Next begins the next version, in which the codes of c are in their pages: these, and the root, are
// others than before. Nodes below n are home blocks, whose codes need not be held any more.
func (g *Pages) Next(c *Codes, n, r0, r1 uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, e := range c.list {
		g.cache.Forget(e.x / PerPage)
		if e.x < n {
			delete(g.held, e.x)
		}
	}
	g.version++
	g.root = [2]uint64{r0, r1}
}
