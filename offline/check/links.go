package check

import (
	"errors"
	"fmt"
	"math/bits"

	"tansy/disk"
)

// links is the pass that compares link counts with the entries found, and looks
// for what cannot be reached.
func (c *checker) links() error {
	if err := errors.Join(c.follow(c.orphans()), c.follow(c.kept())); err != nil {
		return err
	}
	done := uint64(0)
	err := c.tab.each(func(ino uint64, r *record) error {
		done++
		c.progress(done, c.rep.Inodes)
		if ino != orphansIno {
			c.link(ino, r)
		}
		return nil
	})
	if c.unnamed > 0 {
		c.note("%d files that have fewer names than links, because directories, "+
			"or inodes that may be directories, are damaged or cannot be read", c.unnamed)
	}
	if c.unlisted > 0 {
		c.note("%d files that should be on the orphan list, or that of kept files, "+
			"because it cannot be followed to its end", c.unlisted)
	}
	return err
}

// A list is one of those that inode 2 heads.
type list struct {
	name  string
	mark  string // what its members are marked as
	next  func(n *inode) uint64
	flag  uint8
	state uint8
	lost  *bool
	count *uint64
}

// orphans and kept are these lists.
func (c *checker) orphans() *list {
	next := func(n *inode) uint64 { return n.next }
	return &list{"orphan list", "so", next, flagOrphan, stateListed, &c.listLost, &c.rep.Orphans}
}

func (c *checker) kept() *list {
	next := func(n *inode) uint64 { return n.parent }
	return &list{"list of kept files", "as kept", next, flagKept, stateKept, &c.keptLost, &c.rep.Kept}
}

// follow marks what is on a list.
func (c *checker) follow(l *list) error {
	head, err := c.readInode(orphansIno)
	if asLost(err) != nil {
		*l.lost = true
		return nil
	}
	if err != nil {
		return err
	}
	before, at := uint64(orphansIno), l.next(&head)
	for at != 0 {
		r := c.tab.get(at)
		if c.inodeLost(at) {
			*l.lost = true
			return nil
		}
		if at <= orphansIno || r == nil {
			*l.lost = true
			c.problem(before, 0, "the %s goes on to inode %d, which is not in use", l.name, at)
			return nil
		}
		if r.state&l.state != 0 {
			*l.lost = true
			c.problem(before, 0, "the %s goes back to inode %d: it has no end", l.name, at)
			return nil
		}
		r.state |= l.state
		*l.count++
		if r.flags&l.flag == 0 {
			c.problem(at, 0, "the file is on the %s, but not marked %s", l.name, l.mark)
		}
		n, err := c.readInode(at)
		if asLost(err) != nil {
			*l.lost = true
			return nil
		}
		if err != nil {
			return err
		}
		before, at = at, l.next(&n)
	}
	return nil
}

// link checks the link count of an inode, and that it can be reached.
func (c *checker) link(ino uint64, r *record) {
	listed := r.state&stateListed != 0
	if r.flags&flagOrphan != 0 && !listed {
		if c.listLost {
			c.unlisted++
			listed = true
		} else {
			c.problem(ino, 0, "the file is marked to be on the orphan list, but is not")
		}
	}
	kept := uint32(0) // links that are no names
	switch {
	case r.flags&flagKept == 0:
	case r.state&stateKept != 0:
		kept = 1
	case c.keptLost:
		c.unlisted++
		kept = 1
	default:
		c.problem(ino, 0, "the file is marked as kept, but is not on the list of kept files")
	}
	if r.refs == 0 && ino != rootIno && !(r.nlink == 0 && listed) && !(r.nlink == 1 && kept == 1) {
		if c.dirsLost && r.nlink != 0 {
			c.unnamed++
			return
		}
		c.problem(ino, 0, "the file has link count %d, but no directory names it", r.nlink)
		return
	}
	if r.ty != typeDir {
		switch want := r.refs + kept; {
		case r.nlink > want && c.dirsLost:
			c.unnamed++
		case r.nlink != want && kept == 1:
			c.problem(ino, 0, "the link count is %d, but the count of names is %d, and the file is kept", r.nlink, r.refs)
		case r.nlink != want:
			c.problem(ino, 0, "the link count is %d, but the count of names is %d", r.nlink, r.refs)
		}
		return
	}
	entries := uint32(1)
	if ino == rootIno {
		entries = 0
		if r.parent != rootIno {
			c.problem(ino, 0, "the parent of the root is %d", r.parent)
		}
	}
	if r.nlink == 0 && ino != rootIno { // removed, and on the orphan list
		if r.refs != 0 || r.subdirs != 0 {
			c.problem(ino, 0, "a removed directory is named by %d entries and has %d sub-directories", r.refs, r.subdirs)
		}
		return
	}
	if r.refs != entries {
		c.problem(ino, 0, "the count of names of the directory is %d", r.refs)
	}
	if want := uint64(r.subdirs) + 2; uint64(r.nlink) < want || uint64(r.nlink) > want && r.state&statePart == 0 {
		c.problem(ino, 0, "the link count is %d, but a directory with %d sub-directories has %d", r.nlink, r.subdirs, want)
	}
	c.climb(ino, r)
}

// climb goes from a directory up to the root, or to one known to lead there.
func (c *checker) climb(ino uint64, r *record) {
	var path []*record
	at := ino
	for at != rootIno && r != nil && r.ty == typeDir && r.state&(stateReached|stateClimbing) == 0 {
		r.state |= stateClimbing
		path = append(path, r)
		at = r.parent
		r = c.tab.get(at)
	}
	lost := c.inodeLost(at) // which is reported; nothing is known about it
	if at != rootIno && !lost && (r == nil || r.ty != typeDir) {
		c.problem(ino, 0, "its parents lead to inode %d, which is no directory", at)
	} else if at != rootIno && !lost && r.state&stateReached == 0 {
		c.problem(ino, 0, "its parents lead to inode %d for the second time, not to the root", at)
	}
	for _, p := range path { // reached or reported, both once
		p.state = p.state&^stateClimbing | stateReached
	}
}

// blocks is the pass over the block bitmap; c.seen has the blocks found in use.
func (c *checker) blocks() error {
	c.rep.Blocks = c.seen.n
	if c.dups.n > 0 {
		if err := c.owners(); err != nil {
			return err
		}
	}
	g := &c.geo
	lost := runs{c: c, text: "marked in use, but in no file"}
	free := runs{c: c, text: "marked free, but in a file", owned: true}
	outside := runs{c: c, text: "marked in use, but outside of the data"}
	unowned := uint64(0)
	need := func(a uint64) uint64 { return min(c.seen.nextBlock(a, g.bbm, pageBits), c.nextCoded(a)) }
	err := c.v.scan(g.bbm, g.itab, need, func(a uint64, buf []byte) error {
		first := (a - g.bbm) * pageBits
		c.progress(min(first, g.dataEnd), g.dataEnd)
		if buf == nil {
			c.unreadable(0, a, c.v.lost[a], "the bitmap of the blocks from %d on", first)
			c.note("whether the blocks from %d to %d are marked in use if and only if they are", first, first+pageBits-1)
			for base := first; base < first+pageBits; base += 64 {
				c.markUsed(base, c.seen.word(base))
			}
			return nil
		}
		for w := range uint64(pageBits / 64) {
			base := first + 64*w
			marked, found := u64(buf, int(8*w)), c.seen.word(base)
			c.markUsed(base, marked|found)
			if marked == found {
				continue
			}
			data := below(g.dataEnd, base) &^ below(g.data0, base)
			if extra := marked &^ found & data; c.treesLost {
				unowned += uint64(bits.OnesCount64(extra))
			} else {
				bitRuns(extra, base, lost.add)
			}
			bitRuns(found&^marked, base, free.add)
			bitRuns(marked&^data, base, outside.add)
		}
		return nil
	})
	lost.flush()
	free.flush()
	outside.flush()
	if unowned > 0 {
		c.note("whether %d blocks that are marked in use belong to files, "+
			"because inodes or indirect blocks cannot be read", unowned)
	}
	return err
}

// below is the bits of those of the 64 numbers from base on that are below limit.
func below(limit, base uint64) uint64 {
	switch {
	case limit <= base:
		return 0
	case limit-base >= 64:
		return ^uint64(0)
	}
	return 1<<(limit-base) - 1
}

// owners names the files that have the blocks found more than once.
func (c *checker) owners() error {
	var buf [disk.BlockSize]byte
	return c.tab.each(func(ino uint64, r *record) error {
		if err := c.v.read(c.geo.itab+ino/inodesBlock, buf[:]); asLost(err) != nil {
			return nil
		} else if err != nil {
			return err
		}
		at := ino % inodesBlock * inodeSize
		n := parseInode(buf[at : at+inodeSize])
		return c.walk(&n, func(b uint64, level int, k uint64) (bool, error) {
			if b < c.geo.data0 || b >= c.geo.dataEnd {
				return false, nil
			}
			if c.dups.has(b) {
				c.problem(ino, b, "block %d of the file (level %d) is used more than once", k, level)
				return false, nil // below it all would be found again, from each of its owners
			}
			return true, nil
		}, func(uint64, int, uint64, error) {})
	})
}

// runs joins neighbouring blocks with the same problem.
type runs struct {
	c        *checker
	text     string
	owned    bool // files have the blocks: they are to be named
	from, to uint64
}

func (r *runs) add(from, to uint64) {
	if from != r.to {
		r.flush()
		r.from = from
	}
	r.to = to
}

func (r *runs) flush() {
	if r.to > r.from {
		text := r.text
		if n := r.to - r.from; n > 1 {
			text = fmt.Sprintf("%d blocks from here on are %s", n, text)
		}
		r.c.problem(0, r.from, "%s", text)
		if r.owned {
			r.c.ownersWanted(r.from, r.to)
		}
	}
	r.from, r.to = 0, 0
}
