// Package dbuf is the Go behind verified/trusted/buf.s.dfy: the write buffer of a
// transaction, a map from keys to objects with an ascending walk.
package dbuf

import (
	"cmp"
	"slices"

	"tansy/internal/extern/dbytes"
)

// Buf is a write buffer. It belongs to one goroutine.
type Buf struct {
	objs  []object
	index map[uint64]int // positions in objs, when it is long
	order []entry        // objs by key, after Sort
	idle  [][]byte       // memory for values of 256 bytes
}

type entry struct {
	key uint64
	pos int
}

type object struct {
	key uint64
	blk *dbytes.Blk // a whole block
	p   []byte      // 256 bytes
	bit bool        // a bit, if blk and p are nil
}

// blockBits is the number of keys of a block: one for each bit (verified/txn/objects.dfy).
const blockBits = 32768

// indexFrom is the number of objects from which on a map finds them.
const indexFrom = 12

// maxIdle is the most values of 256 bytes of which the memory is kept.
const maxIdle = 16

// NewBuf returns an empty buffer.
func NewBuf() *Buf { return &Buf{} }

// Clear empties the buffer.
func (b *Buf) Clear() {
	if len(b.objs) >= indexFrom {
		clear(b.index)
	}
	for _, x := range b.objs[:min(len(b.objs), maxIdle)] {
		if x.p != nil && len(b.idle) < maxIdle {
			b.idle = append(b.idle, x.p)
		}
	}
	if cap(b.objs) > 4096 { // do not keep what one large transaction needed
		b.objs, b.index, b.order = nil, nil, nil
	}
	clear(b.objs)
	b.objs = b.objs[:0]
}

// Len is the number of objects.
func (b *Buf) Len() uint64 { return uint64(len(b.objs)) }

func (b *Buf) find(k uint64) *object {
	if len(b.objs) < indexFrom {
		for i := range b.objs {
			if b.objs[i].key == k {
				return &b.objs[i]
			}
		}
		return nil
	}
	if i, ok := b.index[k]; ok {
		return &b.objs[i]
	}
	return nil
}

// slot returns the object k, made if need be.
func (b *Buf) slot(k uint64) *object {
	if x := b.find(k); x != nil {
		return x
	}
	b.objs = append(b.objs, object{key: k})
	switch n := len(b.objs); {
	case n == indexFrom:
		b.reindex()
	case n > indexFrom:
		b.index[k] = n - 1
	}
	return &b.objs[len(b.objs)-1]
}

func (b *Buf) reindex() {
	if b.index == nil {
		b.index = make(map[uint64]int, 4*indexFrom)
	}
	for i := range b.objs {
		b.index[b.objs[i].key] = i
	}
}

// PutBlk makes the block v the value of k.
func (b *Buf) PutBlk(k uint64, v *dbytes.Blk) { *b.slot(k) = object{key: k, blk: v} }

// PutBytes makes a copy of v the value of k.
func (b *Buf) PutBytes(k uint64, v *dbytes.Bytes) {
	x := b.slot(k)
	p := x.p
	if n := len(b.idle) - 1; p == nil && n >= 0 {
		p, b.idle = b.idle[n], b.idle[:n]
	}
	*x = object{key: k, p: append(p[:0], v.Data...)}
}

// PutBit makes the bit v the value of k.
func (b *Buf) PutBit(k uint64, v bool) { *b.slot(k) = object{key: k, bit: v} }

// GetBlk returns the block at k, or nil.
func (b *Buf) GetBlk(k uint64) *dbytes.Blk {
	if x := b.find(k); x != nil {
		return x.blk
	}
	return nil
}

// GetBytes copies the bytes at k to v, if there are any.
func (b *Buf) GetBytes(k uint64, v *dbytes.Bytes) (found bool) {
	x := b.find(k)
	if x == nil {
		return false
	}
	copy(v.Data, x.p)
	return true
}

// GetBit returns the bit at k, if there is one.
func (b *Buf) GetBit(k uint64) (found, v bool) {
	if x := b.find(k); x != nil {
		return true, x.bit
	}
	return false, false
}

// Parts is the number of blocks that hold objects smaller than a block.
func (b *Buf) Parts() int {
	var room [64]uint64 // enough for most
	blks := room[:0]
	for i := range b.objs {
		if b.objs[i].blk != nil {
			continue
		}
		if a := b.objs[i].key / blockBits; len(blks) == 0 || blks[len(blks)-1] != a {
			blks = append(blks, a)
		}
	}
	slices.Sort(blks)
	return len(slices.Compact(blks))
}

// Sort puts the objects in ascending order of their keys, for KeyAt and the others.
func (b *Buf) Sort() {
	b.order = b.order[:0]
	for i := range b.objs {
		b.order = append(b.order, entry{b.objs[i].key, i})
	}
	slices.SortFunc(b.order, func(x, y entry) int { return cmp.Compare(x.key, y.key) })
}

func (b *Buf) at(i uint64) *object { return &b.objs[b.order[i].pos] }

// KeyAt is the key of the i-th object.
func (b *Buf) KeyAt(i uint64) uint64 { return b.order[i].key }

// BlkAt is the i-th object if it is a block, else nil.
func (b *Buf) BlkAt(i uint64) *dbytes.Blk { return b.at(i).blk }

// BitAt is the i-th object if it is a bit.
func (b *Buf) BitAt(i uint64) (is, v bool) {
	x := b.at(i)
	return x.blk == nil && x.p == nil, x.bit
}

// CopyAt copies the i-th object, of 256 bytes, to offset off of w.
func (b *Buf) CopyAt(i uint64, w *dbytes.Bytes, off uint64) { copy(w.Data[off:off+256], b.at(i).p) }
