package fs

import (
	"crypto/sha256"
	"errors"
	"log/slog"

	"tansy/disk"
	"tansy/fs/internal/background"
	"tansy/internal/gen/fs/blocks/regions"
	"tansy/internal/gen/fs/format/superblockcopies"
	"tansy/internal/gen/fs/format/superblockformat"
	"tansy/internal/runtime/ddisk"
	"tansy/internal/runtime/dtxn"
	"tansy/internal/volumeend"
	"tansy/journal"
)

// Open opens the volume on d. It recovers the journal, and goes on to free what was removed. With Options.ReadOnly
// nothing is written to d. If d is larger than the volume, the blocks behind it are left alone until the volume grows
// (FS.Grow, Options.Grow).
func Open(d disk.Disk, o Options) (*FS, error) {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if !o.ReadOnly {
		d = o.above(d)
	}
	whole, behind := d, error(nil)
	d = volumeend.Bound(d, func(err error) { behind = err })
	s, damaged, err := readSuper(d)
	if err != nil {
		return nil, err
	}
	canGrow := !s.Extent().Runs().Is_NoRun() && !o.ReadOnly
	if behind != nil && !(o.Grow && canGrow) && !o.ofMoment {
		o.Log.Warn(behind.Error())
	}
	if o.ReadOnly {
		d = o.above(newOverlay(d))
	}
	if damaged {
		o.Log.Warn("the superblock in block 0 is damaged; it is restored from its copy")
		if dd := ddisk.New(d); !superblockcopies.Restore(dd, s) {
			return nil, dd.Err()
		}
	}
	if canGrow {
		d = whole // of which the layout has what belongs to the volume, now and later
	}
	below := d
	d = volumeend.Layout(d, s)
	if canGrow {
		d = unopenedOf(d, below, s)
	}
	o.dmg = background.NewDamage(s.Geometry(), journalParams(s), d.Size(), o.Log)
	sys, stop, err := openSystem(d, s, layoutOf(s), o)
	x, ok := d.(*unopened)
	switch {
	case err != nil && ok && errors.Is(x.same(), errGrew):
		return nil, errGrew // the log may seem to be damaged
	case err != nil:
		return nil, err
	case ok:
		if err := x.opened(); err != nil {
			return nil, errors.Join(err, stop())
		}
	}
	key := subkey(s, "file handles")
	o.host = disk.HostOf(d)
	v, err := start(sys, s.Geometry(), identity{volume: superUUID(s), handleKey: [16]byte(key[:16])}, o)
	if err != nil {
		return nil, errors.Join(err, stop())
	}
	v.stop = stop
	v.extent.of(below, d, s)
	if o.Grow && canGrow {
		v.growAtOnce()
	}
	return v, nil
}

// openSystem recovers the journal of a volume and starts transactions on it, with layout l.
func openSystem(d disk.Disk, s superblockformat.Super, l dtxn.Layout, o Options) (sys *dtxn.System,
	stop func() error, err error) {
	p := journalParams(s)
	l.Host, l.Returns = disk.HostOf(d), o.Discard
	if err := prepare(l.Host, p); err != nil {
		return nil, nil, err
	}
	jo := journal.Options{CacheBytes: o.CacheBytes, PinnedBytes: o.PinnedBytes, Linger: o.CommitInterval, Log: o.Log}
	if o.dmg != nil {
		jo.OnDamage = o.dmg.Met
	}
	j, err := journal.Open(d, p, jo)
	err = hostFull(err, p)
	if err != nil {
		return nil, nil, err
	}
	size := d.Size()
	l.Beside = func(a uint64) (uint64, bool) { return p.TreeBlock(a, size) }
	if sys, err = dtxn.New(j, l); err != nil {
		return nil, nil, errors.Join(err, j.Close())
	}
	return sys, func() error { return errors.Join(sys.Close(), j.Close()) }, nil
}

// journalParams says where the journal of a volume lies, and its bitmap of blocks.
func journalParams(s superblockformat.Super) journal.Params {
	m := regionsOf(s.Geometry()).Maps[dtxn.Blocks]
	return journal.Params{
		Start: regions.Log(s), Pages: s.Pages(), Units: s.Lognd(), Ring: s.Lognr(),
		Key: subkey(s, "journal"), UUID: superUUID(s),
		Bitmap: m.Start, First: m.First, Limit: m.Limit,
	}
}

// subkey derives a key for one purpose from the volume's.
func subkey(s superblockformat.Super, purpose string) [32]byte {
	key := superKey(s)
	return sha256.Sum256(append(key[:], purpose...))
}
