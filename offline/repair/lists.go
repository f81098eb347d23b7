package repair

import (
	"maps"
	"slices"

	"tansy/internal/layout"
	"tansy/offline/check"
)

// Among the flags of an inode are the numbers of its access lists.
const (
	flagsOfChattr = 0xf0
	accessBits    = 0xfff << 8
	defaultBits   = 0xfff << 20
)

// marks makes the flags of chattr, and the numbers of access lists, possible.
func (r *round) marks(ino uint64, ty uint32) {
	is := r.v.inode(ino).w(layout.Marks)
	known := uint32(flagsOfChattr | accessBits)
	switch ty {
	case typeLnk:
		known = flagsOfChattr
	case typeDir:
		known |= defaultBits
	}
	r.fix32(ino, layout.Marks, is&known, "flags that mean nothing are cleared")
}

// listBlock says why a block of the table of access lists cannot stay, or takes its lists for there.
func (r *round) listBlock(b uint64) string {
	data := r.v.contents(b)
	if data == nil {
		r.listsLost = true
		return ""
	}
	numbers, wrong := check.Lists(data)
	for _, n := range numbers {
		if r.lists[n] {
			wrong = "a list is in the table twice"
		}
	}
	if wrong != "" {
		return "the table of access lists is damaged there, " + wrong
	}
	for _, n := range numbers {
		r.lists[n] = true
	}
	return ""
}

// missingLists takes lists away that are not there. A file of which nobody knows who had which rights becomes its
// owner's alone, as it was while the list was missing.
func (r *round) missingLists() {
	if r.listsLost || r.treesLost {
		return
	}
	for _, ino := range slices.Sorted(maps.Keys(r.nodes)) {
		n := r.v.inode(ino)
		marks := n.w(layout.Marks)
		if access := marks & accessBits >> 8; access != 0 && !r.lists[access] {
			r.fix32(ino, layout.Mode, n.w(layout.Mode)&^0o77, "a file whose access list is missing becomes its owner's alone")
			marks &^= accessBits
		}
		if dflt := marks >> 20; dflt != 0 && !r.lists[dflt] {
			marks &^= defaultBits
		}
		r.fix32(ino, layout.Marks, marks, "access lists that are missing go")
	}
}
