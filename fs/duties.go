package fs

import (
	"tansy/internal/gen/fs/exec/exec"
	"tansy/internal/gen/fs/procedures/procedurebase"
	"tansy/internal/gen/fs/procedures/trimming"
	"tansy/internal/runtime/dtxn"
)

// duties is the volume as the background has it: each part of fs/internal/background says what it needs, and decides
// when.
type duties struct{ v *FS }

// freeStep is the number of blocks freed in one transaction.
const freeStep = 128

// FreeSome takes a step of freeing what removed and cut files had.
func (d duties) FreeSome() (more bool, err error) {
	err = d.v.background(exec.FREE(), func(t *txn) (st uint32) {
		st, more = procedurebase.OrphanStep(t, d.v.dirs, d.v.freeStep)
		return st
	})
	return more, err
}

// OtherCommits is the number of commits that were not the background's, but for those of it that are under way.
func (d duties) OtherCommits() int64 { return int64(d.v.sys.Position().Commits - d.v.chores.Load()) }

// Zero writes zeros to runs of blocks, of which those that are free become so.
func (d duties) Zero(runs []dtxn.Run) error {
	return d.v.background(exec.TRIM(), func(t *txn) uint32 {
		for _, r := range runs {
			trimming.Trim(t, d.v.dirs, r.Start, r.End-r.Start)
		}
		return 0
	})
}

// Closing tells that the volume is being closed.
func (d duties) Closing() bool { return d.v.calls.Closed() }
