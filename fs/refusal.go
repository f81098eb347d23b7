package fs

import (
	"encoding/binary"
	"fmt"

	"tansy/disk"
	"tansy/internal/gen/fs/format/superblockcopies"
	"tansy/internal/gen/fs/format/superblockformat"
	"tansy/internal/runtime/ddisk"
	"tansy/journal"
)

// why a superblock that is there is refused, as verified/fs/format/superblock.dfy numbers it
var refusals = map[uint32]string{
	badSum: "the superblock is damaged (checksum)",
	other:  "another version of Tansy made the volume",
	4:      "the volume uses features this version does not know",
	5:      "the superblock contradicts itself",
}

// grown is what to do where a superblock and the last block are of no use.
const grown = " (if the device has grown since the volume was made, tansy repair searches it for the copy)"

// refused is the error for a device without a superblock that can be used, for reason why.
func refused(d disk.Disk, dd *ddisk.Disk, why uint32, s superblockformat.Super) error {
	switch last := d.Size() - 1; why {
	case noSuper:
		return noSuperblock(dd)
	case other:
		return otherFormat(d)
	case badSum:
		return fmt.Errorf("%w: %s, and so is the copy in block %d%s", ErrNotVolume, refusals[why], last, grown)
	case superblockcopies.LARGER():
		return fmt.Errorf("the volume has %d blocks, but the device only %d", s.Extent().Room(), d.Size())
	case superblockcopies.UNREAD():
		return fmt.Errorf("the superblock in block 0 cannot be read, and block %d has no copy of it%s: %w",
			last, grown, dd.ReadErr())
	}
	return fmt.Errorf("%w: %s", ErrNotVolume, refusals[why])
}

// foreignCopy is the error for a copy that is of no volume there.
func foreignCopy(d disk.Disk) error {
	return fmt.Errorf("%w: the superblock in block 0 cannot be used, and the log that its copy in block %d tells of "+
		"has no header there: both are damaged, or the copy is another volume's%s", journal.ErrDamaged, d.Size()-1, grown)
}

// otherFormat is the error for a volume of another version of the format, with the way on. There is no conversion: this
// program cannot read what others have made, and to serve and copy is what anybody can check.
func otherFormat(d disk.Disk) error {
	b := make([]byte, BlockSize)
	if err := d.ReadAt(0, [][]byte{b}); err != nil {
		return err
	}
	return fmt.Errorf("%w: %s: its format is number %d, and this one's %d. "+
		"To go on with its files, serve it by a Tansy of which \"tansy version\" prints \"volume format %[3]d\", "+
		"serve a new volume by this one, mount both, and copy (docs/guide/operations.md, Upgrade)",
		ErrNotVolume, refusals[other], binary.LittleEndian.Uint32(b[8:]), FormatVersion())
}

// noSuperblock is the error for a device without a superblock in block 0. Nobody
// should be told to make a volume where one may have been.
func noSuperblock(d *ddisk.Disk) error {
	last := d.Size() - 1
	switch why, _ := superblockcopies.Look(d, last); why {
	case superblockcopies.UNREAD():
		return fmt.Errorf("%w: there is no superblock in block 0, and block %d with the copy cannot be read: %w",
			ErrNotVolume, last, d.ReadErr())
	case noSuper:
	default:
		return fmt.Errorf("%w: there is no superblock in block 0, but the copy of one in block %d: "+
			"it was written over, or mkfs was interrupted", ErrNotVolume, last)
	}
	return fmt.Errorf("%w: %w", ErrNotVolume, ErrNoSuperblock)
}
