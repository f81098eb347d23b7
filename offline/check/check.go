// Package check verifies every invariant of a volume and says what is wrong, and
// where.
//
// It only reads. The log is replayed in memory, so that a volume whose server was
// killed is judged by what recovery will make of it. Nothing on the volume is
// trusted: a damaged pointer, count or name is reported, never followed out of
// bounds, and no content can make the check panic or run for ever.
//
// It is plain Go and shares no code with the verified file system: two
// independent readings of the on-disk format that must agree. But what the log has, and whether a block is
// what was last written there, is told by the verified journal; and where the volume ends, on a device that is larger,
// by package volumeend.
//
// The passes:
//
//	superblock   both copies, and whether the regions fit the device; what of them is there, if the volume can grow
//	log          its records; the newest contents of blocks not yet installed
//	codes        the tree of codes, by which every block read later is known to be what
//	             was last written there
//	inodes       each inode against its bit and its type, and its block tree:
//	             bounds, blocks used twice, blocks beyond the file's end
//	attributes   the extended attributes
//	directories  where each entry lies, its name, what it names, duplicates, counts
//	links        link counts, parents, unreachable files, the orphan list, kept files
//	blocks       the block bitmap, both ways
//	data         if asked for: the contents of all blocks in use, against their codes
//	names        the paths of the files that are hit
//
// A block that the device cannot read, or that is not what was last written there, is a problem like
// others: what it belongs to is named, and the rest is checked. What then cannot be judged (whether a block belongs to
// a file, whether a file has as many names as links) is not reported as damage but noted
// as not checked. Files are named by their paths, which are looked for at the end.
//
// What is empty costs nothing if the device knows it (disk.Holes), nor does what a volume that can grow has not yet.
// Blocks have the addresses of its layout, which for other volumes are those of the device.
//
// Memory: 16 MiB of the tree of codes, a bit for every used block and inode (two for a block with Options.Data), about
// 24 bytes for every inode in use, 8 bytes for every entry of the largest directory, and the blocks that the log has
// still to install, which may be as many as the log holds.
package check

import (
	"errors"
	"fmt"
	"strings"

	"tansy/disk"
	"tansy/internal/volumeend"
	"tansy/journal"
)

// A Problem is one thing that is wrong.
type Problem struct {
	Pass  string // the pass that found it
	Ino   uint64 // the inode concerned, or 0
	Block uint64 // the block of the volume's layout concerned, or 0
	Text  string
	// Files are the paths of the files concerned: all names of a file with several, but
	// a few altogether; "(unreachable)" for a file that no directory names, "(no name
	// found)" if some directory could not be read. Empty if the problem does not concern particular files.
	Files []string
	More  int // files concerned that have no path here
}

// String is one line: where, what, and the files.
func (p Problem) String() string {
	s := p.Pass
	if p.Ino != 0 {
		s += fmt.Sprintf(": inode %d", p.Ino)
	}
	if p.Block != 0 {
		s += fmt.Sprintf(": block %d", p.Block)
	}
	s += ": " + p.Text
	if len(p.Files) > 0 {
		s += " [" + strings.Join(p.Files, ", ")
		if p.More > 0 {
			s += fmt.Sprintf(", and %d more files", p.More)
		}
		s += "]"
	}
	return s
}

// Report is the result of a check.
type Report struct {
	Problems []Problem
	Unlisted uint64 // problems found beyond Options.MaxProblems

	// Unchecked says what could not be checked because of the problems.
	Unchecked  []string
	Unreadable uint64 // blocks that the device could not read
	Damaged    uint64 // blocks that are not what was last written there
	Files      int    // files that the listed problems concern

	// What is there, as far as it could be read.
	Replayed    int    // blocks whose newest contents are in the log
	Inodes      uint64 // in use, the reserved one too
	Others      uint64 // files that are no directories and have a name
	Directories uint64
	Entries     uint64 // of all directories
	Orphans     uint64 // files that wait for their space to be given back
	Kept        uint64 // files that a mount had open, and that go when the volume is opened, unless they have a name
	Xattrs      uint64 // files that have extended attributes
	Leftovers   uint64 // blocks with extended attributes of removed files, as crashes leave them: a repair frees them
	Blocks      uint64 // data and indirect blocks in use
	DataBlocks  uint64 // blocks in the data region, so far as they are there
	DataChecked uint64 // blocks whose contents were looked at because of Options.Data
	Placement   Placement
}

// Clean says that nothing is wrong.
func (r *Report) Clean() bool { return len(r.Problems) == 0 }

// Options of a check; the zero value is usable.
type Options struct {
	// MaxProblems bounds the list in the report (default 1000). The rest is counted.
	MaxProblems int
	// Data says that the contents of all blocks in use are to be read.
	Data bool
	// Progress is called now and then, from the caller's goroutine.
	Progress func(pass string, done, total uint64)
}

// Volume checks the volume on d. Damage is not an error: it is in the report, and so are single blocks that cannot be
// read. The error says why the check could not come to its end: the device holds no volume, or fails every read.
func Volume(d disk.Disk, o Options) (Report, error) {
	if o.MaxProblems <= 0 {
		o.MaxProblems = 1000
	}
	c := newChecker(o)
	err := c.run(c.bound(d))
	return c.rep, err
}

// bound is the part of d that its volume uses.
func (c *checker) bound(d disk.Disk) disk.Disk {
	end, known := volumeend.Find(d)
	if c.doubtful = !known; end < d.Size() {
		return disk.NewPrefix(d, end)
	}
	return d
}

// checker is the state the passes share.
type checker struct {
	opt  Options
	rep  Report
	pass string

	doubtful bool // the copy of the superblock may be another volume's

	sb    *superblock
	geo   bounds
	v     *view
	snap  *journal.Snapshot // nil: the log cannot be used, and the codes neither
	coded *bitset           // of the blocks before the data: those that are not zeros, by their codes
	used  *bitset           // with Options.Data: the data blocks that the bitmap or a file says are in use
	ibits *bitset           // the inodes that the bitmap has in use
	seen  *bitset           // the blocks that block trees refer to
	dups  *bitset           // those that more than one place refers to
	tab   *table            // what the inode pass learned
	tails tails
	lists listUse

	misplaced map[uint64]uint64 // directories that lie in another one than they say
	told      map[uint64]bool   // unreadable blocks that are reported
	concerns  map[int][]uint64  // by problem: the inodes concerned
	owned     [][]ownedRun      // blocks whose owners are to be named: by pass, in order

	short     bool // the device is smaller than the volume
	logLost   bool // the log cannot be used
	treesLost bool // some files' blocks are not known
	dirsLost  bool // some directories' entries are not known
	listLost  bool // the orphan list has no known end
	keptLost  bool // nor has the list of kept files
	unnamed   uint64
	unlisted  uint64

	done, total uint64 // progress of the pass
	ticks       uint64
}

func newChecker(o Options) *checker {
	return &checker{
		opt: o, pass: "superblock",
		misplaced: map[uint64]uint64{}, told: map[uint64]bool{}, concerns: map[int][]uint64{},
		lists: listUse{users: map[uint32]uint64{}, there: map[uint32]bool{}},
	}
}

func (c *checker) run(d disk.Disk) error {
	sb, err := c.superblock(d)
	if err != nil || sb == nil || c.short {
		return err
	}
	d = c.use(sb, d)
	c.pass = "log"
	c.v = c.openLog(d, sb)
	if c.logLost {
		c.note("the log, so that what follows is about the blocks at home, " +
			"of which the log may have had newer contents, and which may not be what was last written there")
	}
	c.v.tick = c.tick
	c.begin()
	c.rep.DataBlocks = c.geo.dataEnd - c.geo.data0
	for _, p := range []struct {
		name string
		run  func() error
	}{
		{"codes", c.codes},
		{"inodes", c.inodes},
		{"attributes", c.xattrs},
		{"directories", c.directories},
		{"links", c.links},
		{"blocks", c.blocks},
		{"data", c.data},
		{"names", c.names},
	} {
		c.pass, c.done, c.total = p.name, 0, 0
		if err := p.run(); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	if n := c.v.uncoded.n; n > 0 {
		c.note("whether %d blocks are what was last written there, because pages of the tree of codes are damaged", n)
	}
	return nil
}

// use takes sb for the superblock of the volume on d, and returns the layout of that.
func (c *checker) use(sb *superblock, d disk.Disk) disk.Disk {
	c.sb, c.geo = sb, bounds{sb.geometry, sb.dataEnd, sb.inodeEnd}
	return sb.layout(d)
}

// begin makes what the passes share.
func (c *checker) begin() {
	c.seen, c.dups, c.used = newBitset(c.geo.dataEnd), newBitset(c.geo.dataEnd), newBitset(c.geo.dataEnd)
	c.coded = newBitset(c.geo.data0)
	c.tab = newTable(c.geo.inodeEnd)
}

func (c *checker) problem(ino, block uint64, format string, args ...any) {
	if len(c.rep.Problems) >= c.opt.MaxProblems {
		c.rep.Unlisted++
		return
	}
	if ino != 0 {
		c.concerns[len(c.rep.Problems)] = []uint64{ino}
	}
	p := Problem{Pass: c.pass, Ino: ino, Block: block, Text: fmt.Sprintf(format, args...)}
	c.rep.Problems = append(c.rep.Problems, p)
}

// hits adds an inode to those that the last problem concerns.
func (c *checker) hits(ino uint64) {
	if c.rep.Unlisted == 0 && len(c.rep.Problems) > 0 {
		last := len(c.rep.Problems) - 1
		c.concerns[last] = append(c.concerns[last], ino)
	}
}

// unreadable reports a block that the device cannot read, or does not hold as it was written, once.
func (c *checker) unreadable(ino, block uint64, why error, format string, args ...any) {
	if c.told[block] {
		return
	}
	c.told[block] = true
	what := fmt.Sprintf(format, args...)
	if errors.Is(why, journal.ErrNotAsWritten) {
		c.rep.Damaged++
		c.problem(ino, block, "%s: not what was last written there", what)
		return
	}
	c.rep.Unreadable++
	c.problem(ino, block, "%s cannot be read: %v", what, why)
}

// note says what is not checked. There are as many notes as problems at most.
func (c *checker) note(format string, args ...any) {
	if len(c.rep.Unchecked) < c.opt.MaxProblems {
		c.rep.Unchecked = append(c.rep.Unchecked, fmt.Sprintf(format, args...))
	}
}

// progress is called for every item of a pass.
func (c *checker) progress(done, total uint64) {
	c.done, c.total = done, total
	c.tick()
}

// tick is called for everything that takes a moment; it calls on now and then.
func (c *checker) tick() {
	if c.ticks++; c.opt.Progress != nil && c.ticks%256 == 0 {
		c.opt.Progress(c.pass, c.done, c.total)
	}
}
