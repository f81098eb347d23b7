package fs

import (
	"encoding/binary"
	"fmt"

	"tansy/disk"
	"tansy/internal/extern/ddisk"
	"tansy/internal/gen/fs/format/superblockcopies"
)

// why a superblock that is there is refused, as verified/fs/format/superblock.dfy numbers it
var refusals = map[uint32]string{
	badSum: "its superblock is damaged (checksum)",
	other:  "it was made by another version of Tansy",
	4:      "it uses features this version does not know",
	5:      "its superblock contradicts itself",
}

// otherFormat is the error for a volume of another version of the format, with the way on. There is no conversion: this program
// cannot read what others have made, and to serve and copy is what anybody can check.
func otherFormat(d disk.Disk) error {
	b := make([]byte, BlockSize)
	if err := d.ReadAt(0, [][]byte{b}); err != nil {
		return err
	}
	return fmt.Errorf("%w: %s: its format is number %d, and this one's %d. To go on with its files, serve it by a Tansy of which \"tansy version\" prints \"volume format %[3]d\", serve a new volume by this one, mount both, and copy (docs/operations.md, Upgrade)",
		ErrNotVolume, refusals[other], binary.LittleEndian.Uint32(b[8:]), FormatVersion())
}

// noSuperblock is the error for a device without a superblock in block 0. Nobody
// should be told to make a volume where one may have been.
func noSuperblock(d *ddisk.Disk) error {
	last := d.Size() - 1
	switch why, _ := superblockcopies.Look(d, last); why {
	case superblockcopies.UNREAD():
		return fmt.Errorf("%w: there is no superblock in block 0, and block %d with the copy cannot be read: %w", ErrNotVolume, last, d.ReadErr())
	case noSuper:
	default:
		return fmt.Errorf("%w: there is no superblock in block 0, but the copy of one in block %d: it was written over, or mkfs was interrupted", ErrNotVolume, last)
	}
	return fmt.Errorf("%w: %w", ErrNotVolume, ErrNoSuperblock)
}
