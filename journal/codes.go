package journal

import (
	"iter"

	"tansy/internal/gen/journal/codeplaces"
	"tansy/internal/gen/journal/treeofcodes"
)

// PagesFor is the number of pages of the tree of codes of a journal with n home blocks, and whether there is
// one: a few n have none.
func PagesFor(n uint64) (pages uint64, ok bool) {
	pages = max(1, (n+252)/254)
	return pages, treeofcodes.PagesFit(n, pages)
}

// TreeBlocks are the blocks of the tree of codes that change when home block a does; each of the
// pages has two, side by side, of which the first is listed.
func (p Params) TreeBlocks(a uint64, size uint64) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for b, ok := p.TreeBlock(a, size); ok && yield(b); {
			b, ok = p.TreeBlock(b, size)
		}
	}
}

// TreeBlock is the first of the two blocks of the page that has the code of block a: a home block, or one of
// the two blocks of a page. ok is false if none has.
func (p Params) TreeBlock(a uint64, size uint64) (b uint64, ok bool) {
	ok, b = codeplaces.PageWith(p.tree0(), p.Pages, p.Home(), size-p.Home(), a)
	return b, ok
}

// Below are some home blocks, from first to last, that have their codes in page q of the tree of codes, which is in one
// of the two blocks from q on, or in pages below that. There must be a tree.
func (p Params) Below(q, size uint64) (first, last uint64) {
	return codeplaces.Below(p.Pages, p.Home(), size-p.Home(), (q-p.tree0())/2)
}

// Depends tells whether the codes of some of the home blocks [a, end) are not known without page q of the tree of
// codes, which is in one of the two blocks from q on.
func (p Params) Depends(q, a, end, size uint64) bool {
	return codeplaces.Depends(p.tree0(), p.Pages, p.Home(), size-p.Home(), q, a, end)
}
