package journal

import (
	"iter"

	"tansy/internal/gen/journal/codeplaces"
	"tansy/internal/gen/journal/treeofcodes"
)

// PagesFor returns the number of pages of the tree of codes of a journal with n home blocks. ok is false if there is no
// such tree, which is so for a few n.
func PagesFor(n uint64) (pages uint64, ok bool) {
	pages = max(1, (n+252)/254)
	return pages, treeofcodes.PagesFit(n, pages)
}

// TreeBlocks yields the blocks of the tree of codes that change when home block a does. Each page has two blocks, side
// by side; the first one is yielded.
func (p Params) TreeBlocks(a uint64, size uint64) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for b, ok := p.TreeBlock(a, size); ok && yield(b); {
			b, ok = p.TreeBlock(b, size)
		}
	}
}

// TreeBlock returns the first of the two blocks of the page with the code of block a. a is a home block, or one of the
// two blocks of a page. ok is false if no page has its code.
func (p Params) TreeBlock(a uint64, size uint64) (b uint64, ok bool) {
	ok, b = codeplaces.PageWith(p.tree0(), p.Pages, p.Home(), size-p.Home(), a)
	return b, ok
}

// Below returns some home blocks, from first to last, whose codes are in page q of the tree of codes or in pages below
// it. Block q is the first of the page's two. There must be a tree.
func (p Params) Below(q, size uint64) (first, last uint64) {
	return codeplaces.Below(p.Pages, p.Home(), size-p.Home(), (q-p.tree0())/2)
}

// Depends tells whether the codes of some home blocks of [a, end) are unknown without page q of the tree of codes.
// Block q is the first of the page's two.
func (p Params) Depends(q, a, end, size uint64) bool {
	return codeplaces.Depends(p.tree0(), p.Pages, p.Home(), size-p.Home(), q, a, end)
}
