package repair

import (
	"maps"
	"slices"

	"tansy/internal/layout"
)

// links makes the counts of links and entries what was found, and notes the files that no directory
// names in r.unnamed.
func (r *round) links() {
	for _, ino := range slices.Sorted(maps.Keys(r.nodes)) {
		n := r.nodes[ino]
		if ino == orphansIno {
			continue
		}
		f := r.v.inode(ino)
		nlink := f.w(layout.Links)
		if n.ty == typeDir && (f.q(layout.Entries) < n.nent || !n.part) {
			r.fix64(ino, layout.Entries, n.nent, "the count of entries becomes what there is")
		}
		want := n.refs
		kept := f.w(layout.Flags)&flagKept != 0
		if n.ty == typeDir {
			want = n.subdirs + 2
		} else if kept {
			want++
		}
		if n.refs == 0 && ino != rootIno && !kept {
			if nlink == 0 && f.q(layout.Size) == 0 && n.nent == 0 {
				continue // removed
			}
			if r.dirsLost || r.inodesLost {
				continue // its name may be where nothing can be read
			}
			r.unnamed = append(r.unnamed, ino)
			want = max(want, 1)
		}
		if nlink > want && (n.part || n.ty != typeDir && (r.dirsLost || r.inodesLost)) {
			continue
		}
		r.fix32(ino, layout.Links, want, "the count of links becomes the number of names")
	}
}

// kept follows the list of files that a mount kept open. If it is not as it should be none of them is kept any more:
// those without a name come to lost+found.
func (r *round) kept() {
	v := r.v
	on := map[uint64]bool{}
	may := func(ino uint64) bool {
		n := r.nodes[ino]
		return ino > orphansIno && n != nil && n.ty != typeDir && v.inode(ino).w(layout.Flags)&flagKept != 0
	}
	sound := true
	for at := v.inode(orphansIno).q(layout.Parent); at != 0; at = v.inode(at).q(layout.Parent) {
		if r.inodeLost(at) {
			return // it cannot be followed: left alone
		}
		if sound = may(at) && !on[at]; !sound {
			break
		}
		on[at] = true
	}
	for ino := range r.nodes {
		if v.inode(ino).w(layout.Flags)&flagKept != 0 && !on[ino] {
			sound = false
		}
	}
	if sound {
		return
	}
	for _, ino := range slices.Sorted(maps.Keys(r.nodes)) {
		flags := v.inode(ino).w(layout.Flags)
		if flags&flagKept != 0 {
			r.fix32(ino, layout.Flags, flags&^flagKept, "the file is not kept open any more")
		}
		if n := r.nodes[ino]; n.ty != typeDir {
			r.fix64(ino, layout.Parent, 0, "the file is not on the list of kept files any more")
		}
	}
}

// orphans makes the orphan list what it should be: all files without links, all that
// have blocks to be freed, and those that were on it.
func (r *round) orphans() {
	v := r.v
	listed := map[uint64]bool{}
	sound := true
	at := v.inode(orphansIno).q(layout.Next)
	for ; at != 0; at = v.inode(at).q(layout.Next) {
		if r.inodeLost(at) {
			return // it cannot be followed: left alone
		}
		if at <= orphansIno || r.nodes[at] == nil || listed[at] {
			sound = false
			break
		}
		if v.inode(at).w(layout.Flags)&flagOrphan != 0 {
			listed[at] = true
		} else {
			sound = false
			break
		}
	}
	var members []uint64
	for _, ino := range slices.Sorted(maps.Keys(r.nodes)) {
		if ino <= orphansIno {
			continue
		}
		n := v.inode(ino)
		flagged := n.w(layout.Flags)&flagOrphan != 0
		member := n.w(layout.Links) == 0 || n.q(layout.Shrink) != 0 || listed[ino]
		if member {
			members = append(members, ino)
		}
		if member != listed[ino] || member != flagged || !flagged && n.q(layout.Next) != 0 {
			sound = false
		}
	}
	if sound {
		return
	}
	next := uint64(0)
	for _, ino := range slices.Backward(members) {
		r.fix32(ino, layout.Flags, v.inode(ino).w(layout.Flags)|flagOrphan, "the file is put on the orphan list")
		v.set64(ino, layout.Next, next)
		next = ino
	}
	if v.set64(orphansIno, layout.Next, next) {
		r.did(orphansIno, "the orphan list is made anew, with %d files", len(members))
	}
	for ino := range r.nodes {
		if ino > orphansIno && !slices.Contains(members, ino) {
			r.fix32(ino, layout.Flags, v.inode(ino).w(layout.Flags)&^flagOrphan, "the file is taken off the orphan list")
			r.fix64(ino, layout.Next, 0, "the file is taken off the orphan list")
		}
	}
}

// bitmaps makes the bitmaps what was found. Where something could not be read nothing is freed.
func (r *round) bitmaps() error {
	v := r.v
	used := bitset{}
	for ino := range r.nodes {
		used.add(ino)
	}
	err := r.bitmap(v.ibm, v.bbm, used, "inodes", func(ino uint64) bool { return ino != 0 && r.inodeLost(ino) })
	if err != nil {
		return err
	}
	keep := func(b uint64) bool { return v.inData(b) && (r.treesLost || r.inodesLost) }
	return r.bitmap(v.bbm, v.itab, r.taken, "blocks", keep)
}

// bitmap makes the bitmap in the blocks [from, to) that of the members of set. keep says of which
// others the bits are to stay.
func (r *round) bitmap(from, to uint64, set bitset, what string, keep func(x uint64) bool) error {
	v := r.v
	pages := slices.Sorted(maps.Keys(set))
	has := func(a uint64) uint64 {
		if i, _ := slices.BinarySearch(pages, a-from); i < len(pages) {
			return from + pages[i]
		}
		return none
	}
	return v.scan(from, to, has, func(a uint64, old []byte) {
		page := slices.Clone(set[a-from])
		if page == nil {
			page = make([]byte, len(zeroBlock))
		}
		first := (a - from) * pageBits
		marked, freed := 0, 0
		for i := range page {
			o := byte(0xff) // what cannot be read may be in use
			if old != nil {
				o = old[i]
			}
			if o == page[i] {
				continue
			}
			for bit := range 8 {
				m, x := byte(1)<<bit, first+uint64(8*i+bit)
				switch {
				case o&m == page[i]&m:
				case page[i]&m != 0:
					marked++
				case keep(x):
					page[i] |= m
				default:
					freed++
				}
			}
		}
		switch {
		case old == nil:
			v.dirty[a] = page
			r.did(0, "the bitmap of the %s from %d on, which cannot be read, is made anew in block %d", what, first, a)
		case marked+freed > 0:
			v.dirty[a] = page
			r.did(0, "in the bitmap of the %s from %d on, in block %d, %d are marked in use, and %d free",
				what, first, a, marked, freed)
		}
	})
}

var zeroBlock [pageBits / 8]byte
