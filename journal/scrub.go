package journal

import (
	"context"
	"errors"
	"fmt"
	"math/bits"

	"tansy/disk"
	"tansy/internal/gen/journal/journalscrub"
	"tansy/internal/gen/journal/journalscrubber"
	"tansy/internal/runtime/pages"
)

// A Scrub is one pass over all that has codes. It reads the pages of the tree of codes and the home blocks from the
// device, also if memory has them, and checks them. Other calls of the journal go on beside it. Of the blocks that
// Params.Bitmap tells of, it reads those in use, because a crash may have changed the others. Blocks on their way home
// are passed over, and so is what is not there (disk.There).
type Scrub struct {
	// Limit is the first block that is not looked at, though there is a device behind it; 0: there is none.
	Limit uint64
	// Before is called before n blocks are read, at most ScrubRun, and may wait. An error ends the pass. Blocks in a
	// hole of the device count a HoleShare: they are checked, too, but cost the device nothing.
	Before func(ctx context.Context, n uint64) error
	// Found is called for what is not well, once in a pass for each block. Blocks that are Damaged are in
	// Journal.Damaged, too.
	Found func(Finding)
	// Progress is called now and then with what was done so far.
	Progress func(ScrubCounts)
}

// ScrubRun is the number of blocks that a scrub reads at once.
const ScrubRun = 64

// HoleShare is how many blocks in a hole of the device count as one block that is read: they take the time of memory
// alone.
const HoleShare = 16

// ScrubCounts are blocks that a pass has dealt with.
type ScrubCounts struct {
	Good      uint64 // read, and what was last written there
	Pending   uint64 // not looked at, as they are about to be written
	Damaged   uint64 // not what was last written there, or not to be read
	Unchecked uint64 // not looked at, as their codes, or the bitmap, are in a damaged block
}

// Done is the sum of all counts.
func (c ScrubCounts) Done() uint64 { return c.Good + c.Pending + c.Damaged + c.Unchecked }

// A Finding is a block that is not well.
type Finding struct {
	Block uint64 // of a page of the tree of codes, the first of its two
	Err   error  // ErrNotAsWritten, or why the device cannot read it
	// InMemory: the server has the right contents still, and writes them when the block changes.
	InMemory bool
}

// scrub is a pass that runs.
type scrub struct {
	*Scrub
	j     *Journal
	ctx   context.Context
	n     ScrubCounts
	found map[uint64]struct{} // at most maxFound of those
}

// maxFound bounds the blocks that a pass remembers to have told of.
const maxFound = 1 << 16

// Run makes a pass over j, and returns what it has dealt with. The error is nil at the end of the pass. Else it is that
// of ctx or of Before, ErrNotOwner, or ErrClosed.
func (s Scrub) Run(ctx context.Context, j *Journal) (ScrubCounts, error) {
	r := &scrub{Scrub: &s, j: j, ctx: ctx, found: map[uint64]struct{}{}}
	err := r.pages()
	end := j.size
	if s.Limit > 0 {
		end = min(end, s.Limit)
	}
	first, limit := end, end // of what the bitmap tells of
	if j.p.First < j.p.Limit {
		first, limit = min(end, j.p.First), min(end, j.p.Limit)
	}
	if err == nil {
		err = r.blocks(j.home, first)
	}
	if err == nil {
		err = r.used(first, limit)
	}
	if err == nil {
		err = r.blocks(limit, end)
	}
	return r.n, err
}

// Scrubbed is how many pages of the tree of codes, and home blocks before end, there are for a Scrub to deal with, if
// all are in use.
func (j *Journal) Scrubbed(end uint64) uint64 {
	return j.d.CountThere(j.p.Start-2*j.p.Pages, j.p.Start)/2 + j.d.CountThere(j.home, end)
}

// before lets n more blocks be read, if the pass is to go on.
func (r *scrub) before(n uint64) error {
	r.Progress(r.n)
	if err := r.ctx.Err(); err != nil {
		return err
	}
	return r.Before(r.ctx, n)
}

// tell reports a block that is not well, once, and counts it.
func (r *scrub) tell(f Finding) {
	if _, known := r.found[f.Block]; known {
		return
	}
	if len(r.found) < maxFound {
		r.found[f.Block] = struct{}{}
	}
	r.n.Damaged++
	r.Found(f)
}

// pages scrubs the tree of codes.
func (r *scrub) pages() error {
	j := r.j
	first := j.p.Start - 2*j.p.Pages
	for lo, hi := range j.d.There(first, j.p.Start) {
		if err := r.pageRun((lo-first+1)/2, (hi-first)/2); err != nil {
			return err
		}
	}
	return nil
}

// pageRun scrubs the pages from p on before end. Both blocks of each are there.
func (r *scrub) pageRun(p, end uint64) error {
	j := r.j
	for p < end {
		at := j.p.Start - 2*(j.p.Pages-p)
		if err := j.Enter(); err != nil {
			return err
		}
		j.d.Forget(at, 2)
		st, blank, bad := journalscrubber.ScrubPage(j.core, p)
		j.d.Forget(at, 2)
		j.Leave()
		switch st {
		case journalscrub.SAgain():
		case journalscrub.SNotOurs():
			return ErrNotOwner
		case journalscrub.SGood():
			r.n.Good++
			p++
		default:
			if bad != at {
				r.n.Unchecked++
			}
			r.tell(Finding{bad, j.why(bad), st == journalscrub.SInMemory()})
			p++
		}
		if blank && p%1024 != 0 { // nothing was read
			continue
		}
		if err := r.before(2); err != nil {
			return err
		}
	}
	return nil
}

// used scrubs the blocks of [a, end) that are in use.
func (r *scrub) used(a, end uint64) error {
	bitmap := make([]byte, disk.BlockSize)
	for a < end {
		next := min(end, (a/bitsPerBlock+1)*bitsPerBlock)
		if at := r.j.p.Bitmap + a/bitsPerBlock; r.j.d.CountThere(at, at+1) == 0 {
			a = next // nothing is in use
			continue
		}
		if err := r.before(1); err != nil {
			return err
		}
		// What was in use at any time since Open is as it was written, whenever it is not pending: so the bits may
		// be older than what they are of.
		if err := r.j.Read(r.j.p.Bitmap+a/bitsPerBlock, bitmap); err == ErrClosed {
			return err
		} else if err != nil {
			r.n.Unchecked += next - a
			a = next
			continue
		}
		for a < next {
			from := scan(bitmap, a, next, true)
			to := scan(bitmap, from, next, false)
			if err := r.blocks(from, to); err != nil {
				return err
			}
			a = to
		}
	}
	return nil
}

// scan is the first of the blocks [a, end) whose bit is set, or clear, or end.
func scan(bitmap []byte, a, end uint64, set bool) uint64 {
	for ; a < end; a++ {
		v := bitmap[a%bitsPerBlock/8]
		if !set {
			v = ^v
		}
		if v >>= a % 8; v != 0 {
			return min(end, a+uint64(bits.TrailingZeros8(v)))
		}
		a |= 7
	}
	return end
}

// blocks scrubs those of the home blocks [a, end) that are there.
func (r *scrub) blocks(a, end uint64) error {
	for lo, hi := range r.j.d.There(a, end) {
		if err := r.run(lo, hi); err != nil {
			return err
		}
	}
	return nil
}

// run scrubs the home blocks [a, end), all of which are there.
func (r *scrub) run(a, end uint64) error {
	for single := uint64(0); a < end; { // so many blocks are read one by one
		n := min(ScrubRun, end-a)
		if single > 0 {
			n = 1
			single--
		}
		cost := n
		if r.j.d.InHole(a, n) {
			cost = max(1, n/HoleShare)
		}
		if err := r.before(cost); err != nil {
			return err
		}
		if err := r.j.Enter(); err != nil {
			return err
		}
		r.j.d.Forget(a, n)
		st, m, good, bad := journalscrubber.Scrub(r.j.core, a, n)
		r.j.d.Forget(a, n)
		r.j.Leave()
		r.n.Good += good
		r.n.Pending += m - good
		a += m
		switch st {
		case journalscrub.SGood():
		case journalscrub.SAgain():
			single = 1 // what is read and checked at once is seldom overtaken
		case journalscrub.SNotOurs():
			return ErrNotOwner
		case journalscrub.SUnread():
			if n > 1 {
				single = n // which one is it?
				continue
			}
			r.tell(Finding{a, r.j.unread(a), false})
			a++
		default:
			if bad == a {
				r.tell(Finding{a, ErrNotAsWritten, st == journalscrub.SInMemory()})
				a++
				continue
			}
			r.tell(Finding{bad, r.j.why(bad), false}) // a page, which has more codes
			next := min(end, r.j.home+((a-r.j.home)/pages.PerPage+1)*pages.PerPage)
			r.n.Unchecked += next - a
			a = next
		}
	}
	return nil
}

// unread is why block a could not be read just now.
func (j *Journal) unread(a uint64) error {
	err := j.d.ReadErr()
	if e := new(disk.Error); errors.As(err, &e) && e.Block == a {
		return err
	}
	return fmt.Errorf("the device cannot read block %d", a)
}
