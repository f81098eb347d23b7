package repair

import (
	"tansy/disk"
	"tansy/offline/check"
)

// dropLocks takes the server's note of clients with locks out of block b, block k of the file ino (level 0: data), if
// that has it and it cannot be read: no server gives locks before. All other attributes of the root directory stay. The
// block goes, too, if there are none.
func (r *round) dropLocks(ino uint64, level int, k, b uint64) (gone bool) {
	if ino != orphansIno || level > 0 || k != rootIno {
		return false
	}
	data := r.v.contents(b)
	if data == nil {
		return false
	}
	wrong := check.LocksWrong(data)
	if wrong == "" {
		return false
	}
	r.did(rootIno, "the server's note of clients with locks goes: %s; nobody can reclaim locks", wrong)
	from, _, to := check.Attribute(data, check.LocksNote)
	left := make([]byte, disk.BlockSize)
	copy(left[copy(left, data[:from]):], data[to:])
	if check.XattrsWrong(left) != "" { // there are none in it
		return true
	}
	r.v.dirty[b] = left
	return false
}
