package backup

import (
	"context"
	"slices"

	"tansy/journal"
)

// comparison finds the pages of the tree of codes in which a volume differs from its last backup. It goes from the root
// down, and looks below no page whose code is the same: what lies below is the same, too.
type comparison struct {
	ctx    context.Context
	now    *source
	before *source  // nil: there is no backup
	base   *Chain   // whose volume that is
	pages  []uint64 // with other codes
	leaves []uint64 // of these, and of those whose blocks are used otherwise, the ones with codes of home blocks
}

// compare compares the two. before is the volume of base; both may be nil.
func compare(ctx context.Context, now, before *source, base *Chain) (*comparison, error) {
	c := &comparison{ctx: ctx, now: now, before: before, base: base}
	root, code, _ := now.snap.Root()
	if old := c.rootBefore(); code != old {
		if err := c.down(root, code, old); err != nil {
			return nil, err
		}
	}
	if before != nil {
		if err := c.usedOtherwise(); err != nil {
			return nil, err
		}
	}
	slices.Sort(c.pages)
	slices.Sort(c.leaves)
	c.leaves = slices.Compact(c.leaves)
	return c, nil
}

func (c *comparison) rootBefore() (code journal.Code) {
	if c.before != nil {
		_, code, _ = c.before.snap.Root()
	}
	return code
}

// both are page p of the two trees, with these codes.
func (c *comparison) both(p uint64, code, old journal.Code) (now, before *journal.Codes, err error) {
	if now, err = c.now.codes(p, code); err != nil {
		return nil, nil, err
	}
	if c.before == nil || old == (journal.Code{}) {
		return now, c.now.snap.NoCodes(p), nil
	}
	if before, err = c.before.codes(p, old); err != nil {
		err = unusable(c.base, err)
	}
	return now, before, err
}

// down takes page p, whose codes differ, and those below it that do.
func (c *comparison) down(p uint64, code, old journal.Code) error {
	if c.ctx.Err() != nil {
		return context.Cause(c.ctx)
	}
	now, before, err := c.both(p, code, old)
	if err != nil {
		return err
	}
	c.pages = append(c.pages, p)
	leaf := false
	for i := range now.Len() {
		n, home, code := now.Node(i)
		_, _, old := before.Node(i)
		switch {
		case home:
			leaf = true
		case code != old:
			if err := c.down(n, code, old); err != nil {
				return err
			}
		}
	}
	if leaf {
		c.leaves = append(c.leaves, p)
	}
	return nil
}

// usedOtherwise adds the pages with codes of blocks whose bits may have changed. A block whose code is the same may
// have been free, and be in use now.
func (c *comparison) usedOtherwise() error {
	g := c.now.super.Geometry()
	from, to := g.BlockBitmap(), g.InodeTable()
	var more []uint64
	for _, p := range c.leaves {
		if p < c.now.snap.PageOf(from) || p > c.now.snap.PageOf(to-1) {
			continue
		}
		now, before, err := c.page(p)
		if err != nil {
			return err
		}
		for i := range now.Len() {
			a, home, code := now.Node(i)
			_, _, old := before.Node(i)
			if !home || a < from || a >= to || code == old {
				continue
			}
			if lo, hi := c.now.dataOf(a); lo < hi {
				for q := c.now.snap.PageOf(lo); q <= c.now.snap.PageOf(hi-1); q++ {
					more = append(more, q)
				}
			}
		}
	}
	c.leaves = append(c.leaves, more...)
	return nil
}

// page is page p of the two trees.
func (c *comparison) page(p uint64) (now, before *journal.Codes, err error) {
	known := journal.Code{1} // any but that of zeros
	if c.before == nil {
		return c.both(p, known, journal.Code{})
	}
	return c.both(p, known, known)
}
