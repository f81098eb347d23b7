package journal

import (
	"cmp"
	"container/heap"
	"slices"

	"tansy/disk"
	"tansy/internal/gen/journal/treeofcodes"
	"tansy/internal/runtime/codes"
	"tansy/internal/runtime/dbytes"
	"tansy/internal/runtime/ddisk"
	"tansy/internal/runtime/pages"
	"tansy/internal/runtime/seal"
)

// Rebuilt is what Rebuild did.
type Rebuilt struct {
	Lost      []uint64 // pages that were made anew: the first block of each
	Misplaced []uint64 // pages that were put into their right place: the block
	Homes     []Range  // home blocks that have new codes: what they hold is taken for what was written there
}

// A Range is the blocks from From up to To, which is not among them.
type Range struct{ From, To uint64 }

// Rebuild makes the pages of the tree of codes on d that are damaged, or cannot be read, anew, durably. The new codes
// are those of what the home blocks hold; nothing tells any more whether that is what was written there. Blocks whose
// codes are known keep them, and the log keeps what is in it. A block that cannot be read is refused by Read until it
// is written.
//
// Rebuild is for repairs: the journal must not be open, and recovery must accept its log. A crash meanwhile leaves the
// tree as it was, or with some of it made anew.
//
// It takes memory for a code of every page that is made anew. Blocks that the device knows to be zeros (disk.Holes) are
// not read.
func Rebuild(d disk.Disk, p Params) (Rebuilt, error) {
	var done Rebuilt
	snap, err := Inspect(d, p)
	if err != nil || p.Pages == 0 {
		return done, err
	}
	t := snap.tree
	b := &rebuilder{d: d, t: t, done: &done}
	var made nodes
	root := [2]uint64{}
	_, root[0], root[1] = t.Pages.Root()
	for page := range snap.Pages() {
		q := (page.Block - t.First) / 2
		switch {
		case page.Lost:
			done.Lost = append(done.Lost, page.Block)
			c, err := b.page(q)
			if err != nil {
				return done, err
			}
			if q+1 == t.PageCount {
				root = c
			} else {
				made = append(made, codes.Node{X: t.HomeCount + q, C0: c[0], C1: c[1]})
			}
		case page.Err != nil:
			done.Misplaced = append(done.Misplaced, page.Block)
			_, contents := newestPage(t, q)
			if err := d.WriteAt(page.Block, [][]byte{contents.Data()}); err != nil {
				return done, err
			}
		}
	}
	done.Homes = joined(done.Homes)
	if len(done.Misplaced) > 0 {
		if err := d.Barrier(); err != nil {
			return done, err
		}
	}
	if len(done.Lost) == 0 {
		return done, nil
	}
	if err := b.upwards(made, &root); err != nil {
		return done, err
	}
	return done, newRoot(d, p, root)
}

// newRoot gives both headers another root, and leaves all else in them as it is.
func newRoot(d disk.Disk, p Params, root [2]uint64) error {
	v := &surveyor{ddisk.New(d), seal.New(p.Key, p.UUID, p.Home()), p}
	var from *dbytes.Blk
	first := uint64(0)
	for _, a := range [2]uint64{p.Start, p.copy()} {
		if h, b := v.header(a); h.Sound && (from == nil || h.First > first) {
			first, from = h.First, b
		}
	}
	v.seal.Continue(from)
	return writeHeaders(d, p, v.seal.EncHdr(first, root[0], root[1]))
}

// writeHeaders writes both headers, durably, one after the other, so that one is always whole.
func writeHeaders(d disk.Disk, p Params, h *dbytes.Blk) error {
	if err := d.Barrier(); err != nil {
		return err
	}
	for _, a := range [2]uint64{p.Start, p.copy()} {
		if err := d.WriteAt(a, [][]byte{h.Data()}); err != nil {
			return err
		}
		if err := d.Barrier(); err != nil {
			return err
		}
	}
	return nil
}

// A rebuilder makes pages of a tree from what is at home.
type rebuilder struct {
	d          disk.Disk
	t          *treeofcodes.Tree
	done       *Rebuilt
	asked, has uint64 // from home block asked up to has, which is not among them, all is known to be zeros
}

// refused is a code that no contents have, as far as can be foreseen.
var refused = [2]uint64{^uint64(0), ^uint64(0)}

// page makes page q, and those below it, and returns its code.
func (b *rebuilder) page(q uint64) (code [2]uint64, err error) {
	const perPage = pages.PerPage
	t := b.t
	if at := t.First + 2*q; disk.NextThere(b.d, at) > at {
		return code, nil // nor is any block there that it would have the code of
	}
	var buf *dbytes.Bytes // nil: so far all are zeros
	first, end := perPage*q, min(perPage*(q+1), t.HomeCount+t.PageCount-1)
	for x := first; x < end; x++ {
		var c [2]uint64
		if x < t.HomeCount {
			data, err := b.nextData(t.Home + x)
			if err != nil {
				return code, err
			}
			if data > t.Home+x {
				x = min(data-t.Home, end, t.HomeCount) - 1
				continue
			}
			if c, err = b.home(x); err != nil {
				return code, err
			}
		} else if c, err = b.page(x - t.HomeCount); err != nil {
			return code, err
		}
		if c != [2]uint64{} {
			if buf == nil {
				buf = dbytes.NewBytes(dbytes.BlkSize)
			}
			buf.PutU64(16+16*(x-first), c[0])
			buf.PutU64(24+16*(x-first), c[1])
		}
	}
	if buf == nil {
		return code, nil
	}
	p := dbytes.Freeze(buf)
	if err := b.d.WriteAt(t.First+2*q, [][]byte{p.Data()}); err != nil {
		return code, err
	}
	code[0], code[1] = t.Seal.Code(t.HomeCount+q, p)
	return code, nil
}

// nextData is the first block at or behind a that may not be zeros.
func (b *rebuilder) nextData(a uint64) (uint64, error) {
	if a < b.asked || a >= b.has {
		has, err := disk.NextData(b.d, a)
		if err != nil {
			return 0, err
		}
		b.asked, b.has = a, has
	}
	return max(a, b.has), nil
}

// home is the code of what home block x holds.
func (b *rebuilder) home(x uint64) (code [2]uint64, err error) {
	buf := dbytes.NewBytes(dbytes.BlkSize)
	a := b.t.Home + x
	if b.d.ReadAt(a, [][]byte{buf.Data}) != nil {
		return refused, nil
	}
	blk := dbytes.Freeze(buf)
	if treeofcodes.Same(blk, dbytes.ZeroBlk()) {
		return code, nil
	}
	if n := len(b.done.Homes); n > 0 && b.done.Homes[n-1].To == a {
		b.done.Homes[n-1].To++
	} else {
		b.done.Homes = append(b.done.Homes, Range{a, a + 1})
	}
	code[0], code[1] = b.t.Seal.Code(x, blk)
	return code, nil
}

// upwards writes the pages above those with the given codes, where they do not overwrite what counts. Nodes are
// numbered from the leaves up, and lost pages may be of several levels: the lowest is always next, so that a page has
// the codes of all that changed below it.
func (b *rebuilder) upwards(made nodes, root *[2]uint64) error {
	heap.Init(&made)
	for len(made) > 0 {
		below := codes.New() // what changed below one page
		for p := made[0].X / pages.PerPage; len(made) > 0 && made[0].X/pages.PerPage == p; {
			n := heap.Pop(&made).(codes.Node)
			below.Add(n.X, n.C0, n.C1)
		}
		ok, q, at, page, _ := treeofcodes.Changed(b.t, below, 0)
		if !ok {
			return ErrDamaged // a page that could be read before
		}
		if err := b.d.WriteAt(at, [][]byte{page.Data()}); err != nil {
			return err
		}
		top, c0, c1 := treeofcodes.Upwards(b.t, below, q, page)
		if top {
			*root = [2]uint64{c0, c1}
			continue
		}
		heap.Push(&made, codes.Node{X: b.t.HomeCount + q, C0: c0, C1: c1})
	}
	return nil
}

// nodes is a heap of nodes of the tree with their codes, the lowest first.
type nodes []codes.Node

func (n nodes) Len() int           { return len(n) }
func (n nodes) Less(i, j int) bool { return n[i].X < n[j].X }
func (n nodes) Swap(i, j int)      { n[i], n[j] = n[j], n[i] }
func (n *nodes) Push(x any)        { *n = append(*n, x.(codes.Node)) }

func (n *nodes) Pop() any {
	last := len(*n) - 1
	x := (*n)[last]
	*n = (*n)[:last]
	return x
}

// joined is the ranges in order, with neighbours as one.
func joined(rs []Range) []Range {
	slices.SortFunc(rs, func(a, b Range) int { return cmp.Compare(a.From, b.From) })
	var out []Range
	for _, r := range rs {
		if n := len(out); n > 0 && out[n-1].To == r.From {
			out[n-1].To = r.To
		} else {
			out = append(out, r)
		}
	}
	return out
}
