package check

import (
	"maps"
	"slices"
)

// tableChunk is small, so that a few inodes far apart take little.
const tableChunk = 64

// states of an inode
const (
	stateTree     = 1 << iota // its block tree is damaged: not read again
	statePart                 // a directory of which not all entries are known
	stateListed               // on the orphan list, when it was walked
	stateKept                 // on the list of kept files, when it was walked
	stateReached              // a directory that leads to the root
	stateClimbing             // a directory on the path being climbed
)

// record is what the passes remember about an inode in use.
type record struct {
	parent  uint64
	nlink   uint32
	refs    uint32 // entries that name it
	subdirs uint32 // directories: entries that name directories
	ty      uint8  // 0: the inode is free
	flags   uint8
	state   uint8
}

// table holds the records. It takes memory only where there are inodes in use.
type table struct {
	n      uint64
	chunks map[uint64]*[tableChunk]record
}

func newTable(n uint64) *table {
	return &table{n, map[uint64]*[tableChunk]record{}}
}

func (t *table) make(ino uint64) *record {
	c := t.chunks[ino/tableChunk]
	if c == nil {
		c = new([tableChunk]record)
		t.chunks[ino/tableChunk] = c
	}
	return &c[ino%tableChunk]
}

// get is the record of an inode in use, or nil.
func (t *table) get(ino uint64) *record {
	c := t.chunks[ino/tableChunk]
	if ino >= t.n || c == nil || c[ino%tableChunk].ty == 0 {
		return nil
	}
	return &c[ino%tableChunk]
}

// each calls f for the inodes in use, in order.
func (t *table) each(f func(ino uint64, r *record) error) error {
	for _, k := range slices.Sorted(maps.Keys(t.chunks)) {
		for i := range t.chunks[k] {
			r := &t.chunks[k][i]
			if r.ty == 0 {
				continue
			}
			if err := f(k*tableChunk+uint64(i), r); err != nil {
				return err
			}
		}
	}
	return nil
}
