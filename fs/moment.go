package fs

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"time"

	"tansy/disk"
	"tansy/internal/runtime/dtxn"
	"tansy/journal"
)

// Moment is a volume as it was after one of its commits, while it goes on to be used: an FS that refuses every change.
// It stays the same for as long as it is open.
//
// It needs no proof of its own. What the device holds at a moment is what a crash may leave then (disk.Moments). So
// recovery, which runs on it as after a crash, makes of it the state after a beginning of all commits, with all that
// was acknowledged before (verified/THEOREMS.md, 1 and 2). What recovery writes stays in memory. Each block that is
// read is compared with the code that this state has of it (theorem 4): were anything of a later time there, the read
// would fail. What free blocks hold means nothing (theorem 20), so they are not kept.
type Moment struct {
	*FS
	Taken  time.Time // by the clock of the volume (Options.Clock)
	device *disk.Moment
}

// momentCache is the cache of a moment in bytes: few things are read twice.
const momentCache = 8 << 20

// Moment returns the volume as it is now, with all commits that returned before it was called. Other calls go on; they
// wait for an instant, for writes to the device that are under way. The caller closes the moment.
//
// What is overwritten while the moment is open is read and kept before (Options.Moments says how much of that, and
// where), but for the log and for what is free at the moment. Nor is the room of removed files given back to the host
// meanwhile (Options.Discard). When there is no room to keep more, when a block cannot be read that is to be kept, and
// when Close of the volume begins, the moment is lost: whatever is read from it then fails (disk.ErrMomentLost).
//
// It brings home first what is in the log, and reads all of the bitmap of blocks. It takes some 20 MiB of memory; two
// bits for each block where some are free or were overwritten; and what was committed between that and the moment,
// which is no more than the log has room for. It may be called concurrently. The error is ErrClosed, one of the device,
// the context's cause, or why the volume cannot be opened.
func (v *FS) Moment(ctx context.Context) (*Moment, error) {
	if err := v.enter(); err != nil {
		return nil, err
	}
	defer v.leave()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := v.sys.Settle(); err != nil {
		return nil, err
	}
	d, taken := v.moments.Take(), v.clock()
	m, err := v.openMoment(ctx, d, taken)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("a moment of the volume: %w", err), d.Close())
	}
	return m, nil
}

// above is what the volume is opened on: d, of which moments can be taken.
func (o *Options) above(d disk.Disk) disk.Disk {
	o.moments = disk.NewMoments(d, o.Moments)
	return o.moments
}

// openMoment opens the volume on d, which was taken then, and releases what is not needed.
func (v *FS) openMoment(ctx context.Context, d *disk.Moment, taken time.Time) (*Moment, error) {
	f, err := Open(d, Options{
		CacheBytes: momentCache, PinnedBytes: journal.MinPinnedBytes, ReadOnly: true, Clock: v.clock, Log: v.log,
		ofMoment: true,
	})
	if err != nil {
		return nil, err
	}
	m := &Moment{f, taken, d}
	m.releaseLog()
	if err := m.releaseFree(ctx); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return m, nil
}

// releaseLog says that the log is not needed: what recovery found there is in the overlay.
func (m *Moment) releaseLog() {
	p := journalParams(*m.extent.super.Load())
	disk.Release(m.extent.whole(), p.Start, p.Home())
}

// releaseFree says that what is free is not needed.
func (m *Moment) releaseFree(ctx context.Context) error {
	const perBlock = 8 * BlockSize
	first, end := m.geo.Data0(), m.sys.End(dtxn.Blocks)
	for base := first / perBlock * perBlock; base < end; base += perBlock {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		bits, err := m.sys.Committed(m.geo.BlockBitmap() + base/perBlock)
		if err != nil {
			return fmt.Errorf("bitmap of blocks: %w", err)
		}
		eachFree(bits, max(first, base)-base, min(end-base, perBlock), func(from, to uint64) {
			disk.Release(m.extent.whole(), base+from, base+to)
		})
	}
	return nil
}

// eachFree calls f for each run of clear bits of a block of a bitmap, of the bits from lo on before hi.
func eachFree(bits []byte, lo, hi uint64, f func(from, to uint64)) {
	free := func(i uint64) bool { return binary.LittleEndian.Uint64(bits[i/64*8:])>>(i%64)&1 == 0 }
	for lo < hi {
		from := lo
		for lo < hi && free(lo) {
			lo++
		}
		if from < lo {
			f(from, lo)
		}
		for lo < hi && !free(lo) {
			lo++
		}
	}
}

// whole is the volume, in the addresses of its layout.
func (x *extent) whole() disk.Disk {
	if x.layout != nil {
		return x.layout
	}
	return x.device
}

// Err is why the moment is lost, or nil.
func (m *Moment) Err() error { return m.device.Err() }

// AtRest returns what the device would hold if the volume had ended at the moment without a crash: the log is empty,
// and all blocks are where they belong. Its blocks are those of the device that the volume uses. Free ones read as
// zeros. It cannot be written, and is closed with the moment. It is a disk.Releaser: who reads each block once says
// which are done, so that these are not kept any more. They are gone for the moment's own calls, too.
func (m *Moment) AtRest() disk.Disk { return atRest{m.extent.device} }

// Close ends the moment. It may be called again.
func (m *Moment) Close() error {
	err := m.FS.Close()
	if e := m.device.Close(); !errors.Is(e, os.ErrClosed) {
		err = errors.Join(err, e)
	}
	return err
}

// Moments is how many moments of a volume are open, and what is kept for them.
type Moments struct {
	Open         int
	Memory, File uint64 // bytes in memory, and in a file
}

// Moments returns the present ones.
func (v *FS) Moments() Moments {
	memory, file := v.moments.Kept()
	return Moments{v.moments.Held(), memory, file}
}

// atRest is a Disk that cannot be written, nor closed.
type atRest struct{ disk.Disk }

// WriteAt implements disk.Disk. It is refused.
func (d atRest) WriteAt(a uint64, _ [][]byte) error {
	return &disk.Error{Op: "write", Block: a, Err: disk.ErrReadOnly}
}

// Barrier implements disk.Disk. It is refused.
func (d atRest) Barrier() error { return &disk.Error{Op: "barrier", Err: disk.ErrReadOnly} }

// Close implements disk.Disk.
func (d atRest) Close() error { return nil }

// NextData implements disk.Holes.
func (d atRest) NextData(a uint64) (uint64, error) { return disk.NextData(d.Disk, a) }

// Release implements disk.Releaser.
func (d atRest) Release(from, to uint64) { disk.Release(d.Disk, from, to) }
