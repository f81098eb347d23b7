package check

import (
	"bytes"

	"tansy/disk"
)

// Block k of inode 2's file has the extended attributes of inode k (verified/fs/files/xattrlists.dfy).

const (
	xattrsFirst  = 8 // offset of the first entry: its header, name, and value; before that the generation
	xattrsHeader = 4
)

// XattrsWrong says what is wrong within a block of extended attributes, or "".
func XattrsWrong(b []byte) string {
	if u64(b, 0) == 0 {
		return "they are of no generation"
	}
	o := xattrsFirst
	for o+xattrsHeader <= len(b) {
		n, v := int(u32(b, o)&0xff), int(u32(b, o)>>8)
		if n == 0 {
			break
		}
		end := o + xattrsHeader + n + v
		if end > len(b) {
			return "an entry goes on behind the block's end"
		}
		name := b[o+xattrsHeader : o+xattrsHeader+n]
		if bytes.IndexByte(name, 0) >= 0 {
			return "a name has a zero in it"
		}
		for p := xattrsFirst; p < o; { // there are a few
			k := int(u32(b, p) & 0xff)
			if bytes.Equal(b[p+xattrsHeader:p+xattrsHeader+k], name) {
				return "a name is there twice"
			}
			p += xattrsHeader + k + int(u32(b, p)>>8)
		}
		o = end
	}
	switch {
	case o == xattrsFirst:
		return "there are none in it"
	case !zeros(b[o:]):
		return "there is something behind the last one"
	}
	return ""
}

// xattrs checks the extended attributes: that they are such, and of which files.
func (c *checker) xattrs() error {
	raw := make([]byte, disk.BlockSize)
	at := func(ino uint64) (*inode, error) {
		if err := c.v.read(c.geo.itab+ino/inodesBlock, raw); err != nil {
			return nil, err
		}
		n := parseInode(raw[ino%inodesBlock*inodeSize:][:inodeSize])
		return &n, nil
	}
	r := c.tab.get(orphansIno)
	if r == nil || r.state&stateTree != 0 { // a damaged tree was reported, and is not walked again
		return nil
	}
	c.lists.lost = c.treesLost
	defer c.listsMissing()
	file, err := at(orphansIno)
	if l := asLost(err); l != nil {
		return nil
	} else if err != nil {
		return err
	}
	buf := make([]byte, disk.BlockSize)
	return c.walk(file, func(b uint64, level int, k uint64) (bool, error) {
		if level > 0 || (k+1)*disk.BlockSize > file.size {
			return true, nil
		}
		c.progress(k*disk.BlockSize, file.size)
		err := c.v.read(b, buf)
		if l := asLost(err); l != nil {
			c.unreadable(orphansIno, b, l.err, "the extended attributes of inode %d", k)
			if c.tab.get(k) != nil {
				c.hits(k)
			}
			c.lists.lost = c.lists.lost || IsListBlock(k, c.geo.ninode)
			return false, nil
		} else if err != nil {
			return false, err
		}
		if IsListBlock(k, c.geo.ninode) {
			c.listBlock(b, buf)
			return false, nil
		}
		if k == orphansIno || k >= c.geo.inodeEnd {
			c.problem(orphansIno, b, "there are extended attributes of inode %d, which can have none", k)
			return false, nil
		}
		if wrong := XattrsWrong(buf); wrong != "" {
			c.problem(k, b, "the extended attributes of the file are damaged: %s", wrong)
			return false, nil
		}
		n, err := at(k)
		if l := asLost(err); l != nil {
			return false, nil
		} else if err != nil {
			return false, err
		}
		if n.ty == 0 || n.gen != u64(buf, 0) {
			c.rep.Leftovers++
			return false, nil
		}
		c.rep.Xattrs++
		if k == rootIno {
			c.locksNote(b, buf)
		}
		return false, nil
	}, func(uint64, int, uint64, error) {})
}
