package check

import (
	"bytes"

	"tansy/disk"
)

const (
	fanout    = disk.BlockSize / 8 // block numbers in an indirect block
	directMax = 12
	singleMax = directMax + fanout
	doubleMax = singleMax + fanout*fanout
)

// walk visits a block tree in the order of the file: visit is called for each
// block it refers to, with the block's level (0: data) and the index in the file
// of the first block below it. Below an indirect block the walk goes on only if
// visit returns true.
func (c *checker) walk(n *inode, visit func(b uint64, level int, k uint64) (bool, error)) error {
	first := [...]uint64{12: directMax, 13: singleMax, 14: doubleMax}
	var bufs [4][]byte // one per level: the walk holds a path
	var down func(b uint64, level int, k uint64) error
	down = func(b uint64, level int, k uint64) error {
		if b == 0 {
			return nil
		}
		more, err := visit(b, level, k)
		if err != nil || !more || level == 0 {
			return err
		}
		if bufs[level] == nil {
			bufs[level] = make([]byte, disk.BlockSize)
		}
		buf := bufs[level]
		if err := c.v.read(b, buf); err != nil {
			return err
		}
		width := uint64(1)
		for range level - 1 {
			width *= fanout
		}
		for i := range uint64(fanout) {
			if err := down(u64(buf, int(8*i)), level-1, k+i*width); err != nil {
				return err
			}
		}
		return nil
	}
	for s, b := range n.blks {
		level, k := 0, uint64(s)
		if s >= directMax {
			level, k = s-directMax+1, first[s]
		}
		if err := down(b, level, k); err != nil {
			return err
		}
	}
	return nil
}

// tree checks the block tree of an inode. ok: it can be walked again, because no
// block in it is out of bounds or used elsewhere too.
func (c *checker) tree(ino uint64, n *inode) (ok bool, err error) {
	ok = true
	blocks := uint64(0)
	end := max(n.size, n.shrink)
	last := uint64(0) // the block with the file's last bytes, if they do not fill it
	err = c.walk(n, func(b uint64, level int, k uint64) (bool, error) {
		if b < c.geo.data0 || b >= c.geo.data1 {
			c.problem(ino, 0, "block %d of the file (level %d): %d is no data block", k, level, b)
			ok = false
			return false, nil
		}
		if !c.seen.add(b) {
			c.dups.add(b)
			ok = false
			return false, nil
		}
		blocks++
		if k*disk.BlockSize >= end {
			c.problem(ino, b, "block %d of the file (level %d) lies beyond its end (size %d, shrink %d)", k, level, n.size, n.shrink)
		}
		if level == 0 && n.size%disk.BlockSize != 0 && k == n.size/disk.BlockSize {
			last = b
		}
		return true, nil
	})
	if err != nil {
		return false, err
	}
	if ok && blocks != n.used {
		c.problem(ino, 0, "the file has %d blocks, but its inode says %d", blocks, n.used)
	}
	if last != 0 {
		buf := make([]byte, disk.BlockSize)
		if err := c.v.read(last, buf); err != nil {
			return false, err
		}
		if !zeros(buf[n.size%disk.BlockSize:]) {
			c.problem(ino, last, "the bytes behind the file's end (size %d) are not zeros", n.size)
		}
	}
	return ok, nil
}

var zeroBlock [disk.BlockSize]byte

// zeros says whether b, at most a block, is all zeros.
func zeros(b []byte) bool { return bytes.Equal(b, zeroBlock[:len(b)]) }
