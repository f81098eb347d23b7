package fs

import (
	"context"
	"time"

	"tansy/fs/internal/background"
	"tansy/internal/gen/fs/exec/calls"
	"tansy/internal/gen/fs/exec/exec"
	"tansy/internal/gen/fs/exec/localcalls"
	"tansy/internal/gen/fs/procedures/trimming"
	"tansy/internal/runtime/dtxn"
	"tansy/journal"
)

// duties is the volume as the background has it: each part of fs/internal/background says what it needs, and decides
// when.
type duties struct{ v *FS }

// freeStep is the number of blocks freed in one transaction.
const freeStep = 128

// FreeSome takes a step of freeing what removed and cut files had.
func (d duties) FreeSome() (more bool, err error) {
	err = d.v.background(exec.FREE(), func(c *calls.Call, t *txn) {
		more = localcalls.FreeSome(c, t, d.v.dirs, d.v.freeStep)
	})
	return more, err
}

// OtherCommits is the number of commits that were not the background's, but for those of it that are under way.
func (d duties) OtherCommits() int64 { return int64(d.v.sys.Position().Commits - d.v.chores.Load()) }

// Zero writes zeros to those of the blocks in runs that are free.
func (d duties) Zero(runs []dtxn.Run) error {
	return d.v.background(exec.TRIM(), func(c *calls.Call, t *txn) {
		for _, r := range runs {
			trimming.Trim(t, d.v.dirs, r.Start, r.End-r.Start)
		}
		c.Done()
	})
}

// Closing tells that the volume is being closed.
func (d duties) Closing() bool { return d.v.calls.Closed() }

// InMoments tells that moments of the volume are open.
func (d duties) InMoments() bool { return d.v.moments.Held() > 0 }

// Check makes a pass over all that is in use.
func (d duties) Check(ctx context.Context, pass journal.Scrub) (journal.ScrubCounts, error) {
	pass.Limit = d.v.sys.End(dtxn.Blocks) // behind them are blocks that the volume has not yet, and the superblock's copy
	return d.v.sys.Scrub(ctx, pass)
}

// InUse is the number of blocks that a pass deals with, or 0.
func (d duties) InUse() uint64 {
	free, err := d.v.sys.Count(dtxn.Blocks)
	if err != nil {
		return 0
	}
	return d.v.sys.Scrubbed(d.v.sys.End(dtxn.Blocks)) - free
}

// Renew has a block written anew.
func (d duties) Renew(block uint64) bool { return d.v.renew(block) }

// Reading is how many reads of the device have ended, and how long these took.
func (d duties) Reading() (reads int64, took time.Duration) { return d.v.sys.Reading() }

// Prefetch has n bytes of a file in the cache afterwards, if that is not too much.
func (d duties) Prefetch(f background.File, off, n uint64) error {
	return d.v.background(procRead, func(c *calls.Call, t *txn) {
		localcalls.Prefetch(c, t, d.v.dirs, f.Ino, f.Gen, off, n)
	})
}
