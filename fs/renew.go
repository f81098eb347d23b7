package fs

import (
	"tansy/internal/gen/fs/exec/calls"
	"tansy/internal/gen/fs/exec/exec"
	"tansy/internal/gen/fs/procedures/renewing"
)

// maxRenew bounds the blocks below a page of the tree of codes of which one is looked for that is in use.
const maxRenew = 1 << 15

// renew has a block written anew that the device has lost and memory has: a home block, or a page of the tree of codes.
// It commits contents of the block as they are, or of one whose code the page or one below it has; so the block goes
// home again, and the page to the other of its places, with the next installation. False: that could not be done.
func (v *FS) renew(a uint64) bool {
	first, last := a, a
	if a < v.dmg.Params.Start {
		first, last = v.dmg.Params.Below(a, v.dmg.Size)
		last = min(last, first+maxRenew)
	}
	for b := first; b <= last; b++ {
		wrote := false
		err := v.background(exec.FREE(), func(c *calls.Call, tx *txn) {
			wrote = v.replies.renew(tx, b) || renewing.Renew(tx, v.dirs, b)
			c.Done()
		})
		if err == nil && wrote {
			return v.sys.Settle() == nil // soon, as a crash before loses what memory has
		}
		if err != nil && err != ErrIO { // that: another will do
			return false
		}
	}
	return false
}

// renew writes block a anew if it is one of records, as renew in renew.go does.
func (r *replies) renew(t *txn, a uint64) bool {
	if a < r.first || a-r.first >= r.chunks {
		return false
	}
	i := (a - r.first) * chunkPlaces
	t.WriteSlot(i, t.ReadSlot(i))
	return true
}
