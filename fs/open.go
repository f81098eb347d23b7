package fs

import (
	"fmt"
	"log/slog"
	"time"

	"tansy/fs/internal/background"
	"tansy/internal/gen/fs/blocks/regions"
	"tansy/internal/gen/fs/format/volumegeometry"
	"tansy/internal/gen/fs/procedures/conversions"
	"tansy/internal/gen/fs/procedures/opening"
	"tansy/internal/runtime/dtxn"
	"tansy/journal"
)

// rootIno is the inode of the root directory.
const rootIno = 1

// regionsOf says where what is on a volume. Inodes 0 to 2 are never handed out.
func regionsOf(g volumegeometry.Geometry) dtxn.Layout {
	return dtxn.Layout{
		Maps: [2]dtxn.Bitmap{
			dtxn.Blocks: {Start: g.BlockBitmap(), First: g.Data0(), Limit: g.Data1()},
			dtxn.Inodes: {Start: g.InodeBitmap(), First: 3, Limit: g.Ninode()},
		},
		Places:  regions.Of(g),
		SmallOK: conversions.SizesOk,
	}
}

// start makes an FS of the transactions of a volume.
func start(sys *dtxn.System, g volumegeometry.Geometry, id identity, o Options) (*FS, error) {
	v := &FS{volume: &volume{
		sys: sys, geo: g, ident: id, clock: o.Clock, log: o.Log, readOnly: o.ReadOnly,
		ending: newEnding(), stop: sys.Close, freeStep: freeStep, host: o.host, streams: make(chan struct{}, maxStreams),
		moments: o.moments,
	}, deferred: o.Deferred}
	if v.clock == nil {
		v.clock = time.Now
	}
	sys.SetClock(v.clock)
	if v.log == nil {
		v.log = slog.New(slog.DiscardHandler)
	}
	v.hostLog.log = v.log
	if v.dmg = o.dmg; v.dmg == nil { // a volume without codes
		v.dmg = background.NewDamage(g, journal.Params{}, g.Data1()+1, v.log)
	}
	rate, every := o.Scrub.schedule()
	v.scrub = background.NewScrubber(duties{v}, rate, every, v.dmg.Name, v.log)
	v.ahead = background.NewAhead(duties{v}, o.CacheBytes)
	v.dirs = opening.Open(g, &dtxn.Jrnl{})
	f := v.dirs.Fs

	var c call
	var xattrs uint64
	c.Make(procGetattr, 0, v.deferred, 0)
	_, err := v.transact(&c, func(t *txn) {
		a := attributes(rootIno, f.GetInode(t, rootIno, false))
		if a.Type != Directory || a.Nlink < 2 {
			return
		}
		v.root = Handle{rootIno, a.Gen}
		xattrs = attributes(keptHead, f.GetInode(t, keptHead, false)).Size
		c.Done()
	})
	if err == nil && c.Status != 0 {
		err = fmt.Errorf("inode %d is not a root directory", rootIno)
	}
	if err != nil {
		return nil, err
	}
	v.replies = newReplies(g, v.clock, sys.Committed, sys.Reserve)
	v.trim = background.NewTrimmer(duties{v}, sys, v.host, g.Data0(), v.log)
	if o.Discard && !o.ReadOnly {
		v.trim.Start() // first: it remembers what is freed from then on
	}
	v.free = background.NewFreer(duties{v}, v.log)
	v.findXattrs(xattrs)
	if !o.ReadOnly {
		v.free.Start()
		v.clearKept()
	}
	v.dmg.Start(v.sys)
	v.scrub.Start()
	return v, nil
}
