package fs

import (
	"tansy/disk"
	"tansy/internal/gen/fs/exec/answers"
	"tansy/internal/runtime/dtxn"
	"tansy/journal"
)

// FSSTAT, FSINFO, PATHCONF: a file and the volume it is on.

// Fsstat implements FileSystem. Blocks that wait in the background count as used.
func (v *FS) Fsstat(h Handle) (Stat, *Attr, error) {
	if err := v.enter(); err != nil {
		return Stat{}, nil, err
	}
	defer v.leave()
	blocks, inodes, lost := v.count()
	blocksEnd, inodesEnd := v.ends() // not before: what was counted lies below them
	var c call
	var s Stat
	c.Make(procFsstat, 0, v.deferred, 0)
	err := v.carry(&c, func(t *txn) {
		n := answers.Fsstat(&c.Call, t, v.dirs, h.Ino, h.Gen, blocks, inodes, blocksEnd, inodesEnd)
		s = Stat{n.Tbytes(), n.Fbytes(), n.Tfiles(), n.Ffiles()}
	})
	if err == nil && lost != nil {
		v.log.Error("the bitmaps cannot be read", "err", lost)
		c.Refuse(uint32(ErrIO))
		err = ErrIO
	}
	if err != nil {
		s = Stat{}
	}
	return s, c.attr(h.Ino), err
}

// count counts what is free, and of the blocks no more than the host has room for.
func (v *FS) count() (blocks, inodes uint64, err error) {
	return v.countBy(v.sys.Free)
}

// countBy is count, with what counts one kind.
func (v *FS) countBy(free func(which uint64) (uint64, error)) (blocks, inodes uint64, err error) {
	if blocks, err = free(dtxn.Blocks); err != nil {
		return 0, 0, err
	}
	blocks = hostRoom(v.host, blocks, v.sys.End(dtxn.Blocks))
	inodes, err = free(dtxn.Inodes)
	return blocks, inodes, err
}

// Stats are numbers of a volume since it was opened.
type Stats struct {
	Journal      journal.Stats
	Transactions TransactionStats
}

// TransactionStats are numbers of transactions, of the operations and of the background.
type TransactionStats struct {
	Commits   uint64 // that changed something, and took effect
	Conflicts uint64 // attempts that gave way to others, and were run again
}

// Stats returns the present numbers. It does not wait for the device.
func (v *FS) Stats() Stats { return Stats{v.sys.Journal(), TransactionStats(v.sys.Stats())} }

// Space is what FSSTAT says, though it need not be durable yet. It does not wait for the device once the bitmaps have
// been read.
func (v *FS) Space() (Stat, error) {
	if err := v.enter(); err != nil {
		return Stat{}, err
	}
	defer v.leave()
	blocks, inodes, err := v.countBy(v.sys.Count)
	if err != nil {
		return Stat{}, err
	}
	blocksEnd, inodesEnd := v.ends()
	return Stat{
		TotalBytes: (blocksEnd - v.geo.Data0()) * disk.BlockSize, FreeBytes: blocks * disk.BlockSize,
		TotalFiles: inodesEnd - 3, FreeFiles: inodes,
	}, nil
}

// Health is nil as long as the volume takes changes. Else it is the error why not: the device failed since Open, or the
// volume is damaged.
func (v *FS) Health() error {
	if v.damaged.Load() {
		return errDamaged
	}
	if err := v.dmg.Err(); err != nil {
		return err
	}
	return v.sys.Broken()
}

// Fsinfo implements FileSystem.
func (v *FS) Fsinfo(h Handle) (i Info, a *Attr, err error) {
	var c call
	err = v.run(&c, procFsinfo, func(t *txn) {
		x := answers.Fsinfo(&c.Call, t, v.dirs, h.Ino, h.Gen)
		i = Info{
			RtMax: x.Rtmax(), RtPref: x.Rtpref(), RtMult: x.Rtmult(),
			WtMax: x.Wtmax(), WtPref: x.Wtpref(), WtMult: x.Wtmult(),
			DtPref: x.Dtpref(), MaxFileSize: x.Maxfilesize(),
			TimeDelta: Time{x.Delta().Seconds(), x.Delta().Nanoseconds()}, Properties: x.Properties(),
		}
	})
	return i, c.attr(h.Ino), err
}

// Pathconf implements FileSystem.
func (v *FS) Pathconf(h Handle) (l Pathconf, a *Attr, err error) {
	var c call
	err = v.run(&c, procPathconf, func(t *txn) {
		x := answers.Pathconf(&c.Call, t, v.dirs, h.Ino, h.Gen)
		l = Pathconf{
			LinkMax: x.Linkmax(), NameMax: x.Namemax(), NoTrunc: x.Notrunc(), ChownRestricted: x.Chownrestricted(),
			CaseInsensitive: x.Caseinsensitive(), CasePreserving: x.Casepreserving(),
		}
	})
	return l, c.attr(h.Ino), err
}

// VolumeID is the volume's UUID.
func (v *FS) VolumeID() [16]byte { return v.ident.volume }

// HandleKey is the key that file handles are authenticated with.
func (v *FS) HandleKey() [16]byte { return v.ident.handleKey }

// Root implements FileSystem.
func (v *FS) Root() Handle { return v.root }
