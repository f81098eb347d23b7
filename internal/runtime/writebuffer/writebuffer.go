// Package writebuffer is the Go behind verified/trusted/writebuffer.s.dfy: objects with their keys, in places.
package writebuffer

import (
	"slices"

	"tansy/internal/runtime/dbytes"
)

// Buf is an array of objects. It belongs to one goroutine.
type Buf struct {
	places []place
	objs   []object // in the order in which they came, so that a place is little to move
	idle   [][]byte // memory for values of 256 bytes
}

type place struct {
	key uint64
	obj int // index in objs
}

type object struct {
	blk *dbytes.Blk // a whole block
	p   []byte      // 256 bytes
	bit bool        // a bit, if blk and p are nil
}

// blockBits is the number of keys of a block: one for each bit (verified/txn/objects.dfy).
const blockBits = 32768

// maxIdle is the most values of 256 bytes of which the memory is kept.
const maxIdle = 16

// NewBuf returns an empty one.
func NewBuf() *Buf { return &Buf{} }

// Clear empties it.
func (b *Buf) Clear() {
	for i := 0; i < len(b.objs) && len(b.idle) < maxIdle; i++ {
		if p := b.objs[i].p; p != nil {
			b.idle = append(b.idle, p)
		}
	}
	if cap(b.objs) > 4096 { // do not keep what one large transaction needed
		b.objs, b.places = nil, nil
	}
	clear(b.objs)
	b.objs, b.places = b.objs[:0], b.places[:0]
}

// Len is the number of objects.
func (b *Buf) Len() uint64 { return uint64(len(b.places)) }

// Add makes place i, for key k, before those that are there from i on.
func (b *Buf) Add(i, k uint64) {
	b.places = slices.Insert(b.places, int(i), place{k, len(b.objs)})
	b.objs = append(b.objs, object{})
}

func (b *Buf) at(i uint64) *object { return &b.objs[b.places[i].obj] }

// SetBlk makes the block v the i-th object.
func (b *Buf) SetBlk(i uint64, v *dbytes.Blk) { *b.at(i) = object{blk: v} }

// SetBytes makes a copy of v the i-th object.
func (b *Buf) SetBytes(i uint64, v *dbytes.Bytes) {
	x := b.at(i)
	p := x.p
	if n := len(b.idle) - 1; p == nil && n >= 0 {
		p, b.idle = b.idle[n], b.idle[:n]
	}
	*x = object{p: append(p[:0], v.Data...)}
}

// SetBit makes the bit v the i-th object.
func (b *Buf) SetBit(i uint64, v bool) { *b.at(i) = object{bit: v} }

// KeyAt is the key of the i-th object.
func (b *Buf) KeyAt(i uint64) uint64 { return b.places[i].key }

// BlkAt is the i-th object if it is a block, else nil.
func (b *Buf) BlkAt(i uint64) *dbytes.Blk { return b.at(i).blk }

// BitAt is the i-th object if it is a bit.
func (b *Buf) BitAt(i uint64) (is, v bool) {
	x := b.at(i)
	return x.blk == nil && x.p == nil, x.bit
}

// CopyAt copies the i-th object, of 256 bytes, to offset off of w.
func (b *Buf) CopyAt(i uint64, w *dbytes.Bytes, off uint64) { copy(w.Data[off:off+256], b.at(i).p) }

// Parts is the number of blocks that hold objects smaller than a block. The keys ascend.
func (b *Buf) Parts() (n int) {
	last := ^uint64(0)
	for _, x := range b.places {
		if a := x.key / blockBits; a != last && b.objs[x.obj].blk == nil {
			n, last = n+1, a
		}
	}
	return n
}
