package fs

import (
	"tansy/internal/gen/fs/format/superblockformat"
	"tansy/internal/runtime/dtxn"
)

// What a volume has so far may end before what its layout has places for: blocks for data and inodes beyond these ends
// are not handed out. The ends only grow, also while the volume is served.

// endsOf says where the blocks for data and the inodes end that a volume has when it is opened.
func endsOf(s superblockformat.Super) (blocks, inodes uint64) {
	return s.Extent().DataEnd(), s.Extent().InodeEnd()
}

// layoutOf is the layout of a volume, with what it has when it is opened.
func layoutOf(s superblockformat.Super) dtxn.Layout {
	l := regionsOf(s.Geometry())
	l.Maps[dtxn.Blocks].End, l.Maps[dtxn.Inodes].End = endsOf(s)
	return l
}

// ends is where the blocks for data and the inodes end that the volume has so far.
func (v *FS) ends() (blocks, inodes uint64) { return v.sys.End(dtxn.Blocks), v.sys.End(dtxn.Inodes) }

// extend lets the volume have blocks for data and inodes up to these ends, from now on. They are there already. It is
// an error if one is less than before, or beyond the layout; then the inodes stay as they were. It may be called beside
// all operations.
func (v *FS) extend(blocks, inodes uint64) error {
	if err := v.sys.Extend(dtxn.Blocks, blocks); err != nil {
		return err
	}
	return v.sys.Extend(dtxn.Inodes, inodes)
}
