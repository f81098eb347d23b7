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
	bitsErr error  // it is damaged
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

// used tells whether home block a is in use: all before the data are, and of these what the bitmap says. After an
// error, which is that of the bitmap, it may be.
func (s *source) used(a uint64) (bool, error) {
	g := s.super.Geometry()
	if a < g.Data0() || a >= g.Data1() {
		return true, nil
	}
	if at := g.BlockBitmap() + a/bitsBlock; s.bitsAt != at+1 {
		s.bitsAt, s.bitsErr = at+1, s.layout.ReadAt(at, [][]byte{s.bits})
		if ok, _ := s.snap.Genuine(at, s.bits); s.bitsErr == nil && !ok {
			s.bitsErr = fmt.Errorf("block %d, of the bitmap of blocks: %w", at, journal.ErrNotAsWritten)
		}
	}
	bit := a % bitsBlock
	return s.bits[bit/8]>>(bit%8)&1 != 0, s.bitsErr
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

// key is what of a superblock has to be the same in all backups of one volume: how it is laid out, its UUID, and the
// key of its codes.
func key(s superblockformat.Super) string {
	b := superblockformat.Encode(s).Data
	return string(b[24:96]) + string(b[120:184]) // docs/design/format.md
}

// dataOf is the blocks of data whose bits are in block a of the bitmap.
func (s *source) dataOf(a uint64) (from, to uint64) {
	g := s.super.Geometry()
	from = (a - g.BlockBitmap()) * bitsBlock
	return max(from, g.Data0()), min(from+bitsBlock, g.Data1())
}
