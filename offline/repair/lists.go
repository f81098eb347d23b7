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

// listBlock says why a block of the table of access lists cannot stay, or takes its lists for there; shared: another
// file has it, too.
func (r *round) listBlock(b uint64, shared bool) string {
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
	if !r.ForgetLists || r.inodesLost || shared {
		return ""
	}
	used := r.usedLists()
	unused := 0
	for _, n := range numbers {
		if !used[n] {
			unused++
		}
	}
	if unused == len(numbers) {
		return "it is a page of access lists that no file has"
	}
	if unused > 0 {
		r.forgetLists(b, used)
		r.did(orphansIno, "access lists that no file has go: %d of %d in block %d of the table", unused, len(numbers), b)
	}
	return ""
}

// usedLists are the numbers of the lists that files have.
func (r *round) usedLists() map[uint32]bool {
	if r.used == nil {
		r.used = map[uint32]bool{}
		for ino := range r.nodes {
			marks := r.v.inode(ino).w(layout.Marks)
			r.used[marks&accessBits>>8], r.used[marks>>20] = true, true
		}
	}
	return r.used
}

// forgetLists takes the lists out of a block of the table that are not used.
func (r *round) forgetLists(b uint64, used map[uint32]bool) {
	data := r.v.edit(b)
	kept := check.WithoutLists(data, func(number uint32) bool { return !used[number] })
	clear(data[copy(data, kept):])
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
