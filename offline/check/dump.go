package check

import (
	"errors"
	"fmt"
	"io"
	"time"

	"tansy/disk"
	"tansy/journal"
)

// Dumper prints the structures of a volume for people. It prints what is there, sound or not, and Volume judges it.
// Each method needs no more of the volume than it prints: a damaged log keeps nothing else from being printed.
type Dumper struct {
	d disk.Disk
	c *checker
	w io.Writer // for problems on the way
}

// NewDumper reads the superblock of the volume on d, or its copy. It fails if neither
// can be used.
func NewDumper(d disk.Disk) (*Dumper, error) {
	c := newChecker(Options{MaxProblems: 100})
	d = c.bound(d)
	sb, err := c.superblock(d)
	if err == nil && sb == nil {
		err = errors.New(c.rep.Problems[len(c.rep.Problems)-1].String())
	}
	if err != nil {
		return nil, err
	}
	return &Dumper{d: c.use(sb, d), c: c}, nil
}

// open replays the log in memory. If it cannot be used, a warning goes to w, and the
// blocks are those at home.
func (p *Dumper) open(w io.Writer) {
	p.w = w
	if p.c.doubtful {
		fmt.Fprintf(w, "warning     block 0 has no superblock that can be used, and %s\n", doubt)
	}
	if p.c.v == nil {
		p.c.pass = "log"
		before := len(p.c.rep.Problems)
		p.c.v = p.c.openLog(p.d, p.c.sb)
		for _, x := range p.c.rep.Problems[before:] {
			fmt.Fprintf(w, "problem     %s\n", x)
		}
		p.c.rep.Problems = p.c.rep.Problems[:before] // Super has its own
		if p.c.snap != nil {
			p.c.v.genuine = p.believe
		}
	}
	if p.c.logLost {
		fmt.Fprint(w, "warning     without the log: blocks are shown as they lie at home, "+
			"and may be older than what it has\n")
	}
}

// believe has every block shown as it is, with a word about what it should not be.
func (p *Dumper) believe(a uint64, b []byte) (ok bool, bad uint64) {
	switch ok, bad := p.c.snap.Genuine(a, b); {
	case ok:
	case bad == a:
		fmt.Fprintf(p.w, "problem     block %d is not what was last written there; it is shown as it is\n", a)
	default:
		fmt.Fprintf(p.w, "problem     whether block %d is what was last written there is not known: "+
			"block %d, of the tree of codes, is damaged\n", a, bad)
	}
	return true, a
}

// Super prints the superblock and the regions of the volume. The key is left out.
func (p *Dumper) Super(w io.Writer) error {
	s := p.c.sb
	for _, x := range p.c.rep.Problems {
		fmt.Fprintf(w, "problem     %s\n", x)
	}
	fmt.Fprintf(w, "uuid        %x-%x-%x-%x-%x\n", s.uuid[:4], s.uuid[4:6], s.uuid[6:8], s.uuid[8:10], s.uuid[10:])
	fmt.Fprintf(w, "made        %s\n", stamp(s.ctime, s.ctimens))
	fmt.Fprintf(w, "size        %d blocks of %d bytes\n", s.room, disk.BlockSize)
	fmt.Fprintf(w, "inodes      %d\n", s.inodeEnd)
	if len(s.runs) > 0 {
		fmt.Fprintf(w, "most        %d blocks, %d inodes: the volume can grow so far\n", s.size, s.ninode)
		fmt.Fprintf(w, "data        so far before block %d\n", s.dataEnd)
		fmt.Fprintf(w, "runs        %d of %d that there is room for\n", len(s.runs), maxRuns)
	}
	fmt.Fprintf(w, "replies     %d\n", inodesBlock*(s.data0-s.slot0))
	fmt.Fprintf(w, "tree        %d pages of codes, two blocks each\n", s.pages)
	fmt.Fprintf(w, "log         header, %d units, ring of %d blocks\n\n", s.lognd, s.lognr)
	for _, r := range []struct {
		name     string
		from, to uint64
	}{
		{"superblock", 0, 1},
		{"tree of codes", 1, s.journal().Start},
		{"log", s.journal().Start, s.ibm},
		{"inode bitmap", s.ibm, s.bbm},
		{"block bitmap", s.bbm, s.itab},
		{"inodes", s.itab, s.slot0},
		{"replies", s.slot0, s.data0},
		{"data", s.data0, s.data1},
		{"superblock copy", s.data1, s.data1 + 1},
	} {
		if r.from < r.to {
			fmt.Fprintf(w, "%-16s blocks %d to %d\n", r.name, r.from, r.to-1)
		}
	}
	if len(s.runs) > 0 {
		fmt.Fprint(w, "\nOf these blocks, the device has:\n")
		for _, r := range s.sorted {
			fmt.Fprintf(w, "blocks %d to %d, from block %d of the device on\n", r.from, r.from+r.n-1, r.at)
		}
	}
	return nil
}

// Block prints what block a of the layout is for, where it lies on the device, and whether it holds what was last
// written there.
func (p *Dumper) Block(w io.Writer, a uint64) error {
	s := p.c.sb
	if a >= s.size {
		return fmt.Errorf("there is no block %d: they are 0 to %d", a, s.size-1)
	}
	p.open(w)
	fmt.Fprintf(w, "block       %d, %s\n", a, p.region(a))
	there, at, _ := s.locate(a)
	if !there {
		fmt.Fprint(w, "device      not there yet: it reads as zeros\n")
	} else {
		fmt.Fprintf(w, "device      block %d\n", at)
	}
	b := make([]byte, disk.BlockSize)
	if err := p.d.ReadAt(a, [][]byte{b}); err != nil {
		fmt.Fprintf(w, "contents    %v\n", err)
		return nil
	}
	var what string
	switch v := p.c.v; {
	case a < s.ibm || a == s.data1:
		what = "read"
	case v.log[a] != nil:
		what = "older than those in the log"
	case p.c.snap == nil:
		what = "not known to be what was last written there"
	default:
		p.believe(a, b)
		what = "read"
	}
	if zeros(b) {
		what += ", zeros"
	}
	fmt.Fprintf(w, "contents    %s\n", what)
	return nil
}

func stamp(sec uint64, nsec uint32) string {
	if sec > 1<<40 {
		return fmt.Sprintf("%d seconds", sec)
	}
	return time.Unix(int64(sec), int64(nsec)).UTC().Format(time.RFC3339Nano)
}

// Log prints what recovery would do.
func (p *Dumper) Log(w io.Writer) error {
	p.open(w)
	v := p.c.v
	if s, err := journal.NewSurvey(p.d, p.c.sb.journal()); err == nil {
		printSurvey(w, s)
	}
	if p.c.logLost {
		return nil
	}
	fmt.Fprintf(w, "%d blocks are newer in the log than at home\n", len(v.log))
	v.eachLogged(func(a uint64) { fmt.Fprintf(w, "block %d: %s\n", a, p.region(a)) })
	return nil
}

func printSurvey(w io.Writer, s *journal.Survey) {
	state := func(sound bool, err error, otherwise string) string {
		switch {
		case err != nil:
			return err.Error()
		case sound:
			return "sound"
		}
		return otherwise
	}
	for i, h := range s.Headers {
		name := [2]string{"header", "copy"}[i]
		fmt.Fprintf(w, "%-11s block %d: %s", name, h.Block, state(h.Sound, h.Err, "damaged"))
		if h.Sound {
			fmt.Fprintf(w, ", live from group %d on, root of the tree of codes %016x%016x", h.First, h.Root[0], h.Root[1])
		}
		fmt.Fprintln(w)
	}
	for i, g := range s.Groups {
		is := state(g.Sound, g.Err, "not whole")
		if g.Sound && i >= len(s.Log()) {
			is = "whole, but behind the end of the log"
		}
		fmt.Fprintf(w, "group %-5d block %d: %d blocks in the log, %d at home: %s\n",
			g.Number, g.Block, len(g.Addrs), len(g.Direct), is)
	}
}

// region says what block a is for.
func (p *Dumper) region(a uint64) string {
	g := p.c.geo
	switch {
	case a < g.ibm:
		return "superblock, tree of codes, or log"
	case a < g.bbm:
		return fmt.Sprintf("bitmap of the inodes from %d on", (a-g.ibm)*pageBits)
	case a < g.itab:
		return fmt.Sprintf("bitmap of the blocks from %d on", (a-g.bbm)*pageBits)
	case a < g.slot0:
		return fmt.Sprintf("inodes from %d on", (a-g.itab)*inodesBlock)
	case a < g.data0:
		return "records of replies"
	case a == g.data1:
		return "copy of the superblock"
	case a >= g.dataEnd:
		return "data, of which the volume has none there yet"
	}
	return "data"
}

var typeNames = [...]string{
	"free", "regular file", "directory", "block device", "character device", "symbolic link", "socket", "FIFO",
	"head of the orphan list",
}

// typeName is the type of an inode as it stands on the volume, with its name.
func typeName(ty uint32) string {
	name := "unknown"
	if ty < uint32(len(typeNames)) {
		name = typeNames[ty]
	}
	return fmt.Sprintf("%d (%s)", ty, name)
}

// Inode prints an inode and its block tree.
func (p *Dumper) Inode(w io.Writer, ino uint64) error {
	if ino == 0 || ino >= p.c.geo.inodeEnd {
		return fmt.Errorf("there is no inode %d: they are 1 to %d", ino, p.c.geo.inodeEnd-1)
	}
	p.open(w)
	n, err := p.c.readInode(ino)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "inode       %d, in block %d at offset %d\n",
		ino, p.c.geo.itab+ino/inodesBlock, ino%inodesBlock*inodeSize)
	fmt.Fprintf(w, "type        %s\n", typeName(n.ty))
	fmt.Fprintf(w, "mode        %#o  uid %d  gid %d\n", n.mode, n.uid, n.gid)
	fmt.Fprintf(w, "links       %d\n", n.nlink)
	fmt.Fprintf(w, "generation  %d\n", n.gen)
	fmt.Fprintf(w, "size        %d bytes\n", n.size)
	fmt.Fprintf(w, "used        %d blocks of data\n", n.used)
	fmt.Fprintf(w, "atime       %s\n", stamp(n.atime, n.atimens))
	fmt.Fprintf(w, "mtime       %s\n", stamp(n.mtime, n.mtimens))
	fmt.Fprintf(w, "ctime       %s\n", stamp(n.ctime, n.ctimens))
	if n.major|n.minor != 0 {
		fmt.Fprintf(w, "device      %d, %d\n", n.major, n.minor)
	}
	if n.ty == typeDir {
		fmt.Fprintf(w, "parent      %d\nentries     %d\n", n.parent, n.nent)
	}
	if n.ty != typeDir && n.parent != 0 {
		fmt.Fprintf(w, "parent      %d (list of kept files)\n", n.parent)
	}
	if n.flags != 0 {
		fmt.Fprintf(w, "flags       %#x\n", n.flags)
	}
	if n.verf != 0 {
		fmt.Fprintf(w, "verifier    %#x (of an exclusive CREATE)\n", n.verf)
	}
	if n.next != 0 {
		fmt.Fprintf(w, "next        %d (orphan list)\n", n.next)
	}
	if n.shrink != 0 {
		fmt.Fprintf(w, "shrink      blocks up to byte %d wait to be freed\n", n.shrink)
	}
	return p.tree(w, &n)
}

// tree prints the blocks of a file as runs that are consecutive in the file and
// on the volume.
func (p *Dumper) tree(w io.Writer, n *inode) error {
	var file, vol, count uint64 // the run so far
	flush := func() {
		if count > 0 {
			fmt.Fprintf(w, "blocks      %d to %d of the file: %d to %d\n", file, file+count-1, vol, vol+count-1)
		}
		count = 0
	}
	visited := newBitset(p.c.geo.dataEnd) // a damaged tree may have circles
	err := p.c.walk(n, func(b uint64, level int, k uint64) (bool, error) {
		if level > 0 || b < p.c.geo.data0 || b >= p.c.geo.dataEnd {
			flush()
			bad := ""
			if b < p.c.geo.data0 || b >= p.c.geo.dataEnd {
				bad = ": no data block!"
			} else if !visited.add(b) {
				bad = ": seen before!"
			}
			kind := "data block"
			if level > 0 {
				kind = fmt.Sprintf("indirect block of level %d", level)
			}
			fmt.Fprintf(w, "%s %d, for the blocks from %d on of the file%s\n", kind, b, k, bad)
			return bad == "", nil
		}
		if count == 0 || k != file+count || b != vol+count {
			flush()
			file, vol = k, b
		}
		count++
		return true, nil
	}, func(b uint64, _ int, _ uint64, why error) {
		flush()
		fmt.Fprintf(w, "problem     block %d cannot be read: %v\n", b, why)
	})
	flush()
	return err
}

// Dir prints the entries of a directory in the order of their places.
func (p *Dumper) Dir(w io.Writer, ino uint64) error {
	if ino == 0 || ino >= p.c.geo.inodeEnd {
		return fmt.Errorf("there is no inode %d: they are 1 to %d", ino, p.c.geo.inodeEnd-1)
	}
	p.open(w)
	n, err := p.c.readInode(ino)
	if err != nil {
		return err
	}
	if n.ty != typeDir {
		return fmt.Errorf("inode %d is not a directory: its type is %s", ino, typeName(n.ty))
	}
	fmt.Fprintf(w, "%12s %12s %6s  %s\n", "inode", "block", "offset", "name")
	visited := newBitset(p.c.geo.dataEnd)
	lost := func(b uint64, _ int, _ uint64, why error) {
		fmt.Fprintf(w, "problem     block %d cannot be read: %v\n", b, why)
	}
	return p.c.walk(&n, func(b uint64, level int, k uint64) (bool, error) {
		if b < p.c.geo.data0 || b >= p.c.geo.dataEnd || !visited.add(b) {
			fmt.Fprintf(w, "block %d of the directory: %d is no data block, or seen before\n", k, b)
			return false, nil
		}
		if level > 0 {
			return true, nil
		}
		buf := make([]byte, disk.BlockSize)
		err := p.c.v.read(b, buf)
		if l := asLost(err); l != nil {
			lost(b, level, k, l.err)
			return true, nil
		} else if err != nil {
			return false, err
		}
		dirents(k, buf, func(e dirent) {
			fmt.Fprintf(w, "%12d %12d %6d  %q\n", e.ino, b, e.off, e.name)
		}, func(int) {})
		return true, nil
	}, lost)
}
