package check

import (
	"encoding/binary"

	"tansy/disk"
)

// The on-disk inode; verified/fs/format/inode.dfy has the same table.
const (
	inodeSize   = 256
	inodesBlock = disk.BlockSize / inodeSize

	typeReg     = 1
	typeDir     = 2
	typeBlk     = 3
	typeChr     = 4
	typeLnk     = 5
	typeLast    = 7 // the types are those of NFSv3, 1 to 7
	typeOrphans = 8 // inode 2 only; its file has the extended attributes of all files

	flagOrphan = 1 // on the orphan list
	flagKept   = 2 // on the list of kept files, which `parent` links
	flagsKnown = flagOrphan | flagKept

	// what chattr(1) sets: immutable, append-only, no dump, no atime; and the numbers of access lists
	marksKnown = 0xffff_fff0

	rootIno    = 1
	orphansIno = 2

	noID = 1<<32 - 1 // no user, and no group

	maxSize    = 1 << 39 // bytes in a file
	maxSymlink = 4095    // bytes in a symbolic link
	slots      = 15      // block numbers in an inode
)

type inode struct {
	ty, mode, nlink, flags           uint32
	size, used, parent, next         uint64
	shrink, nent, gen                uint64
	uid, gid, major, minor           uint32
	atime, mtime, ctime, verf        uint64
	atimens, mtimens, ctimens, marks uint32
	blks                             [slots]uint64
}

func u32(b []byte, off int) uint32 { return binary.LittleEndian.Uint32(b[off:]) }
func u64(b []byte, off int) uint64 { return binary.LittleEndian.Uint64(b[off:]) }

func parseInode(b []byte) (n inode) {
	n.ty, n.mode, n.nlink, n.uid, n.gid = u32(b, 0), u32(b, 4), u32(b, 8), u32(b, 12), u32(b, 16)
	n.major, n.minor, n.flags = u32(b, 20), u32(b, 24), u32(b, 28)
	n.size, n.used, n.gen = u64(b, 32), u64(b, 40), u64(b, 48)
	n.atime, n.mtime, n.ctime = u64(b, 56), u64(b, 64), u64(b, 72)
	n.atimens, n.mtimens, n.ctimens, n.marks = u32(b, 80), u32(b, 84), u32(b, 88), u32(b, 92)
	n.verf, n.parent, n.next, n.shrink, n.nent = u64(b, 96), u64(b, 104), u64(b, 112), u64(b, 120), u64(b, 128)
	for k := range n.blks {
		n.blks[k] = u64(b, 136+8*k)
	}
	return n
}

// inodes is the inode pass.
func (c *checker) inodes() error {
	if err := c.inodeBits(); err != nil {
		return err
	}
	g := &c.geo
	need := func(a uint64) uint64 { return min(c.ibits.nextBlock(a, g.itab, inodesBlock), c.nextCoded(a)) }
	err := c.v.scan(g.itab, g.itab+(g.ninode+inodesBlock-1)/inodesBlock, need, func(a uint64, buf []byte) error {
		first := (a - g.itab) * inodesBlock
		c.progress(min(first, g.inodeEnd), g.inodeEnd)
		if buf == nil {
			c.inodesLost(a, first)
			return nil
		}
		marked := c.ibits.word(first&^63) >> (first % 64) & (1<<inodesBlock - 1)
		if marked == 0 && first > orphansIno && zeros(buf) {
			return nil // nothing was ever here: most of the inodes of a large volume
		}
		for i := range uint64(inodesBlock) {
			ino, raw := first+i, buf[i*inodeSize:(i+1)*inodeSize]
			if ino == 0 || ino >= g.ninode {
				continue
			}
			if ino >= g.inodeEnd {
				c.notYet(ino, a, raw)
				continue
			}
			if err := c.inode(ino, a, marked>>i&1 != 0, raw); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := c.tails.flush(c); err != nil {
		return err
	}
	return c.v.scan(g.slot0, g.data0, c.nextCoded, func(a uint64, buf []byte) error {
		if buf == nil {
			c.unreadable(0, a, c.v.lost[a], "records of replies (calls that clients send again may be done twice)")
		}
		return nil
	})
}

// notYet checks an inode that the volume has not yet, though its block is there: it becomes one as it is.
func (c *checker) notYet(ino, block uint64, raw []byte) {
	if !zeros(raw) {
		c.problem(0, block, "inode %d is not zeros, but the volume has none from %d on", ino, c.geo.inodeEnd)
	}
}

// inodeBits reads the inode bitmap, and checks that it has no bits of inodes that do
// not exist.
func (c *checker) inodeBits() error {
	g := &c.geo
	c.ibits = newBitset(pageBits * (g.bbm - g.ibm))
	return c.v.scan(g.ibm, g.bbm, c.nextCoded, func(a uint64, buf []byte) error {
		first := (a - g.ibm) * pageBits
		c.progress(min(first, g.inodeEnd), g.inodeEnd)
		if buf == nil {
			c.unreadable(0, a, c.v.lost[a], "the bitmap of the inodes from %d on", first)
			c.note("whether the inodes from %d to %d are marked in use if and only if they are", first, first+pageBits-1)
			return nil
		}
		for w := range uint64(pageBits / 64) {
			base, marked := first+64*w, u64(buf, int(8*w))
			c.ibits.addWord(base, marked)
			if base == 0 && marked&1 != 0 {
				c.problem(0, a, "inode 0 does not exist, but is marked in use")
			}
			bitRuns(marked&^below(g.inodeEnd, base), base, func(from, to uint64) {
				c.problem(0, a, "inodes %d to %d do not exist, but are marked in use", from, to-1)
			})
		}
		return nil
	})
}

// inodesLost reports block a of the inode table, which cannot be read.
func (c *checker) inodesLost(a, first uint64) {
	end := min(first+inodesBlock, c.geo.ninode)
	c.unreadable(0, a, c.v.lost[a], "the inodes %d to %d", first, end-1)
	marked := false
	for ino := max(first, 1); ino < min(end, c.geo.inodeEnd); ino++ {
		if c.bitLost(ino) || c.ibits.has(ino) {
			c.hits(ino)
			marked = true
		}
	}
	if marked {
		c.treesLost, c.dirsLost = true, true
	}
}

// bitLost says that the bit of an inode cannot be read.
func (c *checker) bitLost(ino uint64) bool { return c.v.lost[c.geo.ibm+ino/pageBits] != nil }

// inodeLost says that an inode cannot be read.
func (c *checker) inodeLost(ino uint64) bool {
	return ino != 0 && ino < c.geo.inodeEnd && c.v.lost[c.geo.itab+ino/inodesBlock] != nil
}

// inode checks one inode on its own. set is its bit in the inode bitmap.
func (c *checker) inode(ino, block uint64, set bool, raw []byte) error {
	n := parseInode(raw)
	if used := n.ty != 0; used != set && !c.bitLost(ino) {
		state, bit := "in use", "free"
		if !used {
			state, bit = bit, state
		}
		c.problem(ino, block, "the inode is %s, but the inode bitmap says %s", state, bit)
		if !used {
			c.dirsLost = true // it may have been a directory
		}
	}
	if n.ty == 0 {
		n.gen = 0 // the only field that outlives a file
		if n != (inode{}) {
			c.problem(ino, block, "a free inode is not blank: %+v", n)
		}
		if ino <= orphansIno {
			c.problem(ino, block, "the inode must be in use")
		}
		return nil
	}
	c.rep.Inodes++
	if ino != orphansIno && n.ty != typeDir && n.nlink > 0 && n.flags&flagKept == 0 {
		c.rep.Others++
	}
	c.attributes(ino, block, &n)
	r := c.tab.make(ino)
	r.ty, r.flags, r.nlink, r.parent = uint8(min(n.ty, 255)), uint8(n.flags&flagsKnown), n.nlink, n.parent
	state, err := c.tree(ino, &n)
	if state != treeGood && n.ty == typeDir {
		r.state |= statePart
		c.dirsLost = true
	}
	switch state {
	case treePart:
		c.treesLost = true
	case treeDamaged:
		r.state |= stateTree
	}
	return err
}

// attributes checks the fields of an inode in use.
func (c *checker) attributes(ino, block uint64, n *inode) {
	wrong := func(format string, args ...any) { c.problem(ino, block, format, args...) }
	switch {
	case ino == rootIno && n.gen != c.sb.rootgen:
		wrong("the root has generation %d, but the superblock says %d", n.gen, c.sb.rootgen)
	case ino == rootIno && n.ty != typeDir:
		wrong("the root has type %d, not that of a directory", n.ty)
	case ino == orphansIno && n.ty != typeOrphans:
		wrong("the head of the orphan list has type %d", n.ty)
	case ino == orphansIno && (n.nlink != 0 || n.flags&flagsKnown != 0):
		wrong("the head of the orphan list has link count %d and flags %#x", n.nlink, n.flags)
	case ino > orphansIno && n.ty > typeLast:
		wrong("type %d does not exist", n.ty)
	}
	if n.gen == 0 {
		wrong("an inode in use has generation 0")
	}
	if n.mode&^0o7777 != 0 {
		wrong("mode %#o has bits beyond the permissions", n.mode)
	}
	if n.uid == noID {
		wrong("the owner is %d, which is no user: clients are shown 65534", n.uid)
	}
	if n.gid == noID {
		wrong("the group is %d, which is no group: clients are shown 65534", n.gid)
	}
	if n.marks&^marksKnown != 0 {
		wrong("the flags %#x, of chattr, are unknown", n.marks&^marksKnown)
	}
	c.hasLists(ino, n, wrong)
	if n.flags&^flagsKnown != 0 {
		wrong("flags %#x are unknown", n.flags&^flagsKnown)
	}
	for _, t := range []struct {
		name string
		ns   uint32
	}{{"atime", n.atimens}, {"mtime", n.mtimens}, {"ctime", n.ctimens}} {
		if t.ns >= 1e9 {
			wrong("%s has %d nanoseconds", t.name, t.ns)
		}
	}
	if n.ty != typeBlk && n.ty != typeChr && (n.major != 0 || n.minor != 0) {
		wrong("device number %d, %d of a file of type %d", n.major, n.minor, n.ty)
	}
	if n.nlink == 0 && n.size != 0 && ino != orphansIno {
		wrong("size %d of a removed file", n.size)
	}
	if n.size > maxSize {
		wrong("size %d is larger than a file can be", n.size)
	}
	if n.shrink > maxSize {
		wrong("shrink %d is larger than a file can be", n.shrink)
	}
	if n.shrink != 0 && n.flags&flagOrphan == 0 {
		wrong("blocks up to %d wait to be freed, but the file is not on the orphan list", n.shrink)
	}
	switch n.ty {
	case typeReg:
	case typeOrphans:
		if n.size%disk.BlockSize != 0 {
			wrong("size %d of the file of extended attributes is not whole blocks", n.size)
		}
	case typeDir:
		if n.size%disk.BlockSize != 0 {
			wrong("size %d of a directory is not whole blocks", n.size)
		}
		if n.nlink == 0 && n.nent != 0 {
			wrong("a removed directory has %d entries", n.nent)
		}
	case typeLnk:
		if n.size > maxSymlink || n.size == 0 && n.nlink != 0 {
			wrong("size %d of a symbolic link", n.size)
		}
	default:
		if n.size != 0 {
			wrong("size %d of a file of type %d, which has no contents", n.size, n.ty)
		}
	}
	if n.ty != typeDir && n.nent != 0 {
		wrong("%d directory entries in a file of type %d", n.nent, n.ty)
	}
	if n.flags&flagKept != 0 && ino != orphansIno && (n.nlink == 0 || n.ty == typeDir) {
		wrong("a file of type %d with link count %d is marked as kept open", n.ty, n.nlink)
	}
	if n.ty != typeDir && n.parent != 0 && n.flags&flagKept == 0 && ino != orphansIno {
		wrong("parent %d of a file of type %d", n.parent, n.ty)
	}
	if n.ty != typeReg && n.verf != 0 {
		wrong("verifier %#x of an exclusive CREATE in a file of type %d", n.verf, n.ty)
	}
	if n.flags&flagOrphan == 0 && ino != orphansIno && n.next != 0 {
		wrong("next is %d, but the file is not on the orphan list", n.next)
	}
}
