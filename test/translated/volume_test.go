// Package translated tests the verified files and directories (verified/fs) as they were
// translated, on transactions in memory: against models of them, and by
// an independent walk over what lies on the volume.
package translated

import (
	"encoding/binary"
	"testing"

	"tansy/internal/gen/fs/blocks/regions"
	"tansy/internal/gen/fs/files/bytefiles"
	"tansy/internal/gen/fs/format/volumegeometry"
	"tansy/internal/runtime/dbytes"
	"tansy/internal/runtime/dtxn"
	"tansy/test/kit/memvolume"
)

// A volume is a new file system on a volume in memory.
type volume struct {
	t   testing.TB
	geo volumegeometry.Geometry
	sys *dtxn.System
	fs  *bytefiles.ByteFs
}

func newVolume(t testing.TB, blocks, inodes uint64) *volume {
	ok, g := volumegeometry.Layout(blocks, 64, inodes, 0)
	if !ok {
		t.Fatal("no layout")
	}
	v := &volume{t: t, geo: g}
	v.sys = dtxn.NewMem(blocks, dtxn.Layout{Maps: [2]dtxn.Bitmap{
		dtxn.Blocks: {Start: g.BlockBitmap(), First: g.Data0(), Limit: g.Data1()},
		dtxn.Inodes: {Start: g.InodeBitmap(), First: 3, Limit: g.Ninode()},
	}, Places: regions.Of(g)})
	t.Cleanup(func() { v.sys.Close() })
	v.fs = memvolume.Dirs(g).Fs
	v.run(func(tx *dtxn.Txn) bool {
		memvolume.Format(tx, g, 12345, 678)
		return true
	})
	return v
}

type aborted struct{}

func (aborted) Error() string { return "aborted" }

// run runs f as a transaction, which is aborted if f returns false.
func (v *volume) run(f func(tx *dtxn.Txn) bool) bool {
	err := v.sys.Run(false, false, func(tx *dtxn.Txn) error {
		if !f(tx) {
			return aborted{}
		}
		return nil
	})
	if err != nil && err != (aborted{}) {
		v.t.Fatal(err)
	}
	return err == nil
}

func (v *volume) create() (ino uint64) {
	ok := v.run(func(tx *dtxn.Txn) (ok bool) {
		ok, ino = v.fs.AllocInode(tx, 0, 1)
		return
	})
	if !ok {
		v.t.Fatal("no free inode")
	}
	return
}

func (v *volume) write(ino, off uint64, p []byte) bool {
	return v.run(func(tx *dtxn.Txn) bool {
		return v.fs.Write(tx, ino, off, &dbytes.Bytes{Data: p}, 0, uint64(len(p)))
	})
}

func (v *volume) read(ino, off, n uint64) (p []byte) {
	v.run(func(tx *dtxn.Txn) bool {
		p = v.fs.Read(tx, ino, off, n).Join().Data
		return true
	})
	return
}

func (v *volume) setSize(ino, size uint64) bool {
	return v.run(func(tx *dtxn.Txn) bool { return v.fs.SetSize(tx, ino, size) })
}

func (v *volume) freeSome(ino, most uint64) (done bool) {
	v.run(func(tx *dtxn.Txn) bool {
		done = v.fs.FreeSome(tx, ino, most)
		return true
	})
	return
}

func (v *volume) remove(ino uint64) bool {
	return v.run(func(tx *dtxn.Txn) bool { return v.fs.FreeInode(tx, ino) })
}

// An inode as it lies on the volume, read without the code under test.
type inode []byte

func (i inode) u64(off int) uint64 { return binary.LittleEndian.Uint64(i[off:]) }
func (i inode) typ() uint32        { return binary.LittleEndian.Uint32(i) }
func (i inode) size() uint64       { return i.u64(32) }
func (i inode) used() uint64       { return i.u64(40) }
func (i inode) gen() uint64        { return i.u64(48) }
func (i inode) shrink() uint64     { return i.u64(120) }
func (i inode) slot(k int) uint64  { return i.u64(136 + 8*k) }

func (v *volume) inode(ino uint64) (p inode) {
	v.run(func(tx *dtxn.Txn) bool {
		p = tx.ReadInode(v.geo.InodeTable()+ino/16, ino%16*2048, false).Data
		return true
	})
	return
}

// walk calls f for every block that inode ino holds, an indirect one or one of data.
func (v *volume) walk(ino uint64, f func(bn uint64, indirect bool)) {
	var below func(bn uint64, lev int)
	below = func(bn uint64, lev int) {
		if bn == 0 {
			return
		}
		f(bn, lev > 0)
		if lev == 0 {
			return
		}
		var p []byte
		v.run(func(tx *dtxn.Txn) bool {
			p = tx.ReadBlock(bn, false).Data()
			return true
		})
		for i := 0; i < 4096; i += 8 {
			below(binary.LittleEndian.Uint64(p[i:]), lev-1)
		}
	}
	p := v.inode(ino)
	for k := range 15 {
		below(p.slot(k), max(0, k-11))
	}
}

// check compares the bitmaps and the counts of the volume with what the inodes
// hold: no block held twice, none leaked, each count exact.
func (v *volume) check() (held int) {
	v.t.Helper()
	owner := map[uint64]uint64{}
	var live []uint64
	for ino := uint64(1); ino < v.geo.Ninode(); ino++ {
		var n uint64
		v.walk(ino, func(bn uint64, indirect bool) {
			if bn < v.geo.Data0() || bn >= v.geo.Data1() {
				v.t.Errorf("inode %d holds block %d outside the data", ino, bn)
			}
			if o, ok := owner[bn]; ok {
				v.t.Errorf("block %d held by inodes %d and %d", bn, o, ino)
			}
			owner[bn] = ino
			if !indirect {
				n++
			}
		})
		p := v.inode(ino)
		if p.used() != n {
			v.t.Errorf("inode %d: used is %d, holds %d blocks of data", ino, p.used(), n)
		}
		if p.typ() != 0 {
			live = append(live, ino)
		} else if n != 0 || p.size() != 0 {
			v.t.Errorf("free inode %d is not empty", ino)
		}
	}
	bits := func(first, last uint64) map[uint64]bool {
		m := map[uint64]bool{}
		v.run(func(tx *dtxn.Txn) bool {
			for b := first; b < last; b++ {
				for i := range uint64(32768) {
					if tx.ReadBit(b, i, false) {
						m[(b-first)*32768+i] = true
					}
				}
			}
			return true
		})
		return m
	}
	m := bits(v.geo.BlockBitmap(), v.geo.InodeTable())
	for bn := range owner {
		if !m[bn] {
			v.t.Errorf("block %d held by inode %d is free in the bitmap", bn, owner[bn])
		}
	}
	if len(m) != len(owner) {
		v.t.Errorf("%d blocks in the bitmap, %d held", len(m), len(owner))
	}
	im := bits(v.geo.InodeBitmap(), v.geo.BlockBitmap())
	for _, ino := range live {
		if !im[ino] {
			v.t.Errorf("inode %d is free in the bitmap", ino)
		}
	}
	if len(im) != len(live) {
		v.t.Errorf("%d inodes in the bitmap, %d in use", len(im), len(live))
	}
	return len(owner)
}
