package fs

import (
	"errors"
	"fmt"
	"math/bits"
	"sort"

	"tansy/disk"
	"tansy/internal/gen/fs/format/deviceruns"
	"tansy/internal/gen/fs/format/superblockformat"
	"tansy/internal/gen/fs/mkfs/extents"
	"tansy/internal/gen/fs/mkfs/growing"
	"tansy/internal/runtime/ddisk"
	"tansy/internal/volumeend"
)

// Errors of Grow. It has written nothing then.
var (
	ErrFixedSize = errors.New("the volume cannot grow")
	ErrNoMore    = errors.New("the device has no room for more")
)

// GrowOptions say how a volume grows. The zero value is fine.
type GrowOptions struct {
	Inodes   uint64                   // at least so many afterwards; 0: in proportion to the size
	Progress func(done, total uint64) // called now and then with bytes written; may be nil
}

// Growth is what became of a volume.
type Growth struct {
	Before, After VolumeSize
}

// VolumeSize is how much of a volume there is.
type VolumeSize struct {
	Bytes  uint64 // of the device that it uses
	Data   uint64 // bytes for data
	Inodes uint64
	Most   uint64 // about the bytes that the volume may ever have; it cannot grow if that is Bytes
}

// Grow has the volume on d use what the device has behind it, in place, as far as the volume was made for that
// (MkfsOptions.MaxBytes). Nobody may have the volume open. A crash in the middle leaves the volume as it was, or with
// all that is new: what it holds is the same (verified/fs/mkfs/growing.dfy). It writes what is new of bitmaps, inodes,
// and the tree of codes, some 3 % of the new room, and none of what is there.
func Grow(d disk.Disk, o GrowOptions) (Growth, error) {
	s, err := toGrow(d)
	if err != nil {
		return Growth{}, err
	}
	now := Growth{sizeOf(s), sizeOf(s)}
	t, n, err := larger(s, d.Size(), o.Inodes)
	if err != nil {
		return now, err
	}
	// Where the host cannot promise room, the image has no such promise when it is opened next.
	if err := disk.TakeRoom(d, t.Extent().Room()); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return now, err
	}
	if err := put(d, s, t, n, o.Progress, nil); err != nil {
		return now, err
	}
	return Growth{sizeOf(s), sizeOf(t)}, nil
}

// toGrow is the superblock of a volume that nobody has open, and that is to grow.
func toGrow(d disk.Disk) (superblockformat.Super, error) {
	bound := volumeend.Bound(d, nil)
	s, damaged, err := readSuper(bound)
	if err == nil {
		err = journalParams(s).Check(volumeend.Layout(bound, s))
	}
	if err == nil && damaged {
		err = errors.New("the superblock in block 0 is damaged: open the volume once, which restores it " +
			"from its copy, and then let it grow")
	}
	return s, err
}

// CanGrow tells whether Grow would be refused if d were so many bytes long. The error is as that of Grow; but that the
// device has no room for more (ErrNoMore) is one only with more inodes. It writes nothing.
func CanGrow(d disk.Disk, bytes uint64, o GrowOptions) error {
	s, err := toGrow(d)
	if err != nil {
		return err
	}
	return mayBe(s, bytes, o)
}

// mayBe is the error of CanGrow, of volume s.
func mayBe(s superblockformat.Super, bytes uint64, o GrowOptions) error {
	_, _, err := larger(s, bytes/BlockSize, o.Inodes)
	if errors.Is(err, ErrNoMore) && o.Inodes == 0 {
		return nil
	}
	return err
}

// larger is volume s as it may be on a device of size blocks, with so many inodes at least. Its new data begin with n
// blocks where s ends.
func larger(s superblockformat.Super, size, inodes uint64) (t superblockformat.Super, n uint64, err error) {
	if now := sizeOf(s); now.Most == now.Bytes {
		return s, 0, fmt.Errorf("%w: it was made for one size", ErrFixedSize)
	}
	t, err = fill(s, size, inodesFor(s, size, inodes), false)
	if errors.Is(err, ErrNoMore) && inodes == 0 {
		t, err = fill(s, size, s.Extent().InodeEnd(), false)
	}
	if err != nil {
		return s, 0, err
	}
	if n = growing.First(s, t); n == 0 {
		return s, 0, fmt.Errorf("the new blocks do not follow those of the volume: %w", ErrNoMore)
	}
	return t, n, nil
}

// put has device d, whose volume is s, hold volume t (larger). stop, unless nil, is called before each write; its error
// is that of put.
func put(d disk.Disk, s, t superblockformat.Super, n uint64,
	progress func(done, total uint64), stop func() error) error {
	dd := ddisk.NewAbove(meter{d, s.Extent().Room() + n, t.Extent().Room(), progress, stop})
	if !growing.Grow(dd, s, t, n, unwritten(d, s.Extent().Room(), t.Extent().Room())) {
		return dd.Err()
	}
	return nil
}

// SizeOf is how much there is of the volume on d. It reads the superblock alone.
func SizeOf(d disk.Disk) (VolumeSize, error) {
	s, _, err := readSuper(volumeend.Bound(d, nil))
	if err != nil {
		return VolumeSize{}, err
	}
	return sizeOf(s), nil
}

// sizeOf is how much there is of a volume.
func sizeOf(s superblockformat.Super) VolumeSize {
	e := s.Extent()
	return VolumeSize{
		Bytes: e.Room() * BlockSize, Data: (e.DataEnd() - s.Geometry().Data0()) * BlockSize, Inodes: e.InodeEnd() - 3,
		Most: s.Size() * BlockSize,
	}
}

// unwritten tells whether d knows that its blocks from a on before end were never written: those of an image that was
// made longer.
func unwritten(d disk.Disk, a, end uint64) bool {
	next, err := disk.NextData(d, a)
	return err == nil && next >= end
}

// beginning is a volume of which nothing but block 0 is there yet.
func beginning(s superblockformat.Super) superblockformat.Super {
	g := s.Geometry()
	return with(s, superblockformat.CreateExtent(2, g.Data0()+1, inodesLeast,
		deviceruns.CreateRun(0, 1, deviceruns.CreateNoRun())))
}

// with is s with another extent.
func with(s superblockformat.Super, e superblockformat.Extent) superblockformat.Super {
	return superblockformat.CreateSuper(s.Size(), s.Lognd(), s.Lognr(), s.Geometry(), s.Rootgen(), s.Ctime(), s.Ctimens(),
		s.Compat(), s.Uuid0(), s.Uuid1(), s.Key0(), s.Key1(), s.Key2(), s.Key3(), s.Pages(), e)
}

// manyRuns is how many runs a superblock has before more is made ready at a time than is needed (fill).
const manyRuns = 60

// fill is volume s with as many data blocks as a device of size blocks has room for, and the inodes before inodeEnd.
// isNew: all but data come first. What belongs to data and inodes comes with them. When the superblock has a list of
// many runs it comes for twice as many, or a quarter more, if that leaves half of the new room for data: so it comes
// seldom, and in between all that is new is one run of data.
func fill(s superblockformat.Super, size, inodeEnd uint64, isNew bool) (t superblockformat.Super, err error) {
	t, err = fit(s, size, inodeEnd, 0, isNew)
	n := runs(t.Extent().Runs())
	if err != nil || n <= manyRuns || n <= runs(s.Extent().Runs())+1 {
		return t, err
	}
	for _, quarters := range []uint64{4, 1} {
		more, err := fit(s, size, inodeEnd, quarters, isNew)
		if old := s.Extent().DataEnd(); err == nil && more.Extent().DataEnd()-old >= (t.Extent().DataEnd()-old)/2 {
			return more, nil
		}
	}
	return t, nil
}

// fit is fill, with what belongs to so many quarters more data and inodes.
func fit(s superblockformat.Super, size, inodeEnd, quarters uint64, isNew bool) (t superblockformat.Super, err error) {
	g, e := s.Geometry(), s.Extent()
	if inodeEnd > g.Ninode() {
		return s, fmt.Errorf("%w: %d inodes are more than the %d that the volume was made for",
			ErrOptions, inodeEnd, g.Ninode())
	}
	reach := func(n, most uint64) uint64 { return min(n+n/4*quarters, most) }
	why := uint32(0)
	try := func(dataEnd uint64) bool {
		why, t = extents.Plan(s, dataEnd, inodeEnd, g.Data0()+reach(dataEnd-g.Data0(), g.Data1()-g.Data0()),
			reach(inodeEnd, g.Ninode()), isNew)
		return why == 0 && t.Extent().Room() <= size
	}
	least := e.DataEnd() // of what is tried
	if !isNew {
		least++
	}
	n := sort.Search(int(g.Data1()+1-least), func(k int) bool { return !try(least + uint64(k)) })
	if n == 0 {
		if why == extents.MANYRUNS() {
			return s, fmt.Errorf("%w: it has grown so often that its superblock has no room for more runs", ErrFixedSize)
		}
		return s, ErrNoMore
	}
	try(least + uint64(n) - 1)
	return t, nil
}

// runs is the number of runs.
func runs(r deviceruns.Runs) (n int) {
	for ; r.Is_Run(); r = r.Later() {
		n++
	}
	return n
}

// inodesFor is where the inodes of s end on a device of size blocks: in proportion to it, but no fewer than there are,
// nor than wanted.
func inodesFor(s superblockformat.Super, size, wanted uint64) uint64 {
	e := s.Extent()
	n := proportion(e.InodeEnd(), size, e.Room()) / 16 * 16
	return max(min(s.Geometry().Ninode(), max(n, e.InodeEnd())), wanted)
}

// proportion is n times a part of a whole, rounded down.
func proportion(n, part, whole uint64) uint64 {
	hi, lo := bits.Mul64(n, part)
	if hi >= whole {
		return ^uint64(0)
	}
	q, _ := bits.Div64(hi, lo, whole)
	return q
}
