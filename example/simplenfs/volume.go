// Package simplenfs is a tiny NFS server: 16 files of up to 4096 bytes, which can be read, written, and cut. It is an
// example of a verified program on Tansy's transactions.
//
// Its four procedures are written in Dafny (simplenfs.dfy), proved to do as a specification of one page says
// (spec.s.dfy), and translated to Go. Each call runs one of them in a transaction of package dtxn. So calls of many
// clients at once take effect one after the other, each at one instant, and a crash leaves what some first of them
// made, all that was answered as durable among them: that is proved of the transactions. Nothing here takes a lock,
// orders writes, or recovers from a crash.
//
//	block 0           what the journal must know to be opened
//	1 .. p.Home()-1   the journal (package journal), its tree of codes before it
//	p.Home()          sizes and times
//	then 16 blocks    the bytes of each file
package simplenfs

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"tansy/disk"
	"tansy/fs"
	"tansy/internal/gen/txn/places"
	"tansy/internal/runtime/dtxn"
	"tansy/journal"
	"tansy/nfs/mount3"
	"tansy/nfs/nfs3"
	"tansy/nfs/oncrpc"
)

const magic = "simplenfs 1\n"

// ErrForeign says that a disk holds no volume.
var ErrForeign = errors.New("simplenfs: this disk holds no volume")

// Size is the number of blocks of a volume.
var Size = params(make([]byte, disk.BlockSize)).Home() + 1 + files

// Volume is an open volume. Its methods may be called by several goroutines at once; those that come from the
// embedded interface, which is nil, must not be called at all.
type Volume struct {
	fs.FileSystem
	sys      *dtxn.System
	j        *journal.Journal
	first    uint64 // the block of sizes and times
	super    []byte
	verifier uint64
	now      fs.Clock
}

// params are those of the journal: a small log, and a code for every block, so that none is read that is not what was
// last written there.
func params(super []byte) journal.Params {
	p := journal.Params{Start: 3, Pages: 1, Units: 16, Ring: journal.MinRing}
	copy(p.Key[:], super[16:])
	copy(p.UUID[:], super[48:])
	return p
}

// Create makes a volume of empty files on d, which must be new: Size blocks, all zeros.
func Create(d disk.Disk) error {
	if d.Size() != Size {
		return fmt.Errorf("simplenfs: a volume takes %d blocks, not %d", Size, d.Size())
	}
	super := make([]byte, disk.BlockSize)
	rand.Read(super[16:80]) // two keys, and the UUID between them
	if err := journal.Format(d, params(super)); err != nil {
		return err
	}
	copy(super, magic) // last: without it there is no volume
	if err := d.WriteAt(0, [][]byte{super}); err != nil {
		return err
	}
	return d.Barrier()
}

// Open opens the volume on d, whatever a crash has left of it. Nobody else may use d until Close.
func Open(d disk.Disk) (*Volume, error) {
	super := make([]byte, disk.BlockSize)
	if err := d.ReadAt(0, [][]byte{super}); err != nil {
		return nil, err
	}
	if string(super[:len(magic)]) != magic {
		return nil, ErrForeign
	}
	p := params(super)
	j, err := journal.Open(d, p, journal.Options{})
	if err != nil {
		return nil, err
	}
	first := p.Home()
	// Which kinds of objects the blocks have: Layout in simplenfs.dfy.
	blocks := places.Before(first+1, first+1+files, places.BLOCKS(), nil)
	l := dtxn.Layout{Places: places.Before(first, first+1, places.INODES(), blocks)}
	var verifier uint64
	binary.Read(rand.Reader, binary.LittleEndian, &verifier)
	sys, err := dtxn.New(j, l)
	if err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return &Volume{sys: sys, j: j, first: first, super: super, verifier: verifier, now: time.Now}, nil
}

// Close makes everything durable and closes the volume, not the disk. It waits for the calls in progress; later ones
// fail with fs.ErrClosed.
func (v *Volume) Close() error { return v.j.Close() }

// unavailable are the procedures that there are not.
var unavailable = []int{nfs3.ProcReadlink, nfs3.ProcCreate, nfs3.ProcMkdir, nfs3.ProcSymlink, nfs3.ProcMknod,
	nfs3.ProcRemove, nfs3.ProcRmdir, nfs3.ProcRename, nfs3.ProcLink}

// Server returns a server of the volume, which speaks NFS version 3 and MOUNT.
func (v *Volume) Server() *oncrpc.Server {
	nfs := nfs3.New(nfs3.Config{FS: v, VolumeID: [8]byte(v.super[48:]), Key: [16]byte(v.super[64:]), Log: slog.Default()})
	mount := mount3.New(mount3.Config{Volumes: []mount3.Volume{{Walk: nfs.Walk}}, Log: slog.Default()})
	program := nfs.Program()
	for _, p := range unavailable {
		program.Procs[p] = oncrpc.Proc{}
	}
	return oncrpc.NewServer(oncrpc.Config{Programs: append(mount.Programs(), program)})
}
