package repair

import (
	"bytes"
	"encoding/binary"
	"maps"
	"slices"

	"tansy/disk"
	"tansy/internal/layout"
	"tansy/journal"
)

// geometry is where the regions of a volume lie in its layout (docs/design/format.md). Data blocks from dataEnd on, and
// inodes from inodeEnd on, are not there yet.
type geometry struct{ ibm, bbm, itab, slot0, data0, dataEnd, ninode, inodeEnd, rootgen uint64 }

// What inodes say, besides their format.
const (
	typeReg, typeDir, typeBlk, typeChr, typeLnk = 1, 2, 3, 4, 5 //
	typeLast, typeOrphans                       = 7, 8          //
	rootIno, orphansIno                         = uint64(layout.RootInode), uint64(layout.OrphansInode)
	flagOrphan                                  = 1                             //
	flagKept                                    = 2                             //
	noID, nobody                                = 1<<32 - 1, 65534              // no user and no group; their number
	maxSize, maxSymlink                         = uint64(1) << 39, uint64(4095) // bytes
)

// volume is a volume whose log is empty, with changes that are in memory until flush.
type volume struct {
	geometry
	d     disk.Disk         // its layout
	dirty map[uint64][]byte // new contents
	lost  map[uint64]bool   // blocks that could not be read
	cache map[uint64][]byte // blocks that were read not long ago

	codes   *journal.Snapshot // nil: what is read is believed
	coded   bitset            // of the blocks before the data: those that are not zeros, by their codes
	damaged map[uint64]bool   // blocks that were read and are not what was last written there
}

// cached is the number of blocks in the cache.
const cached = 4096

func newVolume(d disk.Disk, g geometry) *volume {
	return &volume{
		geometry: g, d: d, dirty: map[uint64][]byte{},
		lost: map[uint64]bool{}, cache: map[uint64][]byte{}, damaged: map[uint64]bool{},
	}
}

// genuine says whether b is what was last written to block a.
func (v *volume) genuine(a uint64, b []byte) bool {
	if v.codes == nil {
		return true
	}
	ok, _ := v.codes.Genuine(a, b)
	return ok
}

// contents is the contents of block a of a file, not to be changed, or nil if it cannot be read, or is damaged.
func (v *volume) contents(a uint64) []byte {
	if b := v.dirty[a]; b != nil {
		return b
	}
	b := make([]byte, disk.BlockSize)
	if v.lost[a] || v.damaged[a] || v.d.ReadAt(a, [][]byte{b}) != nil || !v.genuine(a, b) {
		return nil
	}
	return b
}

// peek is the contents of block a, not to be changed, or nil if it cannot be read. What is damaged is noted: the
// repair is about to make it sound.
func (v *volume) peek(a uint64) []byte {
	if b := v.dirty[a]; b != nil {
		return b
	}
	if v.lost[a] {
		return nil
	}
	b := v.cache[a]
	if b != nil {
		return b
	}
	b = make([]byte, disk.BlockSize)
	if v.d.ReadAt(a, [][]byte{b}) != nil {
		v.lost[a] = true
		return nil
	}
	if !v.genuine(a, b) {
		v.damaged[a] = true
	}
	if len(v.cache) >= cached {
		clear(v.cache)
	}
	v.cache[a] = b
	return b
}

// edit is the contents of block a, to be changed in place. The block must be readable.
func (v *volume) edit(a uint64) []byte {
	b := v.dirty[a]
	if b == nil {
		b = v.peek(a)
		v.dirty[a] = b
	}
	return b
}

// none is a block behind all others.
const none = ^uint64(0)

// nowhere is the need of a scan that has none.
func nowhere(uint64) uint64 { return none }

// scan calls f for the blocks [from, to), but for those that the device knows to be all
// zeros, unless they are needed: need(a) is the first such block at or behind a, or none. The contents are nil for a
// block that cannot be read.
func (v *volume) scan(from, to uint64, need func(a uint64) uint64, f func(a uint64, b []byte)) error {
	coded := v.coded.members()
	for a := from; a < to; a++ {
		data, err := disk.NextData(v.d, a)
		if err != nil {
			return err
		}
		if a = min(data, need(a), coded(a)); a < to {
			f(a, v.peek(a))
		}
	}
	return nil
}

// An inode is its 256 bytes.
type inode []byte

func (n inode) w(off int) uint32 { return layout.Uint32(n, off) }
func (n inode) q(off int) uint64 { return layout.Uint64(n, off) }

func (v *volume) inodeBlock(ino uint64) (a uint64, off int) {
	return v.itab + ino/layout.InodesBlock, int(ino % layout.InodesBlock * layout.InodeSize)
}

// inode is an inode whose block is known to be readable.
func (v *volume) inode(ino uint64) inode {
	a, off := v.inodeBlock(ino)
	return v.peek(a)[off : off+layout.InodeSize]
}

// set32 and set64 change a field of an inode, and say whether it had another value.
func (v *volume) set32(ino uint64, off int, x uint32) bool {
	if v.inode(ino).w(off) == x {
		return false
	}
	a, at := v.inodeBlock(ino)
	binary.LittleEndian.PutUint32(v.edit(a)[at+off:], x)
	return true
}

func (v *volume) set64(ino uint64, off int, x uint64) bool {
	if v.inode(ino).q(off) == x {
		return false
	}
	a, at := v.inodeBlock(ino)
	binary.LittleEndian.PutUint64(v.edit(a)[at+off:], x)
	return true
}

// flush commits the changes, what refers to blocks and inodes before the bitmaps: at once if
// they are as many as a commit can have at most. changed: there were some.
func (v *volume) flush(j *journal.Journal) (changed bool, err error) {
	var ws []journal.Write
	old := make([]byte, disk.BlockSize)
	for _, a := range slices.Backward(slices.Sorted(maps.Keys(v.dirty))) {
		if !v.damaged[a] && v.d.ReadAt(a, [][]byte{old}) == nil && bytes.Equal(old, v.dirty[a]) {
			continue
		}
		ws = append(ws, journal.Write{Addr: a, Data: v.dirty[a]})
	}
	for part := range slices.Chunk(ws, journal.MaxBlocks) {
		if err := j.Commit(part, true); err != nil {
			return true, err
		}
	}
	return len(ws) > 0, nil
}

const pageBits = 8 * disk.BlockSize

// bitset is a set of numbers that takes memory only where it has members; a page is the
// contents of a block of a bitmap.
type bitset map[uint64][]byte

func (s bitset) has(x uint64) bool {
	p := s[x/pageBits]
	return p != nil && p[x%pageBits/8]>>(x%8)&1 != 0
}

// add says whether x was not a member yet.
func (s bitset) add(x uint64) bool {
	if s.has(x) {
		return false
	}
	if s[x/pageBits] == nil {
		s[x/pageBits] = make([]byte, disk.BlockSize)
	}
	s[x/pageBits][x%pageBits/8] |= 1 << (x % 8)
	return true
}

// members returns a function that finds the first member at or behind x, or none. The set must not change meanwhile,
// nor x become less.
func (s bitset) members() func(x uint64) uint64 {
	pages := slices.Sorted(maps.Keys(s))
	at := uint64(0) // no members are below, but for those that were asked for
	return func(x uint64) uint64 {
		for at = max(at, x); at != none && !s.has(at); {
			i, ok := slices.BinarySearch(pages, at/pageBits)
			switch {
			case ok:
				at++
			case i < len(pages):
				at = pages[i] * pageBits
			default:
				at = none
			}
		}
		return at
	}
}

func zeros(b []byte) bool {
	for _, x := range b {
		if x != 0 {
			return false
		}
	}
	return true
}
