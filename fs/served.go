package fs

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"tansy/disk"
	"tansy/internal/gen/fs/format/superblockformat"
	"tansy/internal/lockorder"
	"tansy/internal/runtime/clock"
	"tansy/internal/volumeend"
)

// A volume grows while it is in use. What is written for that lies where the volume has nothing: behind it, and in
// block 0, which nothing else writes (Beside in verified/fs/mkfs/growing.dfy). All of it is durable before anything of
// it is handed out.

// extent is how much there is of a volume that is in use.
type extent struct {
	mu      lockorder.Mutex[lockorder.Growing]     // one growth at a time
	device  disk.Disk                              // on which the layout lies
	layout  *disk.Pieced                           // nil: all of it is there, and there will be no more
	super   atomic.Pointer[superblockformat.Super] // what block 0 says
	spoiled error                                  // why nobody knows what block 0 says, or nil; below mu
	clock   *clock.Clock
}

// of is for layout, of volume s, on a device; before the volume is in use.
func (x *extent) of(device, layout disk.Disk, s superblockformat.Super) {
	x.device, x.layout, x.clock = device, disk.PiecedOf(layout), clock.New()
	x.super.Store(&s)
}

// CanGrow tells whether Grow would be refused if the device were so many bytes long: see the function CanGrow.
func (v *FS) CanGrow(ctx context.Context, bytes uint64, o GrowOptions) error {
	if err := v.enter(); err != nil {
		return err
	}
	defer v.leave()
	x := &v.extent
	x.mu.Lock()
	defer x.mu.Unlock()
	err := v.growable()
	if err == nil {
		err = mayBe(*x.super.Load(), bytes, o)
	}
	if err == nil {
		err = v.mayGrow(ctx)
	}
	return err
}

// growable is an error if the volume cannot grow, whatever it is asked for. The caller holds mu of its extent.
func (v *FS) growable() error {
	switch {
	case v.readOnly:
		return ErrROFS
	case v.extent.spoiled != nil:
		return fmt.Errorf("the volume has to be opened anew before it can grow, because that failed before: %w",
			v.extent.spoiled)
	}
	return nil
}

// errElsewhere: to go on from what this server knows would take away what the other one has added.
var errElsewhere = errors.New("block 0 does not say how large this server knows the volume: another one had it grow")

// Size is how much there is of the volume.
func (v *FS) Size() VolumeSize { return sizeOf(*v.extent.super.Load()) }

// Grow has the volume, which is in use, have what its device has behind it: see the function Grow. Other calls go on
// meanwhile. When Grow returns, there is more room for them. A device that tells its size only when it is opened
// (disk.ErrNotRemeasured) has the size that it had then.
//
// The volume stays as it is if ctx ends, or if Close begins, before all that is new is written; then Grow can be called
// again. After an error of the device in the last step it cannot be, before the volume is opened anew. Nothing is
// written once another server was seen to have opened the volume (Lost).
func (v *FS) Grow(ctx context.Context, o GrowOptions) (Growth, error) {
	if err := v.enter(); err != nil {
		return Growth{}, err
	}
	defer v.leave()
	x := &v.extent
	x.mu.Lock()
	defer x.mu.Unlock()
	s := *x.super.Load()
	now := Growth{sizeOf(s), sizeOf(s)}
	if err := v.growable(); err != nil {
		return now, err
	}
	size, fixed, err := x.measure()
	if err != nil {
		return now, err
	}
	t, n, err := larger(s, size, o.Inodes)
	if errors.Is(err, ErrNoMore) && fixed != nil {
		err = fmt.Errorf("%w: %w", err, fixed)
	}
	if err != nil {
		return now, err
	}
	if same, err := says(x.device, s); err != nil {
		return now, err
	} else if !same {
		return now, errElsewhere
	}
	if err := disk.TakeRoom(x.device, t.Extent().Room()); err != nil {
		return now, err
	}
	d := &beside{Disk: x.device, barrier: v.sys.Barrier}
	if err := put(d, s, t, n, o.Progress, func() error { return v.mayGrow(ctx) }); err != nil {
		if d.last {
			x.spoiled = err
		}
		return now, err
	}
	x.super.Store(&t)
	x.layout.Extend(volumeend.Locate(t)) // first: what is handed out is there
	return Growth{now.Before, sizeOf(t)}, v.extend(endsOf(t))
}

// measure is the size of the device. fixed is why it may have more by now, or nil.
func (x *extent) measure() (size uint64, fixed, err error) {
	if x.layout == nil {
		return x.device.Size(), nil, nil
	}
	err = disk.Remeasure(x.device)
	if errors.Is(err, disk.ErrNotRemeasured) {
		fixed, err = err, nil
	}
	return x.device.Size(), fixed, err
}

// lookBound is how old a look at whose volume it is may be when something is written because of it: LookBound in
// verified/trusted/disk.s.dfy.
const lookBound = time.Second

// mayGrow is an error if what is new may not be written, now.
func (v *FS) mayGrow(ctx context.Context) error {
	for {
		began := v.extent.clock.Now()
		if err := v.Look(); err != nil {
			return err
		}
		if err := v.Health(); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if v.calls.Closed() {
			return ErrClosed
		}
		if v.extent.clock.Now()-began <= uint64(lookBound) {
			return nil
		}
	}
}

// beside is the device, for what is written beside the journal.
type beside struct {
	disk.Disk
	barrier func() error
	last    bool // block 0 was to be written
}

// WriteAt implements disk.Disk.
func (d *beside) WriteAt(a uint64, bufs [][]byte) error {
	d.last = d.last || a == 0
	return d.Disk.WriteAt(a, bufs)
}

// Barrier implements disk.Disk. It is the journal's, which has to know if one fails.
func (d *beside) Barrier() error { return d.barrier() }

// NextData implements disk.Holes.
func (d *beside) NextData(a uint64) (uint64, error) { return disk.NextData(d.Disk, a) }

// Unwrap is the device itself, which is told what is to come.
func (d *beside) Unwrap() disk.Disk { return d.Disk }

// growAtOnce has a volume that was just opened grow, as Options.Grow says.
func (v *FS) growAtOnce() {
	g, err := v.Grow(context.Background(), GrowOptions{})
	switch {
	case err == nil:
		v.log.Info("the volume has grown", "bytes", g.After.Bytes, "before", g.Before.Bytes, "inodes", g.After.Inodes)
	case !errors.Is(err, ErrNoMore):
		v.log.Error("the volume does not use what is behind it", "err", err)
	}
}
