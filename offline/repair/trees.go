package repair

import (
	"encoding/binary"
	"maps"
	"slices"

	"tansy/disk"
	"tansy/internal/layout"
	"tansy/offline/check"
)

// blocks of a file in front of those below the single, double, and triple indirect block
var firstBelow = [4]uint64{
	1: layout.DirectCount,
	2: layout.DirectCount + layout.Fanout,
	3: layout.DirectCount + layout.Fanout + layout.Fanout*layout.Fanout,
}

// pointers calls f for the layout.PointerCount of an inode: the offset in it, the level of the block, and the
// index of the first block of the file below it.
func pointers(f func(off, level int, k uint64)) {
	for s := range layout.PointerCount {
		if s < layout.DirectCount {
			f(layout.Pointers+8*s, 0, uint64(s))
		} else {
			f(layout.Pointers+8*s, s-layout.DirectCount+1, firstBelow[s-layout.DirectCount+1])
		}
	}
}

// width is the number of blocks of a file below an entry of an indirect block of a level.
func width(level int) uint64 {
	w := uint64(1)
	for range level - 1 {
		w *= layout.Fanout
	}
	return w
}

func (v *volume) inData(b uint64) bool { return v.data0 <= b && b < v.dataEnd }

// garbage says that the contents of a block cannot be an indirect block's: most of what
// is not zero is no data block.
func (v *volume) garbage(b []byte) bool {
	good, bad := 0, 0
	for i := 0; i < len(b); i += 8 {
		switch p := layout.Uint64(b, i); {
		case p == 0:
		case v.inData(p):
			good++
		default:
			bad++
		}
	}
	return bad > good
}

// trees makes each block tree sound, and gives each block one owner. Trees that do not contradict
// themselves have the first choice.
func (r *round) trees() {
	inos := slices.Sorted(maps.Keys(r.nodes))
	r.wanted, r.taken, r.owner = bitset{}, bitset{}, map[uint64]uint64{}
	shared := bitset{}
	for _, ino := range inos {
		r.nodes[ino].suspect = r.judge(ino, shared)
	}
	for _, suspects := range []bool{false, true} {
		for _, ino := range inos {
			if n := r.nodes[ino]; n.suspect == suspects {
				t := tree{r: r, ino: ino, shared: shared, budget: most(r.v.inode(ino).q(layout.Used))}
				t.run()
			}
		}
	}
}

// most is how many blocks a tree can have with so many of data: each has at most three above it.
func most(data uint64) uint64 { return min(data, 1<<60) * 4 }

// judge walks over a tree and says whether it contradicts itself.
func (r *round) judge(ino uint64, shared bitset) (suspect bool) {
	v := r.v
	n := v.inode(ino)
	used, end := n.q(layout.Used), max(n.q(layout.Size), n.q(layout.Shrink))
	all, count := uint64(0), uint64(0) // count: of data
	var down func(b uint64, level int, k uint64)
	down = func(b uint64, level int, k uint64) {
		if b == 0 || count > used || all > most(used) { // the rest would only be more of the same
			return
		}
		if !v.inData(b) || k*disk.BlockSize >= end {
			suspect = true
			return
		}
		all++
		if level == 0 {
			count++
		}
		if !r.wanted.add(b) {
			shared.add(b)
		}
		if level == 0 {
			return
		}
		buf := v.peek(b)
		if buf == nil {
			r.treesLost = true
			return
		}
		if v.garbage(buf) {
			suspect = true
			return
		}
		for i := range uint64(layout.Fanout) {
			down(layout.Uint64(buf, int(8*i)), level-1, k+i*width(level))
		}
	}
	pointers(func(off, level int, k uint64) { down(n.q(off), level, k) })
	return suspect || count != used
}

// A tree is a block tree that is being made sound.
type tree struct {
	r      *round
	ino    uint64
	shared bitset // blocks that more than one pointer leads to
	budget uint64 // blocks that may be copied for it
	blocks uint64 // of data, found
	end    uint64 // bytes up to the end of the last of them
	last   uint64 // the last one with data
	size   uint64 // of the file
	final  uint64 // the one with the file's last byte
	part   bool   // not all are known
}

func (t *tree) run() {
	r, v := t.r, t.r.v
	t.size = v.inode(t.ino).q(layout.Size)
	pointers(func(off, level int, k uint64) {
		a, at := v.inodeBlock(t.ino)
		t.claim(a, at+off, level, k)
	})
	n := v.inode(t.ino)
	if t.part {
		r.treesLost = true
	}
	if used := n.q(layout.Used); used != t.blocks && (!t.part || used < t.blocks) {
		r.fix64(t.ino, layout.Used, t.blocks, "the count of blocks of data becomes what there is")
	}
	t.fit()
}

// claim goes down from the pointer at offset off of block at.
func (t *tree) claim(at uint64, off, level int, k uint64) {
	r, v := t.r, t.r.v
	b := layout.Uint64(v.peek(at), off)
	if b == 0 {
		return
	}
	hole := func(why string, args ...any) {
		binary.LittleEndian.PutUint64(v.edit(at)[off:], 0)
		r.did(t.ino, "block %d of the file (level %d) becomes a hole: "+why, append([]any{k, level}, args...)...)
	}
	if !v.inData(b) {
		hole("%d is no data block", b)
		return
	}
	buf := []byte(nil)
	if level > 0 {
		buf = v.peek(b)
		if buf != nil && v.garbage(buf) {
			hole("what is in %d are no block numbers", b)
			return
		}
	}
	if why := r.xattrsWrong(t.ino, level, k, b, t.shared.has(b)); why != "" {
		binary.LittleEndian.PutUint64(v.edit(at)[off:], 0)
		ino := k
		if r.nodes[k] == nil {
			ino = orphansIno
		}
		r.did(ino, "the extended attributes of inode %d go: %s", k, why)
		return
	}
	if !t.shared.has(b) && r.dropLocks(t.ino, level, k, b) { // the next round has what is shared
		binary.LittleEndian.PutUint64(v.edit(at)[off:], 0)
		return
	}
	if !r.taken.add(b) {
		other := r.owner[b]
		data := v.contents(b)
		if level > 0 || r.nodes[t.ino].ty == typeDir {
			data = v.peek(b)
		}
		c, ok := uint64(0), false
		if other != t.ino && t.budget > 0 && data != nil {
			c, ok = r.free()
		}
		if !ok {
			r.did(other, "its block %d is claimed by inode %d as well, where it becomes a hole", b, t.ino)
			hole("%d is in use by inode %d", b, other)
			return
		}
		t.budget--
		r.did(other, "its block %d is claimed by inode %d as well, which gets a copy", b, t.ino)
		r.did(t.ino, "block %d of the file (level %d) becomes a copy of %d, which is in use by inode %d: "+
			"one of the two files has contents of the other", k, level, b, other)
		v.dirty[c] = slices.Clone(data)
		binary.LittleEndian.PutUint64(v.edit(at)[off:], c)
		b = c
	}
	if t.shared.has(b) {
		r.owner[b] = t.ino
	}
	if level == 0 {
		t.blocks++
	}
	t.end = max(t.end, (k+1)*disk.BlockSize)
	if level == 0 {
		t.last = b
		if t.size != 0 && k == (t.size-1)/disk.BlockSize {
			t.final = b
		}
		return
	}
	if buf == nil {
		t.part = true
		return
	}
	for i := range uint64(layout.Fanout) {
		t.claim(b, int(8*i), level-1, k+i*width(level))
	}
}

// free takes a data block that nobody has or wants.
func (r *round) free() (b uint64, ok bool) {
	v := r.v
	for b = max(r.nextFree, v.data0); b < v.dataEnd; b++ {
		if r.wanted.has(b) || r.taken.has(b) {
			continue
		}
		if m := v.peek(v.bbm + b/pageBits); m != nil && m[b%pageBits/8]>>(b%8)&1 != 0 {
			continue
		}
		r.taken.add(b)
		r.nextFree = b + 1
		return b, true
	}
	return 0, false
}

// wholeBlocks is the size of the blocks that size bytes need.
func wholeBlocks(size uint64) uint64 {
	return (size + disk.BlockSize - 1) / disk.BlockSize * disk.BlockSize
}

// fit makes the size of a file fit its blocks.
func (t *tree) fit() {
	r, v := t.r, t.r.v
	n := v.inode(t.ino)
	ty := n.w(layout.Type)
	size, shrink := n.q(layout.Size), n.q(layout.Shrink)
	if t.end > wholeBlocks(max(size, shrink)) {
		switch {
		case n.w(layout.Flags)&flagOrphan != 0:
			r.fix64(t.ino, layout.Shrink, t.end, "blocks behind the end wait to be freed")
		case ty == typeLnk && t.end == disk.BlockSize:
			if b := v.contents(t.last); b != nil {
				size = uint64(slices.Index(append(slices.Clone(b[:maxSymlink]), 0), 0))
				r.fix64(t.ino, layout.Size, size, "the size becomes that of the target")
				t.final = t.last
			}
		default:
			size = t.end
			r.fix64(t.ino, layout.Size, min(size, maxSize),
				"the size becomes that of the blocks: where the file ends is not known")
		}
	}
	differs := size != 0 && size != t.end && n.q(layout.Shrink) == 0
	switch {
	case ty == typeDir && !t.part && differs && (size < t.end || size <= steady*disk.BlockSize):
		r.fix64(t.ino, layout.Size, t.end, "the size of the directory becomes that of its blocks")
	case ty == typeOrphans && size%disk.BlockSize != 0:
		r.fix64(t.ino, layout.Size, wholeBlocks(size), "the size of the file of extended attributes becomes whole blocks")
	case ty == typeDir && size%disk.BlockSize != 0:
		r.fix64(t.ino, layout.Size, wholeBlocks(size), "the size of the directory becomes whole blocks")
	case ty == typeLnk && n.w(layout.Links) != 0 && !t.part && (size == 0 || t.last == 0):
		r.fix32(t.ino, layout.Type, typeReg, "the target of the symbolic link is lost, it becomes an empty file")
		r.fix64(t.ino, layout.Size, 0, "the target of the symbolic link is lost, it becomes an empty file")
		r.nodes[t.ino].ty = typeReg
	}
	t.tail()
}

// tail makes the bytes behind the end of the file zeros. One that is not may have become so; if there are
// more, it is rather the size that is wrong.
func (t *tree) tail() {
	r, v := t.r, t.r.v
	n := v.inode(t.ino)
	size := n.q(layout.Size)
	b := t.final
	if size%disk.BlockSize == 0 || b == 0 || v.contents(b) == nil {
		return
	}
	rest := v.contents(b)[size%disk.BlockSize:]
	last, count := 0, 0
	for i, x := range rest {
		if x != 0 {
			last, count = i, count+1
		}
	}
	switch {
	case count == 0:
	case count > 1 && n.w(layout.Type) == typeReg && n.q(layout.Shrink) == 0:
		r.fix64(t.ino, layout.Size, size+uint64(last)+1, "the file becomes longer, as there are data behind its end")
	default:
		clear(v.edit(b)[size%disk.BlockSize:])
		r.did(t.ino, "the bytes behind the end of the file in block %d become zeros", b)
	}
}

// walk calls f for the data blocks of a sound tree, in the order of the file. It says whether all of
// them are known.
func (v *volume) walk(n inode, f func(k, b uint64)) (whole bool) {
	whole = true
	var down func(b uint64, level int, k uint64)
	down = func(b uint64, level int, k uint64) {
		switch {
		case b == 0:
		case level == 0:
			f(k, b)
		default:
			buf := v.peek(b)
			if buf == nil {
				whole = false
				return
			}
			for i := range uint64(layout.Fanout) {
				down(layout.Uint64(buf, int(8*i)), level-1, k+i*width(level))
			}
		}
	}
	pointers(func(off, level int, k uint64) { down(n.q(off), level, k) })
	return whole
}

// xattrsWrong says why block b, block k of the file ino (level 0: data), cannot stay there, if that is the file of
// extended attributes; shared: another file has it, too.
func (r *round) xattrsWrong(ino uint64, level int, k, b uint64, shared bool) string {
	if ino != orphansIno || level > 0 {
		return ""
	}
	if check.IsListBlock(k, r.v.ninode) {
		return r.listBlock(b, shared)
	}
	if k == orphansIno || k >= r.v.inodeEnd {
		return "it can have none"
	}
	data := r.v.contents(b)
	if data == nil {
		return "" // it may be readable another time, or accepted as it is
	}
	if wrong := check.XattrsWrong(data); wrong != "" {
		return "they are damaged, " + wrong
	}
	if !r.inodeLost(k) && (r.nodes[k] == nil || r.v.inode(k).q(layout.Generation) != layout.Uint64(data, 0)) {
		return "they are of a file that is gone"
	}
	return ""
}
