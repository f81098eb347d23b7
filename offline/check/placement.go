package check

import (
	"fmt"

	"tansy/disk"
)

// LargeRun is the number of blocks (1 MiB) that a run of a large file has at least, where nothing was in the way.
const LargeRun = 1 << 20 / disk.BlockSize

// Placement is how the blocks of regular files lie on the device. Directories are left out, whose blocks are written in
// the order of the hashes of names.
//
// A run is blocks that follow each other on the device as they do in the file. An indirect block comes before those
// that it refers to, and a hole in the file does not end a run. Of a damaged block tree, what can be read counts.
type Placement struct {
	Files  uint64 // that have blocks
	Blocks uint64 // of theirs, indirect ones too
	Runs   uint64

	// Of the files with LargeRun blocks or more:
	LargeFiles  uint64
	LargeBlocks uint64
	LargeRuns   uint64
	ShortRuns   uint64 // with fewer blocks than LargeRun. Where a file ends one can be no longer
	ShortBlocks uint64 // in such runs
}

// add adds a file.
func (p *Placement) add(f *fileRuns) {
	if f.blocks == 0 {
		return
	}
	f.end()
	p.Files++
	p.Blocks += f.blocks
	p.Runs += f.n
	if f.blocks >= LargeRun {
		p.LargeFiles++
		p.LargeBlocks += f.blocks
		p.LargeRuns += f.n
		p.ShortRuns += f.short
		p.ShortBlocks += f.shortBlocks
	}
}

// String is a line for people.
func (p Placement) String() string {
	if p.Runs == 0 {
		return "no file has blocks"
	}
	mean := func(blocks, runs uint64) string {
		each := float64(blocks) / float64(runs) * (disk.BlockSize >> 10)
		return fmt.Sprintf("%d blocks in %d runs, %.1f KiB each in the mean", blocks, runs, each)
	}
	s := fmt.Sprintf("%d files have %s", p.Files, mean(p.Blocks, p.Runs))
	if p.LargeFiles > 0 {
		s += fmt.Sprintf("; the %d files of 1 MiB or more: %s, %d of them shorter than 1 MiB, with %.1f %% of the blocks",
			p.LargeFiles, mean(p.LargeBlocks, p.LargeRuns), p.ShortRuns, 100*float64(p.ShortBlocks)/float64(p.LargeBlocks))
	}
	return s
}

// fileRuns counts those of one file.
type fileRuns struct {
	blocks, n          uint64
	short, shortBlocks uint64
	next, length       uint64 // of the run that has not ended: the block behind it, and how many it has
}

// add adds the next block of the file.
func (f *fileRuns) add(b uint64) {
	if f.blocks > 0 && b != f.next {
		f.end()
	}
	f.blocks++
	f.length++
	f.next = b + 1
}

func (f *fileRuns) end() {
	f.n++
	if f.length < LargeRun {
		f.short++
		f.shortBlocks += f.length
	}
	f.length = 0
}
