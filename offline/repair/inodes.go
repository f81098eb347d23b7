package repair

import "tansy/internal/layout"

// A node is what the repair knows about an inode in use.
type node struct {
	ty      uint32
	part    bool   // a directory of which not all entries are known
	suspect bool   // its block tree contradicts itself
	refs    uint32 // entries that name it
	subdirs uint32 // directories: entries that name directories
	nent    uint64 // directories: entries
	names   []uint64
	// names of a directory: the directories that name it, until one is chosen, which is then
	// in namedBy; 0: none
	namedBy uint64
}

// inodes makes the fields of each inode possible.
func (r *round) inodes() error {
	v := r.v
	end := v.itab + (v.ninode+layout.InodesBlock-1)/layout.InodesBlock
	first := func(a uint64) uint64 {
		if a == v.itab {
			return a
		}
		return none
	}
	return v.scan(v.itab, end, first, func(a uint64, b []byte) {
		if b == nil {
			r.inodesLost = r.inodesLost || (a-v.itab)*layout.InodesBlock < v.inodeEnd
			return
		}
		for i := range uint64(layout.InodesBlock) {
			switch ino := (a-v.itab)*layout.InodesBlock + i; {
			case ino == 0 || ino >= v.ninode:
			case ino >= v.inodeEnd:
				r.notYet(ino)
			default:
				r.oneInode(ino)
			}
		}
	})
}

// inodeLost says that an inode cannot be read.
func (r *round) inodeLost(ino uint64) bool {
	return ino < r.v.inodeEnd && r.v.lost[r.v.itab+ino/layout.InodesBlock]
}

// notYet makes an inode zeros that the volume has not yet, though its block is there.
func (r *round) notYet(ino uint64) {
	if zeros(r.v.inode(ino)) {
		return
	}
	a, off := r.v.inodeBlock(ino)
	clear(r.v.edit(a)[off : off+layout.InodeSize])
	r.did(0, "inode %d, which the volume has not yet, becomes zeros", ino)
}

func (r *round) oneInode(ino uint64) {
	switch ino {
	case rootIno:
		r.fix64(ino, layout.Generation, r.v.rootgen, "the generation of the root becomes that in the superblock")
		r.fix32(ino, layout.Type, typeDir, "the root becomes a directory")
		r.fix64(ino, layout.Parent, rootIno, "the parent of the root becomes itself")
		r.fix32(ino, layout.Flags, 0, "the root is never removed")
		r.fix64(ino, layout.Shrink, 0, "the root is never removed")
		r.fix64(ino, layout.Next, 0, "the root is never removed")
	case orphansIno:
		r.fix32(ino, layout.Type, typeOrphans, "the head of the orphan list gets its type")
		for _, off := range []int{layout.Links, layout.Flags} {
			r.fix32(ino, off, 0, "the head of the orphan list gets no links and no flags")
		}
		r.fix64(ino, layout.Shrink, 0, "the file of extended attributes is never cut")
	default:
		if zeros(r.v.inode(ino)) {
			return
		}
		r.kind(ino)
	}
	n := r.v.inode(ino)
	ty := n.w(layout.Type)
	if ty == 0 {
		r.blank(ino)
		return
	}
	r.nodes[ino] = &node{ty: ty}
	if n.q(layout.Generation) == 0 {
		r.fix64(ino, layout.Generation, 1, "generation 0 becomes 1")
	}
	r.fix32(ino, layout.Mode, n.w(layout.Mode)&0o7777, "mode bits beyond the permissions are cleared")
	if n.w(layout.UID) == noID {
		r.fix32(ino, layout.UID, nobody, "the owner, who is no user, becomes nobody")
	}
	if n.w(layout.GID) == noID {
		r.fix32(ino, layout.GID, nobody, "the group, which is none, becomes nobody's")
	}
	r.fix32(ino, layout.Flags, n.w(layout.Flags)&(flagOrphan|flagKept), "unknown flags are cleared")
	r.marks(ino, ty)
	for off := layout.Nanoseconds; off < layout.Marks; off += 4 {
		if n.w(off) >= 1e9 {
			r.fix32(ino, off, 0, "impossible nanoseconds become 0")
		}
	}
	if ty != typeBlk && ty != typeChr {
		r.fix32(ino, layout.Major, 0, "the device number of what is no device is cleared")
		r.fix32(ino, layout.Minor, 0, "the device number of what is no device is cleared")
	}
	if ty != typeReg {
		r.fix64(ino, layout.Verifier, 0, "the verifier of what is no regular file is cleared")
	}
	if ty != typeDir {
		if n.w(layout.Flags)&flagKept == 0 && ino != orphansIno {
			r.fix64(ino, layout.Parent, 0, "the parent of what is no directory is cleared")
		}
		r.fix64(ino, layout.Entries, 0, "the entries of what is no directory are cleared")
	}
	// what lies behind the end that is then too low raises it again
	if n.q(layout.Size) > maxSize {
		r.fix64(ino, layout.Size, 0, "the size, larger than a file can be, becomes that of its blocks")
	}
	if n.q(layout.Shrink) > maxSize {
		r.fix64(ino, layout.Shrink, 0, "what waits to be freed, more than a file can have, becomes what there is")
	}
}

// kind corrects the type of an inode that its other fields contradict. What has blocks, or a
// parent, was a file although its type says otherwise.
func (r *round) kind(ino uint64) {
	n := r.v.inode(ino)
	ty, size := n.w(layout.Type), n.q(layout.Size)
	contents := size != 0 || !zeros(n[layout.Pointers:])
	wrong := false
	switch {
	case ty == 0:
		// a free inode keeps its generation, and nothing else
		wrong = n.w(layout.Links) != 0 && n.q(layout.Generation) != 0
	case ty > typeLast:
		wrong = true
	case ty == typeReg:
		wrong = n.q(layout.Parent) != 0 && n.q(layout.Entries) != 0
	case ty == typeDir:
		wrong = n.q(layout.Parent) == 0 && size%4096 != 0 && ino != rootIno
	case ty == typeLnk:
		wrong = size > maxSymlink || size == 0 && n.w(layout.Links) != 0
	default:
		wrong = contents
	}
	if !wrong {
		return
	}
	want := uint32(typeReg)
	if p := n.q(layout.Parent); p != 0 && p < r.v.inodeEnd && size%4096 == 0 {
		want = typeDir
	}
	r.fix32(ino, layout.Type, want, map[uint32]string{
		typeReg: "the type contradicts the rest, the file becomes a regular file",
		typeDir: "the type contradicts the rest, the file becomes a directory",
	}[want])
}

// blank makes a free inode blank, but for its generation.
func (r *round) blank(ino uint64) {
	n := r.v.inode(ino)
	if zeros(n[:layout.Generation]) && zeros(n[layout.Generation+8:]) {
		return
	}
	a, off := r.v.inodeBlock(ino)
	b := r.v.edit(a)[off : off+layout.InodeSize]
	clear(b[:layout.Generation])
	clear(b[layout.Generation+8:])
	r.did(ino, "the inode, which is free, becomes blank")
}

func (r *round) fix32(ino uint64, off int, x uint32, what string) {
	if old := r.v.inode(ino).w(off); r.v.set32(ino, off, x) {
		r.did(ino, "%s (%#x, was %#x)", what, x, old)
	}
}

func (r *round) fix64(ino uint64, off int, x uint64, what string) {
	if old := r.v.inode(ino).q(off); r.v.set64(ino, off, x) {
		r.did(ino, "%s (%d, was %d)", what, x, old)
	}
}
