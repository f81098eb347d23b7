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
	typeOrphans = 8 // inode 2 only

	flagOrphan = 1 // on the orphan list
	flagsKnown = flagOrphan

	rootIno    = 1
	orphansIno = 2

	maxSize    = 1 << 39 // bytes in a file
	maxSymlink = 4095    // bytes in a symbolic link
	slots      = 15      // block numbers in an inode
)

type inode struct {
	ty, mode, nlink, flags             uint32
	size, used, parent, next           uint64
	shrink, nent, gen                  uint64
	uid, gid, major, minor             uint32
	atime, mtime, ctime, verf          uint64
	atimens, mtimens, ctimens, padding uint32
	blks                               [slots]uint64
}

func u32(b []byte, off int) uint32 { return binary.LittleEndian.Uint32(b[off:]) }
func u64(b []byte, off int) uint64 { return binary.LittleEndian.Uint64(b[off:]) }

func parseInode(b []byte) (n inode) {
	n.ty, n.mode, n.nlink, n.uid, n.gid = u32(b, 0), u32(b, 4), u32(b, 8), u32(b, 12), u32(b, 16)
	n.major, n.minor, n.flags = u32(b, 20), u32(b, 24), u32(b, 28)
	n.size, n.used, n.gen = u64(b, 32), u64(b, 40), u64(b, 48)
	n.atime, n.mtime, n.ctime = u64(b, 56), u64(b, 64), u64(b, 72)
	n.atimens, n.mtimens, n.ctimens, n.padding = u32(b, 80), u32(b, 84), u32(b, 88), u32(b, 92)
	n.verf, n.parent, n.next, n.shrink, n.nent = u64(b, 96), u64(b, 104), u64(b, 112), u64(b, 120), u64(b, 128)
	for k := range n.blks {
		n.blks[k] = u64(b, 136+8*k)
	}
	return n
}

// inodes is the inode pass.
func (c *checker) inodes() error {
	g := &c.geo
	bits := make([]byte, disk.BlockSize)
	bitsOf := uint64(0) // the bitmap block in bits
	err := c.v.scan(g.itab, g.itab+(g.ninode+inodesBlock-1)/inodesBlock, func(a uint64, buf []byte) error {
		first := (a - g.itab) * inodesBlock
		c.progress(first, g.ninode)
		if b := g.ibm + first/pageBits; b != bitsOf {
			if err := c.v.read(b, bits); err != nil {
				return err
			}
			bitsOf = b
		}
		if u := bits[first%pageBits/8:]; u[0]|u[1] == 0 && first > orphansIno && zeros(buf) {
			return nil // nothing was ever here: most of the inodes of a large volume
		}
		for i := range uint64(inodesBlock) {
			ino := first + i
			set := bits[ino%pageBits/8]>>(ino%8)&1 != 0
			if ino == 0 && set {
				c.problem(0, g.ibm, "inode 0 does not exist, but is marked in use")
			}
			if ino == 0 || ino >= g.ninode {
				continue
			}
			if err := c.inode(ino, a, set, buf[i*inodeSize:(i+1)*inodeSize]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return c.inodeBitsBeyond()
}

// inodeBitsBeyond checks that the inode bitmap has no bits of inodes that do not exist.
func (c *checker) inodeBitsBeyond() error {
	g := &c.geo
	return c.v.scan(g.ibm+g.ninode/pageBits, g.bbm, func(a uint64, buf []byte) error {
		first := (a - g.ibm) * pageBits
		skip := uint64(0) // bits of inodes that exist
		if first < g.ninode {
			skip = g.ninode - first
		}
		for w := skip / 64; w < pageBits/64; w++ {
			marked := u64(buf, int(8*w))
			if w == skip/64 {
				marked &= ^uint64(0) << (skip % 64)
			}
			bitRuns(marked, first+64*w, func(from, to uint64) {
				c.problem(0, a, "inodes %d to %d do not exist, but are marked in use", from, to-1)
			})
		}
		return nil
	})
}

// inode checks one inode on its own. set is its bit in the inode bitmap.
func (c *checker) inode(ino, block uint64, set bool, raw []byte) error {
	n := parseInode(raw)
	if used := n.ty != 0; used != set {
		state, bit := "in use", "free"
		if !used {
			state, bit = bit, state
		}
		c.problem(ino, block, "the inode is %s, but the inode bitmap says %s", state, bit)
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
	c.attributes(ino, block, &n)
	r := c.tab.make(ino)
	r.ty, r.flags, r.nlink, r.parent = uint8(min(n.ty, 255)), uint8(n.flags&flagsKnown), n.nlink, n.parent
	ok, err := c.tree(ino, &n)
	if err != nil {
		return err
	}
	if !ok {
		r.state |= stateTree
	}
	return nil
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
	case ino == orphansIno && (n.nlink != 0 || n.flags&flagOrphan != 0):
		wrong("the head of the orphan list has link count %d and flags %#x", n.nlink, n.flags)
	case ino > orphansIno && n.ty > typeLast:
		wrong("type %d does not exist", n.ty)
	}
	if n.mode&^0o7777 != 0 {
		wrong("mode %#o has bits beyond the permissions", n.mode)
	}
	if n.padding != 0 {
		wrong("the unused bytes at 92 are not zeros")
	}
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
	if n.nlink == 0 && n.size != 0 {
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
	if n.flags&flagOrphan == 0 && ino != orphansIno && n.next != 0 {
		wrong("next is %d, but the file is not on the orphan list", n.next)
	}
}
