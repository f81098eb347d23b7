// Package layout has what is on a volume, as numbers: the offsets of an inode's fields, and the slots of directories.
// It is for Go that reads volumes beside the verified code (owners of blocks, repair). docs/design/format.md is the
// format, and verified/fs/format the code that is proved; a test compares the two. Package check has numbers of its own
// on purpose.
package layout

import (
	"encoding/binary"

	"tansy/disk"
)

// Inodes. All numbers are little-endian; sizes in bytes.
const (
	InodeSize   = 256
	InodesBlock = disk.BlockSize / InodeSize // in one block
	BitsBlock   = 8 * disk.BlockSize         // of a bitmap in one block

	RootInode    = 1
	OrphansInode = 2 // heads the list of files without a name
)

// Offsets of the fields of an inode.
const (
	Type, Mode, Links, UID, GID                       = 0, 4, 8, 12, 16             // 4 bytes each
	Major, Minor, Flags                               = 20, 24, 28                  // 4 bytes each
	Size, Used, Generation                            = 32, 40, 48                  // 8 bytes each
	Nanoseconds, Marks                                = 80, 92                      // three times 4 bytes; 4 bytes
	Verifier, Parent, Next, Shrink, Entries, Pointers = 96, 104, 112, 120, 128, 136 // 8 bytes each
)

// Pointers: the numbers of a file's blocks. The first ones are of blocks with data, the others of one block each with
// numbers, with numbers of blocks with numbers, and so on.
const (
	PointerCount = 15
	DirectCount  = 12
	Fanout       = disk.BlockSize / 8
)

// Directories: blocks with short and with long slots take turns. A slot has an inode and the length and part of the
// hash of a name in 8 bytes, and then the name.
const (
	ShortSlot, ShortName = 64, 56
	LongSlot, LongName   = 512, 255
	inodeBits            = 48
)

// Uint32 is the field at an offset.
func Uint32(b []byte, offset int) uint32 { return binary.LittleEndian.Uint32(b[offset:]) }

// Uint64 is the field at an offset.
func Uint64(b []byte, offset int) uint64 { return binary.LittleEndian.Uint64(b[offset:]) }

// Slot is the size of the slots in block k of a directory, and of the longest name there.
func Slot(k uint64) (size, longest int) {
	if k%2 == 1 {
		return LongSlot, LongName
	}
	return ShortSlot, ShortName
}

// Entry is what a slot says: the inode, 0 if the slot is free; the length of the name; and the first byte of its hash.
// The length may be more than the slot can have.
func Entry(slot []byte) (ino uint64, length int, hash uint8) {
	w := Uint64(slot, 0)
	return w & (1<<inodeBits - 1), int(w >> inodeBits & 0xff), uint8(w >> 56)
}

// Name is the name in a slot for names of a length up to longest, as far as there is room for it.
func Name(slot []byte, length, longest int) []byte { return slot[8 : 8+min(length, longest)] }
