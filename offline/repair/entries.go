package repair

import (
	"bytes"
	"maps"
	"slices"

	"tansy/disk"
	"tansy/internal/layout"
	"tansy/internal/runtime/dbytes"
)

// The format of a directory (docs/design/format.md).
const (
	dirLevels, dirFanout = 9, 8
)

// bucketOf says whether a name of hash h may lie in bucket b of its class.
func bucketOf(h, b uint64) bool {
	start, width := uint64(0), uint64(1)
	for range dirLevels {
		if b < start+width {
			return b == start+h%width
		}
		start, width = start+width, width*dirFanout
	}
	return false
}

// An entry is a slot of a directory in use.
type entry struct {
	ino      uint64
	name     []byte
	block, k uint64 // block of the volume, and of the directory's file
	off      int
	size     int // of the slot
}

// remove removes an entry from its directory.
func (r *round) remove(e entry) { clear(r.v.edit(e.block)[e.off : e.off+e.size]) }

// drop removes an entry, and says so among the actions.
func (r *round) drop(dir uint64, e entry, why string, args ...any) {
	name := slices.Clone(e.name)
	r.remove(e)
	r.did(dir, "entry %q, which names inode %d, is removed: "+why, append([]any{name, e.ino}, args...)...)
}

// eachEntry calls f for the layout.PointerCount in use of a directory. It says whether all blocks could be read.
func (r *round) eachEntry(dir uint64, f func(e entry)) (whole bool) {
	v := r.v
	n := v.inode(dir)
	end := n.q(layout.Size) / disk.BlockSize
	known := true
	whole = v.walk(n, func(k, b uint64) {
		if k >= end {
			return
		}
		buf := v.peek(b)
		if buf == nil {
			known = false
			return
		}
		slot, limit := layout.Slot(k)
		for off := 0; off < disk.BlockSize; off += slot {
			s := v.peek(b)[off : off+slot]
			if zeros(s) {
				continue
			}
			ino, length, _ := layout.Entry(s)
			f(entry{ino: ino, name: layout.Name(s, length, limit), block: b, k: k, off: off, size: slot})
		}
	})
	return whole && known
}

// directories makes the entries of each directory possible, and counts them.
func (r *round) directories() {
	for _, dir := range slices.Sorted(maps.Keys(r.nodes)) {
		n := r.nodes[dir]
		if n.ty != typeDir {
			continue
		}
		names, dropped := map[string]bool{}, map[uint64]int{}
		whole := r.eachEntry(dir, func(e entry) {
			if why := r.impossible(e); why != "" {
				if dropped[e.block]++; dropped[e.block] > told {
					r.remove(e)
				} else {
					r.drop(dir, e, "%s", why)
				}
				return
			}
			if why := r.wrong(dir, e, names); why != "" {
				r.drop(dir, e, "%s", why)
				return
			}
			names[string(e.name)] = true
			n.nent++
			if r.inodeLost(e.ino) {
				n.part = true // it may be a directory, whose parent has a link more
			}
			if t := r.nodes[e.ino]; t != nil {
				t.refs++
				if t.ty == typeDir {
					t.names = append(t.names, dir)
				}
			}
		})
		for _, b := range slices.Sorted(maps.Keys(dropped)) {
			if more := dropped[b] - told; more > 0 {
				r.did(dir, "and %d more such entries of block %d are removed", more, b)
			}
		}
		if !whole {
			n.part = true
			r.dirsLost = true
		}
	}
}

// told is how many impossible entries of a block are told each: a block of something else is full of them.
const told = 4

// impossible says why a slot holds no entry that was ever made, or "".
func (r *round) impossible(e entry) string {
	s := r.v.peek(e.block)[e.off : e.off+e.size]
	_, size, hash := layout.Entry(s)
	long := e.size == layout.LongSlot
	h := dbytes.XXH64(e.name)
	switch {
	case layout.Uint64(s, 0) == 0:
		return "there is something in a free slot"
	case size == 0 || size > len(e.name):
		return "the length of the name does not fit"
	case long != (size > layout.ShortName):
		return "the slot is for names of another length"
	case string(e.name) == "." || string(e.name) == ".." || bytes.ContainsAny(e.name, "/\x00"):
		return "the name is not possible"
	case hash != uint8(h>>56):
		return "the name does not have the hash that it should"
	case !bucketOf(h, e.k/2):
		return "names of this hash do not lie here"
	}
	return ""
}

// wrong says why a possible entry cannot stay, and clears what means nothing in its slot.
func (r *round) wrong(dir uint64, e entry, names map[string]bool) string {
	switch {
	case e.ino <= orphansIno || e.ino >= r.v.inodeEnd:
		return "there can be no such file"
	case r.nodes[e.ino] == nil && !r.inodeLost(e.ino):
		return "there is no such file"
	case names[string(e.name)]:
		return "the name is there twice"
	}
	s := r.v.peek(e.block)[e.off : e.off+e.size]
	if size := len(e.name); !zeros(s[8+size:]) {
		clear(r.v.edit(e.block)[e.off+8+size : e.off+e.size])
		r.did(dir, "bytes behind the name %q become zeros", e.name)
	}
	return ""
}

// parents gives each directory one place: where it says it lies, if it is named there.
func (r *round) parents() {
	dirs := slices.Sorted(maps.Keys(r.nodes))
	dirs = slices.DeleteFunc(dirs, func(ino uint64) bool { return r.nodes[ino].ty != typeDir || ino == rootIno })
	for _, ino := range dirs {
		n := r.nodes[ino]
		if len(n.names) == 0 {
			continue
		}
		n.namedBy = n.names[0]
		if p := r.v.inode(ino).q(layout.Parent); slices.Contains(n.names, p) {
			n.namedBy = p
		}
		r.onlyName(ino, n)
	}
	for _, ino := range dirs {
		r.breakCircle(ino)
	}
	for _, ino := range dirs {
		n := r.nodes[ino]
		if n.namedBy != 0 {
			r.nodes[n.namedBy].subdirs++
			r.fix64(ino, layout.Parent, n.namedBy, "the parent becomes the directory that names it")
		}
	}
}

// onlyName removes all names of a directory but one in n.namedBy; if that is 0, all.
func (r *round) onlyName(ino uint64, n *node) {
	if len(n.names) == 1 && n.namedBy != 0 {
		return
	}
	kept := n.namedBy == 0
	slices.Sort(n.names)
	for _, dir := range slices.Compact(n.names) {
		r.eachEntry(dir, func(e entry) {
			switch {
			case e.ino != ino:
			case dir == n.namedBy && !kept:
				kept = true
			default:
				r.drop(dir, e, "a directory has one name, and is no part of itself")
				r.nodes[dir].nent--
				n.refs--
			}
		})
	}
	n.names = nil
}

// breakCircle removes the name of a directory that lies in itself.
func (r *round) breakCircle(ino uint64) {
	slow, fast := ino, ino
	up := func(ino uint64) uint64 {
		if n := r.nodes[ino]; n != nil {
			return n.namedBy
		}
		return 0
	}
	for {
		slow, fast = up(slow), up(up(fast))
		if fast == 0 {
			return
		}
		if slow == fast {
			break
		}
	}
	n := r.nodes[slow]
	n.names, n.namedBy = []uint64{n.namedBy}, 0
	r.onlyName(slow, n)
}
