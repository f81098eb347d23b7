package fs

import (
	"errors"
	"fmt"
	"time"

	"tansy/disk"
	"tansy/internal/extern/ddisk"
	"tansy/internal/gen/mkfs"
	"tansy/internal/gen/superblockformat"
	"tansy/internal/gen/volumegeometry"
	"tansy/journal"
	"tansy/txn/dtxn"
)

// MkfsOptions say how to make a volume. The zero value is fine.
type MkfsOptions struct {
	LogBytes uint64                   // of the journal; 0: 64 MiB, less on a small device
	Inodes   uint64                   // 0: one for every 16 KiB
	Replies  uint64                   // calls that have records at a time, of all clients, so that they are done once; 0: 4096, less on a small device
	Zeroed   bool                     // the device reads as zeros: a new image file
	RootMode uint32                   // permission bits of the root directory; 0: 0755
	RootUID  uint32                   // its owner
	RootGID  uint32                   // its group
	Clock    Clock                    // nil: time.Now
	Progress func(done, total uint64) // called now and then with bytes written; may be nil
}

// The journal's size, in blocks: the default, and the least that is useful. A small
// volume's is an eighth of it.
const (
	logDefault = 64 << 20 / BlockSize
	logLeast   = 5 << 20 / BlockSize
)

// The number of records of replies: the default, and that of the smallest volumes.
const (
	repliesDefault = 4096
	repliesLeast   = 64
)

// zeroChunk is the number of blocks zeroed in one write.
const zeroChunk = 256

// Mkfs makes a volume on d; what d held is lost. A crash in the middle leaves a
// device that Open refuses.
func Mkfs(d disk.Disk, o MkfsOptions) error {
	s, err := plan(d.Size(), o)
	if err != nil {
		return err
	}
	dd := ddisk.New(d)
	if !copies.Blank(dd) { // no superblock while the rest is not in place
		return dd.Err()
	}
	g := s.Dtor_geo()
	if !o.Zeroed {
		if err := zero(d, g.Dtor_ibm(), g.Dtor_data0(), o.Progress); err != nil {
			return err
		}
	}
	p := journalParams(s)
	if err := journal.Format(d, p); err != nil {
		return err
	}
	if err := makeRoot(d, s, o); err != nil {
		return err
	}
	if dd := ddisk.New(d); !copies.Commission(dd, s) {
		return dd.Err()
	}
	return nil
}

// plan lays a volume of size blocks out.
func plan(size uint64, o MkfsOptions) (s superblockformat.Super, err error) {
	if size > journal.MaxSize {
		return s, fmt.Errorf("%d blocks of %d bytes are too many for a volume: at most %d", size, BlockSize, uint64(journal.MaxSize))
	}
	log := o.LogBytes / BlockSize
	if o.LogBytes == 0 {
		log = min(logDefault, max(logLeast, size/8))
	}
	if log < logLeast {
		return s, fmt.Errorf("a journal of %d bytes is too small: at least %d", o.LogBytes, logLeast*BlockSize)
	}
	pages, log := treeFor(size, log)
	n := o.Inodes
	if n == 0 {
		n = volumegeometry.Companion_Default___.DefaultInodes(size)
	}
	replies := o.Replies
	if replies == 0 {
		replies = min(repliesDefault, max(repliesLeast, size/64))
	}
	ok, g := volumegeometry.Companion_Default___.Layout(size, log+2*pages, n, replies)
	if !ok {
		return s, fmt.Errorf("%d bytes are too few for a journal of %d bytes, %d inodes, and data", size*BlockSize, log*BlockSize, n)
	}
	uuid, key, err := newSecrets()
	if err != nil {
		return s, err
	}
	// Half of it for small groups, half for large ones, which need some room at least.
	units := min(log/2, log-2-journal.MinRing) / journal.UnitBlocks
	if o.Clock == nil {
		o.Clock = time.Now
	}
	sec, nsec := stamp(o.Clock())
	return superblockformat.Companion_Super_.Create_Super_(size, units, log-2-journal.UnitBlocks*units, g, 1, sec, nsec, 0, uuid[0], uuid[1], key[0], key[1], key[2], key[3], pages), nil
}

// treeFor is the number of pages of the tree of codes of a volume of size blocks with a journal of log blocks.
// What is not the superblock, the journal, or a page of two blocks is home. A tree is never too small or too
// large by a block: where it would be, the journal is larger by one.
func treeFor(size, log uint64) (pages, newLog uint64) {
	home := size - min(size, 1+log) // and the pages
	if home%256 == 2 {
		home, log = home-1, log+1
	}
	return max(1, (home+254)/256), log
}

// zero writes zeros to the blocks [a, end).
func zero(d disk.Disk, a, end uint64, progress func(done, total uint64)) error {
	bufs := make([][]byte, zeroChunk)
	one := make([]byte, BlockSize)
	for i := range bufs {
		bufs[i] = one
	}
	first := a
	for a < end {
		n := min(zeroChunk, end-a)
		if err := d.WriteAt(a, bufs[:n]); err != nil {
			return err
		}
		a += n
		if progress != nil {
			progress((a-first)*BlockSize, (end-first)*BlockSize)
		}
	}
	return d.Barrier()
}

// makeRoot makes the root directory and the reserved inode, in a transaction.
func makeRoot(d disk.Disk, s superblockformat.Super, o MkfsOptions) (err error) {
	sys, stop, err := openSystem(d, s, Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	mode := o.RootMode & 0o7777
	if o.RootMode == 0 {
		mode = 0o755
	}
	return sys.Run(true, false, func(t *dtxn.Txn) error {
		mkfs.Companion_Default___.Format(t, s.Dtor_geo(), &dtxn.Jrnl{}, mode, o.RootUID, o.RootGID, s.Dtor_ctime(), s.Dtor_ctimens())
		return nil
	})
}
