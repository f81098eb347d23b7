package background

import (
	"context"
	"fmt"
	"slices"

	"tansy/internal/gen/fs/format/volumegeometry"
	"tansy/internal/layout"
	"tansy/internal/runtime/dtxn"
)

// An owned block: what it is, and whose.
type owned struct {
	block  uint64
	what   string
	inos   []uint64 // whose it is, as far as is known
	offset uint64   // in the file, of what it holds, or has the block numbers of
	at     bool     // offset means something
	paths  []string
}

// attrs are what there is to say of it, for a log.
func (o *owned) attrs() (a []any) {
	if len(o.inos) == 1 {
		a = append(a, "inode", o.inos[0])
	}
	if o.at {
		a = append(a, "offset", o.offset)
	}
	for _, p := range o.paths[:min(len(o.paths), maxPaths)] {
		a = append(a, "file", p)
	}
	if n := len(o.paths) - maxPaths; n > 0 {
		a = append(a, "more_files", n)
	}
	return a
}

const (
	maxPaths = 4    // of one block, in the log
	maxDepth = 1000 // of directories whose names are looked for
)

// Blocks are those of a volume.
type Blocks interface {
	// Committed returns a block as last committed, beside all transactions.
	Committed(b uint64) ([]byte, error)
	// End is where the blocks or inodes end that the volume has so far (dtxn.Blocks, dtxn.Inodes).
	End(which uint64) uint64
}

// A finder looks for owners. It reads what is committed, beside all transactions: what is changed meanwhile it may
// find half. What cannot be read it passes over.
type finder struct {
	ctx context.Context
	v   Blocks
	geo volumegeometry.Geometry
	buf map[uint64][]byte // the block of inodes read last
}

// The types of files that blocks are told apart by (RFC 1813, ftype3).
const (
	directory = 2
	symlink   = 5
)

// owners says what blocks are, whose, and what the files are called: what that takes is to read the inodes in use, and
// for blocks of files all indirect blocks and directories, until everything is found. Its end is nothing if ctx ends
// first.
func owners(ctx context.Context, v Blocks, g volumegeometry.Geometry, blocks []uint64) []*owned {
	f := &finder{ctx: ctx, v: v, geo: g}
	var all []*owned
	data := map[uint64]*owned{}
	slices.Sort(blocks)
	for _, b := range slices.Compact(blocks) {
		o := &owned{block: b}
		all = append(all, o)
		switch {
		case b < g.InodeBitmap():
			o.what = "a page of the tree of codes"
		case b < g.BlockBitmap():
			o.what = "of the inode bitmap"
		case b < g.InodeTable():
			o.what = "of the block bitmap"
		case b >= g.Slot0() && b < g.Data0():
			o.what = "records of replies"
		case b < g.Data0():
			first := (b - g.InodeTable()) * layout.InodesBlock
			o.what = fmt.Sprintf("inodes %d to %d", first, first+layout.InodesBlock-1)
			f.inUse(first, first+layout.InodesBlock, func(ino uint64) bool { o.inos = append(o.inos, ino); return true })
		default:
			o.what = "in use by no file any more"
			data[b] = o
		}
	}
	f.blocks(data)
	wanted := map[uint64][]string{}
	for _, o := range all {
		for _, ino := range o.inos {
			wanted[ino] = nil
		}
	}
	f.names(wanted)
	if ctx.Err() != nil {
		return nil
	}
	for _, o := range all {
		for _, ino := range o.inos {
			o.paths = append(o.paths, wanted[ino]...)
		}
	}
	return all
}

// read returns block b, or nil.
func (f *finder) read(b uint64) []byte {
	if f.ctx.Err() != nil {
		return nil
	}
	data, err := f.v.Committed(b)
	if err != nil {
		return nil
	}
	return data
}

// inUse calls visit for the inodes of [from, to) that are in use, until it returns false. Where the bitmap cannot be
// read it calls it for all.
func (f *finder) inUse(from, to uint64, visit func(ino uint64) bool) {
	to = min(to, f.v.End(dtxn.Inodes))
	for ino := max(from, layout.RootInode); ino < to; {
		bitmap := f.read(f.geo.InodeBitmap() + ino/layout.BitsBlock)
		for end := min(to, (ino/layout.BitsBlock+1)*layout.BitsBlock); ino < end; ino++ {
			if f.ctx.Err() != nil {
				return
			}
			if bitmap != nil && bitmap[ino%layout.BitsBlock/8]>>(ino%8)&1 == 0 || ino == layout.OrphansInode {
				continue
			}
			if !visit(ino) {
				return
			}
		}
	}
}

// inode returns an inode, or nil.
func (f *finder) inode(ino uint64) []byte {
	b := f.geo.InodeTable() + ino/layout.InodesBlock
	if _, ok := f.buf[b]; !ok {
		f.buf = map[uint64][]byte{b: f.read(b)}
	}
	if f.buf[b] == nil {
		return nil
	}
	return f.buf[b][ino%layout.InodesBlock*layout.InodeSize:][:layout.InodeSize]
}

// blocks looks for the files that have the blocks in wanted.
func (f *finder) blocks(wanted map[uint64]*owned) {
	left := len(wanted)
	if left == 0 {
		return
	}
	f.inUse(0, f.v.End(dtxn.Inodes), func(ino uint64) bool {
		p := f.inode(ino)
		if p == nil {
			return true
		}
		f.walk(p, func(b uint64, level int, k uint64) bool {
			o := wanted[b]
			if o == nil || o.inos != nil {
				return true
			}
			left--
			o.inos, o.offset, o.at = []uint64{ino}, k*blockSize, true
			switch ty := layout.Uint32(p, layout.Type); {
			case level > 0:
				o.what = "block numbers of a file, from an offset on"
			case ty == directory:
				o.what = "names in a directory"
			case ty == symlink:
				o.what = "the target of a symbolic link"
			default:
				o.what = "contents of a file"
			}
			return level > 0
		})
		return left > 0
	})
}

// walk calls visit for the blocks of an inode: level 0 has data, and k is the place in the file of the first that is
// below. Below an indirect block it goes on if visit returns true.
func (f *finder) walk(inode []byte, visit func(b uint64, level int, k uint64) bool) {
	var down func(b uint64, level int, k, width uint64)
	down = func(b uint64, level int, k, width uint64) {
		if b < f.geo.Data0() || b >= f.v.End(dtxn.Blocks) || !visit(b, level, k) || level == 0 {
			return
		}
		for i, p := 0, f.read(b); i < len(p); i += 8 {
			down(layout.Uint64(p, i), level-1, k+uint64(i/8)*width, width/layout.Fanout)
		}
	}
	k, width := uint64(layout.DirectCount), uint64(1)
	for i := range uint64(layout.PointerCount) {
		b := layout.Uint64(inode, int(layout.Pointers+8*i))
		if i < layout.DirectCount {
			down(b, 0, i, 0)
			continue
		}
		down(b, int(i-layout.DirectCount)+1, k, width)
		width *= layout.Fanout
		k += width
	}
}

// names looks for the paths of the files in wanted.
func (f *finder) names(wanted map[uint64][]string) {
	left := len(wanted)
	paths := map[uint64]string{layout.RootInode: ""} // of directories
	if _, ok := wanted[layout.RootInode]; ok {
		wanted[layout.RootInode] = []string{"/"}
		left--
	}
	if left == 0 {
		return
	}
	f.inUse(0, f.v.End(dtxn.Inodes), func(dir uint64) bool {
		f.entries(dir, func(ino uint64, name string) bool {
			if found, ok := wanted[ino]; ok && found == nil {
				wanted[ino] = []string{f.path(dir, paths, 0) + "/" + name}
				left--
			}
			return left > 0
		})
		return left > 0
	})
}

// path is the path of a directory, which knows its parent.
func (f *finder) path(dir uint64, paths map[uint64]string, depth int) string {
	if s, ok := paths[dir]; ok {
		return s
	}
	s := fmt.Sprintf("(directory %d)", dir)
	if p := f.inode(dir); p != nil && depth < maxDepth {
		parent := layout.Uint64(p, layout.Parent)
		f.entries(parent, func(ino uint64, name string) bool {
			if ino == dir {
				s = f.path(parent, paths, depth+1) + "/" + name
			}
			return ino != dir
		})
	}
	paths[dir] = s
	return s
}

// entries calls visit for the entries of a directory, until it returns false. An inode that is none has none.
func (f *finder) entries(dir uint64, visit func(ino uint64, name string) bool) {
	p := f.inode(dir)
	if p == nil || layout.Uint32(p, layout.Type) != directory {
		return
	}
	more := true
	f.walk(slices.Clone(p), func(b uint64, level int, k uint64) bool {
		if level > 0 || !more {
			return more
		}
		size, longest := layout.Slot(k)
		block := f.read(b)
		for off := 0; off < len(block) && more; off += size {
			slot := block[off : off+size]
			if ino, length, _ := layout.Entry(slot); ino != 0 {
				more = visit(ino, string(layout.Name(slot, length, longest)))
			}
		}
		return true
	})
}
