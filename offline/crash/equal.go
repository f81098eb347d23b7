package crash

import (
	"encoding/binary"
	"errors"
	"hash/maphash"
	"slices"

	"tansy/disk"
	"tansy/internal/gen/fs/format/superblockformat"
	"tansy/internal/runtime/dbytes"
	"tansy/internal/volumeend"
)

// Many images of a sequence are the same when they are recovered. Each recovery has another epoch, and so other seals
// of the log's headers. What the log has but them is dead by then: none of it counts in the new epoch. All else tells
// whether two are the same, and what was seen of one of them is not looked for again.

// Parts of a header (docs/design/format.md) that do not depend on the epoch.
var headerParts = [][2]int{{0, 32}, {48, 64}}

// logPlace is where the log of a volume lies on its device: from its header up to behind the header's copy.
type logPlace struct{ first, behind uint64 }

// placeOfLog finds the log of a volume.
func placeOfLog(d disk.Disk) (p logPlace, err error) {
	b := make([]byte, disk.BlockSize)
	if err := d.ReadAt(0, [][]byte{b}); err != nil {
		return p, err
	}
	why, s := superblockformat.Decode(&dbytes.Bytes{Data: b})
	if why != 0 {
		return p, errors.New("the superblock of the volume that is tried cannot be read")
	}
	first := volumeend.Journal(s).Start // in the layout
	blocks := s.Geometry().InodeBitmap() - first
	p = logPlace{first, first + blocks}
	if !s.Extent().Runs().Is_NoRun() {
		there, at, n := superblockformat.Locate(s, first)
		if !there || n < blocks {
			return p, errors.New("the log of the volume that is tried lies in several pieces")
		}
		p = logPlace{at, at + blocks}
	}
	return p, nil
}

// sum is a hash of what a recovered volume is, but for its epoch: the sum of those of its blocks.
func (p logPlace) sum(d *disk.Sim) (sum uint64) {
	for a, c := range d.Contents() {
		sum += p.part(a, c)
	}
	return sum
}

// part is what a block of a recovered volume adds to its sum.
func (p logPlace) part(a uint64, c *disk.Content) uint64 {
	switch {
	case c.Sum() == 0:
		return 0
	case a < p.first || a >= p.behind:
		return at(a, c.Sum())
	case a == p.first || a == p.behind-1:
		var parts [][]byte
		for _, x := range headerParts {
			parts = append(parts, c.Data()[x[0]:x[1]])
		}
		return at(a, maphash.Bytes(hashes, slices.Concat(parts...)))
	}
	return 0
}

// at is a hash of a block at an address.
func at(a, sum uint64) uint64 {
	var place [8]byte
	binary.LittleEndian.PutUint64(place[:], a)
	return sum * (maphash.Bytes(hashes, place[:]) | 1)
}

// equals are the recovered images of a sequence, by their sums, and what tells before whether another one will be as
// one of them.
type equals struct {
	log     logPlace
	trees   map[uint64]string // what can be seen of them
	clean   map[uint64]bool   // the checker has found nothing
	varying []uint64          // the blocks in which the images differ
	before  []precedent
}

func newEquals(base disk.Disk, varying []uint64) (*equals, error) {
	p, err := placeOfLog(base)
	return &equals{log: p, trees: map[uint64]string{}, clean: map[uint64]bool{}, varying: varying}, err
}

// image is a hash of an image of the sequence.
func (e *equals) image(d *disk.Sim) (sum uint64) {
	for _, a := range e.varying {
		sum += at(a, d.Content(a).Sum())
	}
	return sum
}
