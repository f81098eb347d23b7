// Package memvolume makes file systems on transactions in memory (dtxn.NewMem), for tests of what lies above the
// journal.
package memvolume

import (
	"tansy/internal/gen/fs/directories/directories"
	"tansy/internal/gen/fs/format/volumegeometry"
	"tansy/internal/gen/fs/mkfs/firstinodes"
	"tansy/internal/gen/fs/procedures/opening"
	"tansy/internal/runtime/dbytes"
	"tansy/internal/runtime/dtxn"
)

// Format makes the first inodes of a volume of zeros, as mkfs does: the root directory, of mode 0755, made at sec
// seconds and nsec nanoseconds since 1970, and the reserved inode.
func Format(tx *dtxn.Txn, g volumegeometry.Geometry, sec uint64, nsec uint32) {

	for i, b := range []*dbytes.Bytes{firstinodes.Root(0o755, 0, 0, sec, nsec), firstinodes.Reserved()} {
		ino := uint64(1 + i)
		tx.WriteInode(g.InodeTable(), ino*256*8, b)
		tx.WriteBit(g.InodeBitmap(), ino, true)
	}
}

// Dirs are the verified files and directories of a volume.
func Dirs(g volumegeometry.Geometry) *directories.DirFs { return opening.Open(g, &dtxn.Jrnl{}) }
