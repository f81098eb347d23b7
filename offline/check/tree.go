package check

import (
	"bytes"

	"tansy/disk"
	"tansy/internal/gen/fs/directories/directories"
)

// steady is how many of a directory's first blocks stay when they are empty.
var steady = directories.FirstLevels()

const (
	fanout    = disk.BlockSize / 8 // block numbers in an indirect block
	directMax = 12
	singleMax = directMax + fanout
	doubleMax = singleMax + fanout*fanout
)

// walk visits a block tree in the order of the file: visit is called for each
// block it refers to, with the block's level (0: data) and the index in the file
// of the first block below it. Below an indirect block the walk goes on only if
// visit returns true. lost is called for an indirect block that cannot be read; the
// walk goes on behind what lies below it.
func (c *checker) walk(
	n *inode, visit func(b uint64, level int, k uint64) (bool, error), lost func(b uint64, level int, k uint64, why error),
) error {
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
			l := asLost(err)
			if l == nil {
				return err
			}
			lost(b, level, k, l.err)
			return nil
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

// known is what tree found out about a block tree.
type known int

const (
	treeGood    known = iota
	treePart          // some of it cannot be read
	treeDamaged       // a block in it is out of bounds or used elsewhere too: not to be walked again
)

// tree checks the block tree of an inode.
func (c *checker) tree(ino uint64, n *inode) (state known, err error) {
	blocks := uint64(0) // of data
	end := max(n.size, n.shrink)
	last := uint64(0) // the block with the file's last bytes, if they do not fill it
	final := n.size == 0
	var lie fileRuns
	err = c.walk(n, func(b uint64, level int, k uint64) (bool, error) {
		if b < c.geo.data0 || b >= c.geo.dataEnd {
			c.problem(ino, 0, "block %d of the file (level %d): %d is no data block", k, level, b)
			state = treeDamaged
			return false, nil
		}
		if !c.seen.add(b) {
			c.dups.add(b)
			state = treeDamaged
			return false, nil
		}
		lie.add(b)
		if level == 0 {
			blocks++
		}
		if k*disk.BlockSize >= end {
			c.problem(ino, b, "block %d of the file (level %d) lies beyond its end (size %d, shrink %d)",
				k, level, n.size, n.shrink)
		}
		if level == 0 && n.size != 0 && k == (n.size-1)/disk.BlockSize {
			final = true
			if n.size%disk.BlockSize != 0 {
				last = b
			}
		}
		return true, nil
	}, func(b uint64, level int, k uint64, why error) {
		c.unreadable(ino, b, why, "an indirect block (level %d) of the file, with the blocks from %d on", level, k)
		state = max(state, treePart)
	})
	if n.ty == typeReg {
		c.rep.Placement.add(&lie)
	}
	if err != nil {
		return state, err
	}
	if state == treeGood && blocks != n.used || state == treePart && blocks > n.used {
		c.problem(ino, 0, "the file has %d blocks of data, but its inode says %d", blocks, n.used)
	}
	// (Other blocks of a directory become holes when a removal leaves them empty.)
	if state == treeGood && !final && (n.ty == typeDir && n.size <= steady*disk.BlockSize || n.ty == typeLnk) {
		c.problem(ino, 0, "the last block of the file (size %d, type %d) is missing", n.size, n.ty)
	}
	if last != 0 {
		err = c.tails.add(c, ino, n.size, last)
	}
	return state, err
}

var zeroBlock [disk.BlockSize]byte

// zeros says whether b, at most a block, is all zeros.
func zeros(b []byte) bool { return bytes.Equal(b, zeroBlock[:len(b)]) }
