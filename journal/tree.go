package journal

import (
	"encoding/binary"

	"tansy/internal/runtime/dbytes"
	"tansy/internal/runtime/pages"
)

// A Code is that of a home block, or of a page of the tree of codes. Zeros are the code of zeros. Two versions of one
// block with the same code have the same contents, but for a chance of about 2^-100: the key is the volume's secret. So
// of two versions of a page with one code, all that lies below is the same, too.
type Code [2]uint64

// Codes is a page of the tree of codes: the codes of some nodes, one behind the other. A node is a home block, or a
// page; home blocks come first.
type Codes struct {
	Block uint64 // of the page's two blocks the one that it belongs in
	Data  []byte // its contents; not to be changed

	first, home, homes, nodes uint64
}

// Len is the number of codes.
func (c *Codes) Len() uint64 { return c.nodes }

// Node is number i of Len: home block or page n, and its code.
func (c *Codes) Node(i uint64) (n uint64, home bool, code Code) {
	code = Code{binary.LittleEndian.Uint64(c.Data[16+16*i:]), binary.LittleEndian.Uint64(c.Data[24+16*i:])}
	if x := c.first + i; x < c.homes {
		return c.home + x, true, code
	} else {
		return x - c.homes, false, code
	}
}

// Root is the last page of the tree of codes, and its code. ok is false if there is no tree.
func (s *Snapshot) Root() (page uint64, code Code, ok bool) {
	_, r0, r1 := s.tree.Pages.Root()
	return s.tree.PageCount - 1, Code{r0, r1}, s.tree.PageCount > 0
}

// PageOf is the page of the tree of codes with the code of home block a.
func (s *Snapshot) PageOf(a uint64) uint64 { return (a - s.tree.Home) / pages.PerPage }

// Codes returns page p of the tree of codes. The error wraps ErrNotAsWritten, or is the device's, if the page, or one
// above it, is lost.
func (s *Snapshot) Codes(p uint64) (*Codes, error) {
	t := s.tree
	ok, b := newestPage(t, p)
	if !ok {
		return nil, s.whyLost(t.First + 2*p)
	}
	return s.codes(p, b), nil
}

// NoCodes is page p of a tree that has nothing but zeros there.
func (s *Snapshot) NoCodes(p uint64) *Codes { return s.codes(p, dbytes.ZeroBlk()) }

func (s *Snapshot) codes(p uint64, b *dbytes.Blk) *Codes {
	t := s.tree
	first := pages.PerPage * p
	return &Codes{
		Block: t.First + 2*p + b.U64(0)%2, Data: b.Data(), first: first, home: t.Home, homes: t.HomeCount,
		nodes: min(pages.PerPage, t.HomeCount+t.PageCount-1-first),
	}
}
