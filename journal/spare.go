package journal

import (
	"tansy/internal/gen/journal/journalm"
	"tansy/internal/gen/journal/journalthreads"
	"tansy/internal/gen/journal/treeofcodes"
	"tansy/internal/runtime/dbytes"
)

// Room that is given back. A commit of zeros to a block that nobody needs lets the device forget
// the block instead of storing zeros; to the journal it is a commit like any other.

// Spare says that zeros need not take room on the device where they are written home next, in the n blocks from a on:
// the device may discard them (disk.Discarder). Other contents are written as ever.
func (j *Journal) Spare(a, n uint64) { j.d.Spare(a, n) }

// Unspare takes back all that Spare said. It waits for a discard that is under way.
func (j *Journal) Unspare() { j.d.Unspare() }

// Spared says what became of Spare: whether the device refuses for good to discard, and the number of blocks that zeros
// were written to because it refused.
func (j *Journal) Spared() (cannot bool, kept uint64) { return j.d.CannotSpare(), j.d.KeptBlocks() }

// Discarded is the number of blocks that were discarded.
func (j *Journal) Discarded() uint64 { return j.d.Counts().DiscardedBlocks }

// Written is the first run of home blocks in [a, end) whose codes are not those of zeros; it is empty if there is none.
// Blocks that were never written since Format, or were discarded, have codes of zeros, whatever the device holds. A
// block whose code is in a damaged page is not in a run. The result is a hint, about blocks that are home. Without a
// tree of codes it is the whole range.
func (j *Journal) Written(a, end uint64) (lo, hi uint64) {
	if j.p.Pages == 0 {
		return a, end
	}
	if j.Enter() != nil {
		return end, end
	}
	defer j.Leave()
	for lo = a; lo < end && !j.written(lo); lo++ {
	}
	for hi = lo; hi < end && j.written(hi); hi++ {
	}
	return lo, hi
}

var zeroBlock = dbytes.ZeroBlk()

func (j *Journal) written(a uint64) bool {
	ok, c0, c1, _ := treeofcodes.CodeOf(j.core.Tree, a)
	if !ok || c0|c1 == 0 {
		return false
	}
	z0, z1 := j.core.Seal.Code(a-j.home, zeroBlock)
	return c0 != z0 || c1 != z1
}

// A Position is how far the journal is with what was committed.
type Position struct {
	Commits, Durable uint64 // commits accepted, and known to be durable
	Logged, Home     uint64 // groups written to the log, and home
}

// Position returns the present one.
func (j *Journal) Position() Position {
	c := j.core
	c.Mutex.Lock()
	defer c.Mutex.Unlock()
	return Position{c.LastCommit, c.LastDurable, c.NextSeq, c.FirstSeq}
}

// Settle makes everything that was committed so far durable, and writes it home. Direct blocks can be written again
// then without waiting.
func (j *Journal) Settle() error {
	if err := j.Enter(); err != nil {
		return err
	}
	defer j.Leave()
	if err := j.flush(); err != nil {
		return err
	}
	goal := j.Position().Logged
	for {
		journalthreads.Settle(j.core)
		if !j.installed(goal) {
			return j.Failure()
		}
		if j.Position().Home >= goal {
			return nil
		}
	}
}

// installed waits for the end of an installation, unless the groups below goal are home. false: there
// will be none, because the journal failed.
func (j *Journal) installed(goal uint64) bool {
	c := j.core
	c.Mutex.Lock()
	defer c.Mutex.Unlock()
	if c.FirstSeq < goal && !c.Failed {
		c.Mutex.Wait(journalm.CSpace())
	}
	return c.FirstSeq >= goal || !c.Failed
}
