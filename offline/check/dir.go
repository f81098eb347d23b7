package check

import (
	"bytes"
	"slices"

	"tansy/disk"
	"tansy/internal/runtime/dbytes"
)

// The format of a directory; verified/fs/directories/dirlayout.dfy explains it.
const (
	shortSlot, shortName = 64, 56
	longSlot, longName   = 512, 255
	dirLevels            = 9
	dirFanout            = 8
	inoBits              = 48
)

// A dirent is a slot in use.
type dirent struct {
	ino  uint64
	name []byte // as it lies in the block
	tag  uint8
	off  int  // of the slot in the block
	fits bool // the length fits the slot
}

// slotSize returns the size of the slots in block k of a directory's file, and the longest name in them, in bytes.
func slotSize(k uint64) (slot, name int) {
	if k%2 == 0 {
		return shortSlot, shortName
	}
	return longSlot, longName
}

// dirents calls f for each slot in use of block k of a directory's file, and
// junk for each slot with bytes that mean nothing.
func dirents(k uint64, buf []byte, f func(e dirent), junk func(off int)) {
	slot, limit := slotSize(k)
	for off := 0; off < len(buf); off += slot {
		s := buf[off : off+slot]
		w := u64(s, 0)
		if w == 0 {
			if !zeros(s) {
				junk(off)
			}
			continue
		}
		e := dirent{ino: w & (1<<inoBits - 1), tag: uint8(w >> 56), off: off}
		n := int(w >> inoBits & 0xff)
		e.fits = 0 < n && n <= limit
		n = min(n, limit)
		e.name = s[8 : 8+n]
		f(e)
		if !zeros(s[8+n:]) {
			junk(off)
		}
	}
}

// bucketOf says whether a name of hash h may lie in bucket b of its class.
func bucketOf(h, b uint64) bool {
	start, width := uint64(0), uint64(1)
	for range dirLevels {
		if b < start+width {
			return b == start+h%width
		}
		start, width = start+width, width*dirFanout
	}
	return false
}

// directories is the pass over the directories' contents.
func (c *checker) directories() error {
	done := uint64(0)
	return c.tab.each(func(ino uint64, r *record) error {
		done++
		c.progress(done, c.rep.Inodes)
		if r.ty != typeDir {
			return nil
		}
		c.rep.Directories++
		if r.state&stateTree != 0 {
			c.problem(ino, 0, "the directory is not read, because its block tree is damaged")
			return nil
		}
		return c.directory(ino, r)
	})
}

func (c *checker) readInode(ino uint64) (inode, error) {
	buf := make([]byte, disk.BlockSize)
	if err := c.v.read(c.geo.itab+ino/inodesBlock, buf); err != nil {
		return inode{}, err
	}
	at := ino % inodesBlock * inodeSize
	return parseInode(buf[at : at+inodeSize]), nil
}

// eachDirBlock calls f for the blocks of a directory's file, holes left out. The buffer
// is nil, and why not, for a block that cannot be read.
func (c *checker) eachDirBlock(n *inode, f func(k, b uint64, buf []byte, why error)) error {
	buf := make([]byte, disk.BlockSize)
	return c.walk(n, func(b uint64, level int, k uint64) (bool, error) {
		if level > 0 || k >= n.size/disk.BlockSize {
			return true, nil
		}
		err := c.v.read(b, buf)
		if l := asLost(err); l != nil {
			f(k, b, nil, l.err)
		} else if err != nil {
			return false, err
		} else {
			f(k, b, buf, nil)
		}
		return true, nil
	}, func(uint64, int, uint64, error) {}) // the inode pass has reported it
}

// directory checks the contents of one directory.
func (c *checker) directory(ino uint64, r *record) error {
	n, err := c.readInode(ino)
	if l := asLost(err); l != nil { // only now
		c.unreadable(ino, l.block, l.err, "the inode of the directory")
		r.state |= statePart
		c.dirsLost = true
		return nil
	}
	if err != nil {
		return err
	}
	var hashes []uint64 // of all names, to find duplicates
	err = c.eachDirBlock(&n, func(k, b uint64, buf []byte, why error) {
		if buf == nil {
			c.unreadable(ino, b, why, "block %d of the directory", k)
			r.state |= statePart
			c.dirsLost = true
			return
		}
		dirents(k, buf, func(e dirent) {
			h := dbytes.XXH64(e.name)
			hashes = append(hashes, h)
			c.entry(ino, k, b, e, h)
		}, func(off int) {
			c.problem(ino, b, "offset %d: bytes outside of any entry are not zeros", off)
		})
	})
	if err != nil {
		return err
	}
	c.rep.Entries += uint64(len(hashes))
	if have := uint64(len(hashes)); have > n.nent || have < n.nent && r.state&statePart == 0 {
		c.problem(ino, 0, "the directory has %d entries, but its inode says %d", len(hashes), n.nent)
	}
	slices.Sort(hashes)
	twice := map[uint64][][]byte{}
	for i := 1; i < len(hashes); i++ {
		if hashes[i] == hashes[i-1] {
			twice[hashes[i]] = nil
		}
	}
	if len(twice) == 0 {
		return nil
	}
	return c.eachDirBlock(&n, func(k, b uint64, buf []byte, _ error) {
		dirents(k, buf, func(e dirent) {
			h := dbytes.XXH64(e.name)
			names, ok := twice[h]
			if !ok {
				return
			}
			for _, s := range names {
				if bytes.Equal(s, e.name) {
					c.problem(ino, b, "offset %d: the name %q is there twice", e.off, e.name)
					return
				}
			}
			// a handful at most: the names differ, but not their 64-bit hashes
			if len(names) < dirLevels*disk.BlockSize/shortSlot {
				twice[h] = append(names, bytes.Clone(e.name))
			}
		}, func(int) {})
	})
}

// entry checks one entry of directory ino, in block b of the volume, k of its file.
func (c *checker) entry(ino, k, b uint64, e dirent, h uint64) {
	wrong := func(format string, args ...any) {
		c.problem(ino, b, "offset %d, entry %q: "+format, append([]any{e.off, e.name}, args...)...)
	}
	if !e.fits {
		wrong("the length of the name does not fit the slot")
		return
	}
	if long := len(e.name) > shortName; long != (k%2 == 1) {
		wrong("a name of %d bytes lies in a slot of the other size", len(e.name))
	}
	if string(e.name) == "." || string(e.name) == ".." || bytes.ContainsAny(e.name, "/\x00") {
		wrong("the name is not allowed")
	}
	if e.tag != uint8(h>>56) {
		wrong("the tag is %#x, but the name's hash is %#x", e.tag, h)
	}
	if !bucketOf(h, k/2) {
		wrong("the entry lies in bucket %d, where its hash %#x does not belong", k/2, h)
	}
	t := c.tab.get(e.ino)
	switch {
	case e.ino <= orphansIno || e.ino >= c.geo.inodeEnd:
		wrong("inode number %d is not possible", e.ino)
	case t == nil && c.inodeLost(e.ino):
		c.tab.get(ino).state |= statePart // perhaps a sub-directory
	case t == nil:
		wrong("it names inode %d, which is free", e.ino)
	default:
		if t.refs < 1<<32-1 {
			t.refs++
		}
		if t.ty != typeDir {
			break
		}
		if t.parent != ino {
			wrong("it names directory %d, whose parent is %d", e.ino, t.parent)
			c.misplaced[e.ino] = ino
		}
		if d := c.tab.get(ino); d.subdirs < 1<<32-1 {
			d.subdirs++
		}
	}
}
