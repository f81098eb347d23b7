package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"tansy/disk"
	tansyfs "tansy/fs"
	"tansy/journal"
	"tansy/nfs/server"
	volcheck "tansy/offline/check"
	"tansy/ops/control"
	"tansy/ops/standby"
	"tansy/ops/status"
)

// volume is a volume that is served, or that could not be opened.
type volume struct {
	place
	log    *slog.Logger
	device device
	stats  *disk.Stats
	fs     *tansyfs.FS // nil if it could not be opened
	// control is how other programs reach it; nil: not at all
	control *control.Server
	owner   *standby.Owner // the device, if another server may take it over; else nil

	failed atomic.Pointer[error] // why it is not served, or not any more
	probes sync.WaitGroup        // of the watchdog
	asked  atomic.Bool           // one is under way

	growing sync.Mutex // the image is made longer, and the volume in it grows
}

// opening says how volumes are opened, and made if they are missing.
type opening struct {
	new      image // with its size
	create   bool  // make those that are missing
	sized    bool  // the size was asked for
	root     rootDir
	readOnly bool
	cache    uint64        // bytes, of each
	pinned   uint64        // likewise; 0: as much as is good
	interval time.Duration // fs.Options.CommitInterval
	scrub    tansyfs.ScrubOptions
	discard  discardMode
	deferred bool // as in fs.Options
	grow     bool // likewise
	control  controlling
}

// defaultMost is how large a volume may become, in bytes, for which nobody said that. From 16 TiB on each
// installation would write one page more of the tree of codes. Below it a volume writes as many blocks as one of one
// size, within 2 % (docs/guide/operations.md, "A larger volume").
const defaultMost = 16<<40 - 1<<30

// open opens the volume, and makes it if it is missing and that is wanted.
func (o *opening) open(v *volume) error {
	made := missing(v.image)
	if made {
		if !o.create {
			how := ""
			if !o.readOnly {
				how = ", and so does --create"
			}
			size := "10G"
			if o.sized {
				size = new(byteSize(o.new.size)).String()
			}
			return absent(v.image, size, how)
		}
		options := tansyfs.MkfsOptions{MaxBytes: defaultMost}
		o.root.apply(&options)
		if err := o.new.make(v.image, options); err != nil {
			return err
		}
		v.log.Info("made a new volume", "file", v.image, "size", new(byteSize(o.new.size)).String())
	}
	var d device // all of it: fs leaves alone what is behind the volume, and may have the volume use it later
	if v.owner != nil {
		d = v.owner
	} else {
		var err error
		if d, err = openDevice(v.image, disk.FileOptions{ReadOnly: o.readOnly, Warn: o.new.warn}); err != nil {
			return err
		}
	}
	if err := misplaced(v.image); err != nil {
		o.new.warn(err)
	}
	giveBack := o.discard.of(volumeOn(d, func(error) {}))
	if o.discard == "on" && !giveBack && !o.readOnly {
		o.new.warn(fmt.Errorf("--discard: the image %s has all its room (--preallocate), and keeps it", v.image))
	}
	stats := disk.NewStats(d)
	f, err := tansyfs.Open(stats, tansyfs.Options{
		CacheBytes: o.cache, PinnedBytes: o.pinned, CommitInterval: o.interval, ReadOnly: o.readOnly,
		Discard: giveBack, Deferred: o.deferred, Grow: o.grow, Log: v.log, Scrub: o.scrub,
		Moments: o.control.moments(),
	})
	if err != nil {
		what := adviceFor(d, err)
		d.Close()
		return fmt.Errorf("%s: %w%s", v.image, err, what)
	}
	v.device, v.stats, v.fs = d, stats, f
	if !made {
		o.warnKept(v)
	}
	if err := o.control.serve(v); err != nil {
		err = errors.Join(err, v.close())
		v.fs = nil
		return err
	}
	return nil
}

// warnKept warns of what was given for a new volume, and is not so of one that was there.
func (o *opening) warnKept(v *volume) {
	if has := v.fs.Size().Bytes; o.sized && has != o.new.size {
		o.new.warn(fmt.Errorf("%s exists and keeps its size of %v: --size %v is for a new image",
			v.image, about(has), new(byteSize(o.new.size))))
	}
	if o.new.preallocate && disk.HostOf(v.device) != nil {
		o.new.warn(fmt.Errorf("%s exists and stays sparse: --preallocate is for a new image", v.image))
	}
	root, err := v.fs.Getattr(v.fs.Root())
	if err != nil {
		return // which others say
	}
	const through = "is for a new volume; of this one it is changed through a mount"
	if by := &o.root.owner; by.given && (by.uid != root.UID || by.gid != root.GID) {
		o.new.warn(fmt.Errorf("%s exists, and its root directory stays that of %d:%d: --owner %v %s",
			v.image, root.UID, root.GID, by, through))
	}
	if m := &o.root.mode; *m != 0 && uint32(*m) != root.Mode {
		o.new.warn(fmt.Errorf("%s exists, and its root directory keeps the mode %04o: --mode %v %s",
			v.image, root.Mode, m, through))
	}
}

// openAll opens volumes side by side. Of several those that cannot be opened are told in the log,
// and left out; it is an error if there are no others.
func (o *opening) openAll(all []*volume) error {
	errs := make([]error, len(all))
	var opened sync.WaitGroup
	for i, v := range all {
		opened.Go(func() { errs[i] = o.open(v) })
	}
	opened.Wait()
	ids := map[[8]byte]*volume{}
	for i, v := range all {
		if v.fs == nil {
			continue
		}
		id := v.fs.VolumeID()
		if other := ids[[8]byte(id[:8])]; other != nil {
			errs[i] = errors.Join(fmt.Errorf("%s has the identity of %s, of which it must be a copy: clients could not tell "+
				"their files apart", v.image, other.image), v.close())
			v.fs = nil
			continue
		}
		ids[[8]byte(id[:8])] = v
	}
	if len(ids) == 0 {
		return errors.Join(errs...)
	}
	for i, v := range all {
		if v.fs == nil {
			v.failed.Store(&errs[i])
			v.log.Error("this volume is not served; the others are", "file", v.image, "err", errs[i])
		}
	}
	return nil
}

// empty tells whether an error is that of a device without a volume.
func empty(err error) bool {
	return errors.Is(err, tansyfs.ErrNoSuperblock) || errors.Is(err, volcheck.ErrNotVolume)
}

// advice is what to do about an error of opening a volume, for its end. That nothing
// is there is all that mkfs should be advised for: it destroys what is.
func advice(err error) string {
	if empty(err) {
		return " (if a volume was here, tansy repair searches for the copy of its superblock; tansy mkfs makes a new volume)"
	}
	if errors.Is(err, journal.ErrDamaged) {
		return " (tansy repair says what can be done about it)"
	}
	return ""
}

// adviceFor is advice about the device d. Where something else is, mkfs is no good advice.
func adviceFor(d disk.Disk, err error) string {
	if d.Size() < 2 {
		return " (tansy mkfs makes a volume in a new file, or on a device of some MiB)"
	}
	if empty(err) {
		if what := contents(d); what != "" {
			return fmt.Sprintf(" (it holds %s, which would be lost if tansy mkfs made a volume there)", what)
		}
	}
	return advice(err)
}

// served is the volume as the server is told.
func (v *volume) served() server.Volume {
	s := server.Volume{Path: v.path}
	if v.fs != nil {
		id := v.fs.VolumeID()
		s.FS, s.ID, s.Key = v.fs, [8]byte(id[:8]), v.fs.HandleKey()
	}
	return s
}

// source is the volume as the status is told.
func (v *volume) source() status.Source {
	s := status.Source{Path: v.path, Image: v.image, Health: v.health}
	if v.fs != nil {
		s.FS, s.Space, s.Device = v.fs.Stats, v.fs.Space, v.stats.Counts
		s.Moments = v.fs.Moments
		s.Scrub, s.StartScrub, s.Damaged = v.fs.ScrubStatus, v.fs.Scrub, v.fs.DamagedBlocks
		s.Grow = v.grow
	}
	return s
}

// health is why the volume is not served, or refuses changes.
func (v *volume) health() error {
	if err := v.failed.Load(); err != nil {
		return *err
	}
	return v.fs.Health()
}

// close makes everything durable and closes a volume that is served; no other could be.
func (v *volume) close() error {
	v.control.Close()
	if v.fs == nil || v.failed.Load() != nil {
		return nil
	}
	v.probes.Wait()
	return errors.Join(v.fs.Close(), v.device.Close())
}

// watchEvery is how often a served volume is looked for.
const watchEvery = time.Second

// watchAll looks after the volumes of s until ctx ends. One that is gone is not served any more; when all
// are, lost is called.
func watchAll(ctx context.Context, all []*volume, s *server.Server, lost func(error)) {
	var left atomic.Int64
	for _, v := range all {
		if v.fs != nil {
			left.Add(1)
		}
	}
	for i, v := range all {
		if v.fs == nil {
			continue
		}
		gone := func(err error) {
			if v.owner != nil { // nothing is answered any more, not even with an error
				v.owner.Lose(err)
				return
			}
			s.Fail(i)
			v.failed.Store(&err)
			if left.Add(-1) == 0 {
				lost(err)
			} else {
				v.log.Error("this volume is not served any more; the others are", "file", v.image, "err", err)
			}
			v.fs.EndScrubs()
		}
		go watch(ctx, watchEvery, gone, v.device.Check, v.fs.Lost)
	}
}

// watch calls gone when one of the looks at the volume says that it is, and ends then, or with ctx.
func watch(ctx context.Context, every time.Duration, gone func(error), looks ...func() error) {
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		for _, look := range looks {
			if err := look(); err != nil {
				gone(err)
				return
			}
		}
	}
}

// alive waits until one of the volumes answers: the server is not to be killed for one that hangs.
func alive(all []*volume) {
	answered := make(chan struct{}, len(all))
	asked := 0
	for _, v := range all {
		if v.fs == nil || v.failed.Load() != nil {
			continue
		}
		if asked++; v.asked.Swap(true) {
			continue
		}
		v.probes.Go(func() {
			v.fs.Getattr(v.fs.Root())
			v.asked.Store(false)
			answered <- struct{}{}
		})
	}
	if asked > 0 {
		<-answered
	}
}
