package backup

import (
	"fmt"

	"tansy/disk"
	"tansy/internal/gen/fs/format/superblockformat"
	"tansy/internal/volumeend"
	"tansy/journal"
)

// bitsBlock is the number of bits in a block of a bitmap.
const bitsBlock = 8 * disk.BlockSize

// source is a volume at rest, with its tree of codes and its bitmap.
type source struct {
	layout disk.Disk
	super  superblockformat.Super
	snap   *journal.Snapshot

	bits    []byte // the block of the bitmap that was asked last
	bitsAt  uint64 // its number, plus one
	unknown bool   // it is damaged, so that all blocks count as used
}

// newSource is volume s, with that layout.
func newSource(layout disk.Disk, s superblockformat.Super) (*source, error) {
	if layout.Size() != s.Size() {
		return nil, fmt.Errorf("%w: its superblock is that of %d blocks, and not of %d", ErrDamaged, s.Size(), layout.Size())
	}
	snap, err := journal.Inspect(layout, volumeend.Journal(s))
	if err != nil {
		return nil, err
	}
	if len(snap.Blocks) > 0 {
		return nil, fmt.Errorf("the log has %d blocks that are not home: this is no volume at rest", len(snap.Blocks))
	}
	if _, _, ok := snap.Root(); !ok {
		return nil, fmt.Errorf("the volume has no tree of codes")
	}
	return &source{layout: layout, super: s, snap: snap, bits: make([]byte, disk.BlockSize)}, nil
}

// used tells whether home block a is in use: all before the data are, and of these what the bitmap says.
func (s *source) used(a uint64) bool {
	g := s.super.Geometry()
	if a < g.Data0() || a >= g.Data1() {
		return true
	}
	if at := g.BlockBitmap() + a/bitsBlock; s.bitsAt != at+1 {
		err := s.layout.ReadAt(at, [][]byte{s.bits})
		if err == nil {
			ok, _ := s.snap.Genuine(at, s.bits)
			s.unknown = !ok
		} else {
			s.unknown = true
		}
		s.bitsAt = at + 1
	}
	bit := a % bitsBlock
	return s.unknown || s.bits[bit/8]>>(bit%8)&1 != 0
}

// codes is page p, whose code is given: nothing is read for the code of zeros.
func (s *source) codes(p uint64, code journal.Code) (*journal.Codes, error) {
	if code == (journal.Code{}) {
		return s.snap.NoCodes(p), nil
	}
	c, err := s.snap.Codes(p)
	if err != nil {
		return nil, fmt.Errorf("page %d of the tree of codes is lost, so that it is not known what was last written to the "+
			"blocks below it: %w", p, err)
	}
	return c, nil
}

// key is what of a superblock has to be the same in all backups of one volume: how it is laid out, and the key of its
// codes.
func key(s superblockformat.Super) string {
	b := superblockformat.Encode(s).Data
	const size, used, uuid, pages, replies = 24, 96, 120, 168, 184
	return string(b[size:used]) + string(b[uuid:replies])
}

// dataOf is the blocks of data whose bits are in block a of the bitmap.
func (s *source) dataOf(a uint64) (from, to uint64) {
	g := s.super.Geometry()
	from = (a - g.BlockBitmap()) * bitsBlock
	return max(from, g.Data0()), min(from+bitsBlock, g.Data1())
}
