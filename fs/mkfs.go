package fs

import (
	"errors"
	"fmt"
	"time"

	"tansy/disk"
	"tansy/internal/gen/fs/format/superblockcopies"
	"tansy/internal/gen/fs/format/superblockformat"
	"tansy/internal/gen/fs/format/volumegeometry"
	"tansy/internal/gen/fs/mkfs/commissioned"
	"tansy/internal/gen/fs/mkfs/growing"
	"tansy/internal/gen/fs/mkfs/making"
	"tansy/internal/runtime/ddisk"
	"tansy/internal/runtime/pages"
	"tansy/internal/runtime/seal"
	"tansy/internal/runtime/stamps"
	"tansy/internal/volumeend"
	"tansy/journal"
)

// MkfsOptions say how to make a volume. The zero value is fine.
type MkfsOptions struct {
	LogBytes uint64 // of the journal; 0: 64 MiB, less on a small device
	Inodes   uint64 // 0: one for every 16 KiB

	// Replies is how many calls, of all clients, have records at a time, so that they are done once; 0: 4096, less on a
	// small device.
	Replies uint64

	// MaxBytes is how large the volume may ever become (Grow). The beginning of it that has room on the device is there.
	// 0, or no more than the device has: the volume never grows. More costs nothing but a page more of the tree of codes
	// with each installation, from 64 GiB and from 16 TiB on.
	MaxBytes uint64
	Zeroed   bool                     // the device reads as zeros: a new image file
	RootMode uint32                   // permission bits of the root directory; 0: 0755
	RootUID  uint32                   // its owner
	RootGID  uint32                   // its group
	Label    string                   // what people call the volume (SetLabel)
	Clock    Clock                    // nil: time.Now
	Progress func(done, total uint64) // called now and then with bytes written; may be nil
	Stop     func() error             // called before each write: an error ends Mkfs, which returns it; may be nil
}

// The journal's size, in blocks: the default, and the least that is useful. A small
// volume's is an eighth of it.
const (
	logDefault = 64 << 20 / BlockSize
	logLeast   = 5 << 20 / BlockSize
)

// Bounds of Plan (verified/fs/mkfs/making.dfy), for messages: the fewest inodes, the blocks that a journal is smaller
// than, and those that a volume is, but for its journal.
const (
	inodesLeast = 17
	logMost     = 1 << 32
	sizeMost    = 1 << 39
	inodesMost  = 1<<48 - 16
)

// The number of records of replies: the default, and that of the smallest volumes.
const (
	repliesDefault = 4096
	repliesLeast   = 64
)

// Check returns the error with which Mkfs refuses a device of so many bytes, or nil if the size is right. It writes
// nothing.
func (o MkfsOptions) Check(bytes uint64) error {
	_, err := plan(bytes/BlockSize, o)
	return err
}

// Mkfs makes a volume on d; what d held is lost. A crash in the middle leaves a
// device that Open refuses; a label comes last, so it may be missing. What goes to the device, and when, is verified
// (verified/fs/mkfs).
func Mkfs(d disk.Disk, o MkfsOptions) error {
	if o.RootUID == NoID || o.RootGID == NoID {
		return fmt.Errorf("owner %d:%d of the root directory: %d is no user and no group", o.RootUID, o.RootGID, uint32(NoID))
	}
	if err := CheckLabel(o.Label); err != nil {
		return err
	}
	s, err := plan(d.Size(), o)
	if err != nil {
		return err
	}
	layout := volumeend.Layout(d, s)
	p := journalParams(s)
	if err := p.Check(layout); err != nil {
		return err
	}
	mode := o.RootMode & 0o7777
	if o.RootMode == 0 {
		mode = 0o755
	}
	zeroed := o.Zeroed
	// what takes long are inodes and records
	dd := ddisk.New(meter{layout, s.Geometry().InodeTable() + 1, s.Geometry().Data0(), o.Progress, o.Stop})
	if layout != d && !zeroed {
		if err := clearHome(d, dd, s, o); err != nil {
			return err
		}
		zeroed = true
	}
	key := seal.New(p.Key, p.UUID, p.Home())
	if !commissioned.Make(dd, s, key, pages.New(0), zeroed, mode, o.RootUID, o.RootGID) {
		return errors.Join(dd.Err(), dd.ReadErr())
	}
	if o.Label == "" {
		return nil
	}
	return labelNew(d, o)
}

// labelNew gives a volume that was just made its label. A crash before leaves it without one.
func labelNew(d disk.Disk, o MkfsOptions) error {
	v, err := Open(d, Options{Clock: o.Clock})
	if err == nil {
		err = errors.Join(v.SetLabel(o.Label), v.Close())
	}
	if err != nil {
		return fmt.Errorf("the volume is made, and has no label: %w", err)
	}
	return nil
}

// clearHome makes zeros of what bitmaps, inodes, and records of a volume that can grow lie in, on device d, whose
// layout is dd. The device is no volume any more before.
func clearHome(d disk.Disk, dd *ddisk.Disk, s superblockformat.Super, o MkfsOptions) error {
	if !superblockcopies.Blank(dd) {
		return dd.Err()
	}
	_, data, _ := superblockformat.Locate(s, s.Geometry().Data0())
	below := ddisk.New(meter{d, 1, data, o.Progress, o.Stop})
	if !growing.ClearHome(below, s, s.Geometry().InodeBitmap(), s.Geometry().Data0()) {
		return below.Err()
	}
	return nil
}

// amounts are what a volume of size blocks has with these options: blocks of the journal, inodes, and records of
// replies.
func amounts(size uint64, o MkfsOptions) (log, inodes, replies uint64) {
	log, inodes, replies = o.LogBytes/BlockSize, o.Inodes, o.Replies
	if o.LogBytes == 0 {
		log = min(logDefault, max(logLeast, size/8))
	}
	if inodes == 0 {
		inodes = volumegeometry.DefaultInodes(size)
	}
	if replies == 0 {
		replies = min(repliesDefault, max(repliesLeast, size/64))
	}
	return log, inodes, replies
}

// plan lays a volume of size blocks out, which may grow as far as the options say.
func plan(size uint64, o MkfsOptions) (s superblockformat.Super, err error) {
	if !o.grows(size) {
		return layOut(size, o)
	}
	s, err = begin(size, o)
	if small := new(TooSmallError); errors.Is(err, ErrNoMore) || errors.As(err, &small) {
		log, inodes, _ := amounts(size, o)
		err = &TooSmallError{size * BlockSize, log * BlockSize, inodes, leastBytes(o)}
	}
	return s, err
}

// grows tells whether a volume of size blocks is made to become larger.
func (o MkfsOptions) grows(size uint64) bool { return o.MaxBytes/BlockSize > size }

// begin lays a volume out that grows, of which size blocks are there. The error is ErrNoMore if these are too few.
func begin(size uint64, o MkfsOptions) (s superblockformat.Super, err error) {
	most := o.MaxBytes / BlockSize
	log, inodes, replies := amounts(size, o)
	if err := enough(inodes); err != nil {
		return s, err
	}
	l := MkfsOptions{LogBytes: log * BlockSize, Replies: replies, Clock: o.Clock}
	l.Inodes = min(inodesMost, max(volumegeometry.DefaultInodes(most), proportion(inodes, most, size)))
	if s, err = layOut(most, l); err != nil {
		return s, err
	}
	return fill(beginning(s), size, inodes, true)
}

// enough refuses too few inodes.
func enough(inodes uint64) error {
	if inodes < inodesLeast {
		return fmt.Errorf("%w: %d inodes are too few: at least %d", ErrOptions, inodes, inodesLeast)
	}
	return nil
}

// layOut lays a volume of size blocks out, all of which is there.
func layOut(size uint64, o MkfsOptions) (s superblockformat.Super, err error) {
	tooLarge := tooLargeError(fmt.Sprintf("%d bytes are too many: a volume has less than %d",
		size*BlockSize, uint64(sizeMost)*BlockSize))
	if size > journal.MaxSize { // which no arithmetic here and below is for
		return s, tooLarge
	}
	log, n, replies := amounts(size, o)
	if log < logLeast {
		return s, fmt.Errorf("%w: a journal of %d bytes is too small: at least %d",
			ErrOptions, o.LogBytes, logLeast*BlockSize)
	}
	if err := enough(n); err != nil {
		return s, err
	}
	uuid, key, err := newSecrets()
	if err != nil {
		return s, err
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	sec, nsec := stamps.Of(o.Clock())
	why, s := making.Plan(size, log, n, replies, sec, nsec, uuid[0], uuid[1], key[0], key[1], key[2], key[3])
	switch why {
	case 0:
		return s, nil
	case making.TOOLARGE():
		if log >= logMost {
			return s, tooLargeError(fmt.Sprintf("a journal of %d bytes is too large: less than %d",
				log*BlockSize, uint64(logMost)*BlockSize))
		}
		return s, tooLarge
	}
	return s, &TooSmallError{size * BlockSize, log * BlockSize, n, leastBytes(o)}
}
