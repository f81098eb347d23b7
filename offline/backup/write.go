package backup

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"tansy/disk"
	"tansy/internal/volumeend"
	"tansy/journal"
	"tansy/offline/check"
)

// Options say how to make a backup. The zero value is fine.
type Options struct {
	When     time.Time                // of the state; zero: now
	Number   uint64                   // of Info; 0: 1
	Rate     uint64                   // bytes a second at most; 0: as fast as it goes
	Gentle   bool                     // if there is no rate: leave most of the time to others
	Have     *Have                    // what is left out, as it is there already; nil, or Empty: nothing
	Progress func(done, total uint64) // called now and then; may be nil
}

// Report says what became of a backup.
type Report struct {
	Info
	Stored  uint64   // blocks
	Bytes   uint64   // of the file
	Damaged []Damage // blocks that are not what was last written there, the first mostNamed
	More    uint64   // and those behind
	Files   []string // the paths of the files that the damaged blocks belong to, quoted
	Unnamed error    // why there are no paths, though there is damage
}

// Damage is a block of the layout that is not what was last written there.
type Damage struct {
	Block uint64
	Err   error // the device's, or journal.ErrNotAsWritten
}

// mostNamed is how many damaged blocks a report has.
const mostNamed = 10_000

// atOnce is how many bytes of a backup are written at once.
const atOnce = 1 << 20

// Write writes a backup of the volume at rest on d (fs.AtRest) to w. If base is not nil, it is what base has not, or
// otherwise: a backup that adds to base. With Options.Have, and no base, it is what that has not. Nothing may change d.
// A damaged block does not end the backup: it is in the report, and marked in the backup. The error is one of d, of
// base, of w, or of ctx; or it wraps ErrOtherVolume.
func Write(ctx context.Context, w io.Writer, d disk.Disk, base *Chain, o Options) (Report, error) {
	s, err := superOf(d)
	if err != nil {
		return Report{}, err
	}
	now, err := newSource(volumeend.Layout(d, s), s)
	if err != nil {
		return Report{}, err
	}
	var before *source
	info := Info{Volume: volumeend.UUID(now.super), Number: max(o.Number, 1), When: o.When, Size: s.Size(),
		Room: s.Extent().Room()}
	if info.When.IsZero() {
		info.When = time.Now()
	}
	if base != nil {
		if before, err = baseOf(base, now); err != nil {
			return Report{}, err
		}
		info.Parent = base.Info().ID
	}
	if o.Have != nil && !o.Have.Empty() {
		if err := o.Have.of(s); err != nil {
			return Report{}, err
		}
		info.Parent = o.Have.ID
	}
	_, code, _ := now.snap.Root()
	info.Root = code
	if _, err := rand.Read(info.ID[:]); err != nil {
		return Report{}, err
	}
	b := &run{device: d, released: s.Geometry().Data0(), now: now,
		before: before, base: base, o: o, ctx: ctx, report: Report{Info: info}}
	b.bufs = slices.Collect(slices.Chunk(make([]byte, perHead*disk.BlockSize), disk.BlockSize))
	out := bufio.NewWriterSize(newPaced(ctx, w, o.Rate, o.Gentle), atOnce)
	if b.w, err = newWriter(out, info); err != nil {
		return b.report, err
	}
	if base == nil && !info.Full() {
		err = b.beyond()
	} else {
		err = b.all()
	}
	if err == nil {
		err = out.Flush()
	}
	b.report.Stored, b.report.Bytes = b.w.end.stored, b.w.bytes()
	if len(b.report.Damaged) > 0 {
		b.name()
	}
	return b.report, err
}

// ErrOtherVolume is wrapped by the error of adding to the backup of another volume.
var ErrOtherVolume = errors.New("the backup is of another volume")

// baseOf is the chain that a backup of now is to add to, as a volume.
func baseOf(base *Chain, now *source) (*source, error) {
	s, err := superOf(base)
	if err == nil && key(s) != key(now.super) {
		return nil, fmt.Errorf("%s: %w: its UUID is %x, and that of this volume %x", base.Name(), ErrOtherVolume,
			base.Info().Volume, volumeend.UUID(now.super))
	}
	var before *source
	if err == nil {
		before, err = newSource(base, s)
	}
	if err != nil {
		return nil, unusable(base, err)
	}
	return before, nil
}

// unusable is the error of a base that is damaged.
func unusable(base *Chain, err error) error {
	if !errors.Is(err, ErrDamaged) {
		err = fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return fmt.Errorf("nothing can be added to %s, but there can be another full backup: %w", base.Name(), err)
}

// run is a backup that is being written.
type run struct {
	device      disk.Disk
	now, before *source
	base        *Chain
	o           Options
	ctx         context.Context
	w           *writer
	report      Report

	wanted   []uint64 // blocks to be read
	bufs     [][]byte // for these
	released uint64   // all data before this block
	at       uint64   // with o.Have: all blocks before this one are told of, or the same
}

// all writes everything, in the order of the blocks.
func (b *run) all() error {
	c, err := compare(b.ctx, b.now, b.before, b.base)
	if err != nil {
		return err
	}
	p := volumeend.Journal(b.now.super)
	suspects, err := b.suspects()
	if err != nil {
		return err
	}
	for a := range suspects {
		c.leaves = append(c.leaves, b.now.snap.PageOf(a))
	}
	slices.Sort(c.leaves)
	c.leaves = slices.Compact(c.leaves)
	if err := b.take(0); err != nil {
		return err
	}
	if err := b.pages(c); err != nil {
		return err
	}
	for _, a := range []uint64{p.Start, p.Home() - 1} {
		if err := b.take(a); err != nil {
			return err
		}
	}
	for i, leaf := range c.leaves {
		if b.o.Progress != nil {
			b.o.Progress(uint64(i), uint64(len(c.leaves)))
		}
		if err := b.leaf(c, leaf, suspects); err != nil {
			return err
		}
	}
	if err := b.take(b.now.super.Size() - 1); err != nil {
		return err
	}
	if err := b.read(); err != nil {
		return err
	}
	return b.w.close()
}

// suspects are the blocks that base has not as they were written: these are stored again, whatever their codes.
func (b *run) suspects() (map[uint64]bool, error) {
	found := map[uint64]bool{}
	if b.base == nil || b.base.Damaged() == 0 {
		return found, nil
	}
	home, size := volumeend.Journal(b.now.super).Home(), b.now.super.Size()
	for _, f := range b.base.files {
		for a := home; f.end.damaged > 0; {
			e, ok, err := f.next(a)
			if err != nil {
				return nil, unusable(b.base, err)
			}
			if !ok {
				break
			}
			if _, e, _, err := b.base.find(e.block); err != nil {
				return nil, unusable(b.base, err)
			} else if (e.kind == notWritten || e.kind == unreadable) && e.block < size-1 {
				found[e.block] = true
			}
			a = e.end()
		}
	}
	return found, nil
}

// pages writes the pages of the tree of codes that differ. Of the two blocks of a page one counts.
func (b *run) pages(c *comparison) error {
	if err := b.read(); err != nil {
		return err
	}
	at := volumeend.Journal(b.now.super)
	tree := at.Start - 2*at.Pages
	for _, p := range c.pages {
		n, o, err := c.page(p)
		if err != nil {
			return err
		}
		first := tree + 2*p
		for a := first; a < first+2; a++ {
			switch {
			case a == n.Block && !zero(n.Data):
				err = b.w.add(entry{a, stored, crc(n.Data)}, n.Data)
			case b.before != nil && a == o.Block && !zero(o.Data):
				err = b.w.addGone(a, 1)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// leaf writes what differs of the home blocks whose codes are in page p.
func (b *run) leaf(c *comparison, p uint64, suspects map[uint64]bool) error {
	if err := b.ctx.Err(); err != nil {
		return context.Cause(b.ctx)
	}
	now, before, err := c.page(p)
	if err != nil {
		return err
	}
	for i := range now.Len() {
		a, home, code := now.Node(i)
		if !home {
			break
		}
		_, _, old := before.Node(i)
		is, was := code != (journal.Code{}), b.before != nil && old != (journal.Code{})
		if is {
			used, err := b.now.used(a)
			is = used || err != nil // the bitmap is damaged: all may be in use
		}
		if was {
			if was, err = b.before.used(a); err != nil {
				return unusable(b.base, err)
			}
		}
		switch {
		case is && !(was && code == old && !suspects[a]):
			err = b.want(a)
		case !is && (was || suspects[a]):
			if err = b.read(); err == nil {
				err = b.w.addGone(a, 1)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// take stores block a, which has no code.
func (b *run) take(a uint64) error {
	if err := b.read(); err != nil {
		return err
	}
	from := a
	if a == b.now.super.Size()-1 { // the superblock's copy, which may be damaged
		from = 0
	}
	buf := make([]byte, disk.BlockSize)
	if err := b.now.layout.ReadAt(from, [][]byte{buf}); err != nil {
		return err
	}
	return b.w.add(entry{a, stored, crc(buf)}, buf)
}

// want stores block a, soon.
func (b *run) want(a uint64) error {
	b.wanted = append(b.wanted, a)
	if len(b.wanted) == len(b.bufs) {
		return b.read()
	}
	return nil
}

// read reads the blocks that are wanted, and gives them to the writer.
func (b *run) read() error {
	if len(b.wanted) == 0 {
		return nil
	}
	bufs := b.bufs[:len(b.wanted)]
	for i := 0; i < len(b.wanted); {
		n := 1
		for i+n < len(b.wanted) && b.wanted[i+n] == b.wanted[i]+uint64(n) {
			n++
		}
		if err := b.store(b.wanted[i], bufs[i:i+n]); err != nil {
			return err
		}
		i += n
	}
	last := b.wanted[len(b.wanted)-1]
	b.wanted = b.wanted[:0]
	// What is before data is read until the end, also to name the files of damaged blocks.
	if last >= b.now.super.Geometry().Data0() {
		disk.Release(b.now.layout, b.released, last+1)
		b.released = last + 1
	}
	return nil
}

// store reads the blocks from a on, compares them with their codes, and gives them to the writer.
func (b *run) store(a uint64, bufs [][]byte) error {
	whole := b.now.layout.ReadAt(a, bufs) == nil
	for i, buf := range bufs {
		e := entry{block: a + uint64(i), kind: stored}
		var err error
		if !whole {
			err = b.now.layout.ReadAt(e.block, bufs[i:i+1])
		}
		if errors.Is(err, disk.ErrMomentLost) { // this is no damage of the volume, and so it is with all that follow
			return err
		}
		if err != nil {
			e.kind = unreadable
		} else if ok, _ := b.now.snap.Genuine(e.block, buf); !ok {
			e.kind, err = notWritten, journal.ErrNotAsWritten
		}
		if err != nil {
			b.damaged(e.block, err)
		}
		if err := b.put(e, buf); err != nil {
			return err
		}
	}
	return nil
}

// put gives an entry to the writer. Zeros need none where nothing was stored before.
func (b *run) put(e entry, buf []byte) error {
	switch {
	case e.kind == stored && zero(buf) && b.report.Full():
		return nil
	case e.kind == stored && zero(buf):
		return b.w.addGone(e.block, 1)
	case e.hasData():
		e.sum = crc(buf)
	}
	return b.w.add(e, buf)
}

func (b *run) damaged(a uint64, err error) {
	if len(b.report.Damaged) == mostNamed {
		b.report.More++
		return
	}
	b.report.Damaged = append(b.report.Damaged, Damage{a, err})
}

// name finds the files that the damaged blocks belong to.
func (b *run) name() {
	var blocks []uint64
	for _, d := range b.report.Damaged {
		blocks = append(blocks, d.Block)
	}
	b.report.Files, b.report.Unnamed = check.Whose(b.device, blocks)
}

func zero(b []byte) bool { return !slices.ContainsFunc(b, func(x byte) bool { return x != 0 }) }
