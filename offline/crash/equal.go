package crash

import (
	"errors"
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

// sum is a hash of what a recovered volume is, but for its epoch.
func (p logPlace) sum(d *disk.Sim) uint64 {
	return d.HashOf(hashes, func(a uint64, data []byte) []byte {
		switch {
		case a < p.first || a >= p.behind:
			return data
		case a == p.first || a == p.behind-1:
			var parts [][]byte
			for _, x := range headerParts {
				parts = append(parts, data[x[0]:x[1]])
			}
			return slices.Concat(parts...)
		}
		return nil
	})
}

// equals are the recovered images of a sequence, by their sums.
type equals struct {
	log   logPlace
	trees map[uint64]string // what can be seen of them
	clean map[uint64]bool   // the checker has found nothing
}

func newEquals(base disk.Disk) (*equals, error) {
	p, err := placeOfLog(base)
	return &equals{p, map[uint64]string{}, map[uint64]bool{}}, err
}
