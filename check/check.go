// Package check verifies every invariant of a volume and says what is wrong, and
// where.
//
// It only reads. The log is replayed in memory, so that a volume whose server was
// killed is judged by what recovery will make of it. Nothing on the volume is
// trusted: a damaged pointer, count or name is reported, never followed out of
// bounds, and no content can make the check panic or run for ever.
//
// It is plain Go and shares no code with the verified file system: two
// independent readings of the on-disk format that must agree.
//
// The passes:
//
//	superblock   both copies, and whether the regions fit the device
//	log          its records; the newest contents of blocks not yet installed
//	inodes       each inode against its bit and its type, and its block tree:
//	             bounds, blocks used twice, blocks beyond the file's end
//	directories  where each entry lies, its name, what it names, duplicates, counts
//	links        link counts, parents, unreachable files, the orphan list
//	blocks       the block bitmap, both ways
//
// Memory: a bit for every used block, about 24 bytes for every inode in use, 8
// bytes for every entry of the largest directory, and the blocks that the log has
// still to install, which may be as many as the log holds.
package check

import (
	"fmt"

	"tansy/disk"
)

// A Problem is one thing that is wrong.
type Problem struct {
	Pass  string // the pass that found it
	Ino   uint64 // the inode concerned, or 0
	Block uint64 // the block of the volume concerned, or 0
	Text  string
}

// String is one line: where, and what.
func (p Problem) String() string {
	s := p.Pass
	if p.Ino != 0 {
		s += fmt.Sprintf(": inode %d", p.Ino)
	}
	if p.Block != 0 {
		s += fmt.Sprintf(": block %d", p.Block)
	}
	return s + ": " + p.Text
}

// Report is the result of a check.
type Report struct {
	Problems []Problem
	Unlisted uint64 // problems found beyond Options.MaxProblems

	// What is there, as far as it could be read.
	Replayed    int    // blocks whose newest contents are in the log
	Inodes      uint64 // in use, the reserved one too
	Directories uint64
	Entries     uint64 // of all directories
	Orphans     uint64 // files that wait for their space to be given back
	Blocks      uint64 // data and indirect blocks in use
	DataBlocks  uint64 // blocks in the data region
}

// Clean says that nothing is wrong.
func (r *Report) Clean() bool { return len(r.Problems) == 0 }

// Options of a check; the zero value is usable.
type Options struct {
	// MaxProblems bounds the list in the report (default 1000). The rest is counted.
	MaxProblems int
	// Progress is called now and then, from the caller's goroutine.
	Progress func(pass string, done, total uint64)
}

// Volume checks the volume on d. The error is not nil if the volume could not be
// read to the end: the device failed, or holds no volume at all. Damage is not an
// error but in the report.
func Volume(d disk.Disk, o Options) (Report, error) {
	if o.MaxProblems <= 0 {
		o.MaxProblems = 1000
	}
	c := &checker{opt: o}
	err := c.run(d)
	return c.rep, err
}

// checker is the state the passes share.
type checker struct {
	opt  Options
	rep  Report
	pass string

	sb   *superblock
	geo  geometry
	v    *view
	seen *bitset // the blocks that block trees refer to
	dups *bitset // those that more than one place refers to
	tab  *table  // what the inode pass learned
}

func (c *checker) run(d disk.Disk) error {
	c.pass = "superblock"
	sb, err := c.superblock(d)
	if err != nil || sb == nil {
		return err
	}
	c.sb, c.geo = sb, sb.geometry
	c.pass = "log"
	if c.v, err = c.openLog(d, sb); err != nil || c.v == nil {
		return err
	}
	c.seen, c.dups = newBitset(c.geo.data1), newBitset(c.geo.data1)
	c.tab = newTable(c.geo.ninode)
	c.rep.DataBlocks = c.geo.data1 - c.geo.data0
	for _, p := range []struct {
		name string
		run  func() error
	}{
		{"inodes", c.inodes},
		{"directories", c.directories},
		{"links", c.links},
		{"blocks", c.blocks},
	} {
		c.pass = p.name
		if err := p.run(); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}

func (c *checker) problem(ino, block uint64, format string, args ...any) {
	if len(c.rep.Problems) >= c.opt.MaxProblems {
		c.rep.Unlisted++
		return
	}
	c.rep.Problems = append(c.rep.Problems, Problem{c.pass, ino, block, fmt.Sprintf(format, args...)})
}

// progress is called for every item; it calls on only for every 4096th.
func (c *checker) progress(done, total uint64) {
	if c.opt.Progress != nil && (done%4096 == 0 || done == total) {
		c.opt.Progress(c.pass, done, total)
	}
}
