// Package dbytes is the Go behind verified/trusted/bytes.s.dfy: the byte buffers
// of the verified code.
//
// A Bytes is a mutable buffer with one owner. A Blk is a block of 4096 bytes that
// never changes once it is visible, so caches, transactions and the device may
// share it without locks or copies. Numbers in both are little-endian.
//
// The verified code proves its offsets to be in range. Go checks them too; a
// panic here is an error in the proof's assumptions, not in the caller's data.
package dbytes

import (
	"encoding/binary"
	"unsafe"
)

// BlkSize is the size of a Blk in bytes.
const BlkSize = 4096

// Bytes is a mutable buffer. Data is what the ghost field `data` stands for.
type Bytes struct {
	Data   []byte
	copies *copies // of a Source; else nil
}

// Blk is an immutable block. It is an array, not a slice, so that a pointer to it
// costs nothing beyond its 4096 bytes, which the garbage collector need not scan.
type Blk struct{ v [BlkSize]byte }

// NewBytes returns n zero bytes. The bytes of a block are an allocation of their
// own (exactly a size class of the allocator) so that Freeze need not copy them.
func NewBytes(n uint64) *Bytes {
	switch {
	case n == BlkSize:
		return &Bytes{Data: new(Blk).v[:]}
	case n <= smallSize:
		s := new(small)
		s.Data = s.memory[:n:n]
		return &s.Bytes
	}
	return &Bytes{Data: make([]byte, n)}
}

// small is a buffer with its memory: for inodes, one allocation in place of two.
type small struct {
	Bytes
	memory [smallSize]byte
}

const smallSize = 256

// Len is the number of bytes.
func (b *Bytes) Len() uint64 { return uint64(len(b.Data)) }

// Get is byte i.
func (b *Bytes) Get(i uint64) byte { return b.Data[i] }

// U64 is the number in the 8 bytes from off on.
func (b *Bytes) U64(off uint64) uint64 { return binary.LittleEndian.Uint64(b.Data[off:]) }

// U32 is the number in the 4 bytes from off on.
func (b *Bytes) U32(off uint64) uint32 { return binary.LittleEndian.Uint32(b.Data[off:]) }

// EqualAt says whether the bytes from off on begin with o.
func (b *Bytes) EqualAt(off uint64, o *Bytes) bool {
	return string(b.Data[off:off+uint64(len(o.Data))]) == string(o.Data)
}

// Set changes byte i.
func (b *Bytes) Set(i uint64, x byte) {
	b.Data[i] = x
}

// PutU64 stores x in the 8 bytes from off on.
func (b *Bytes) PutU64(off, x uint64) {
	binary.LittleEndian.PutUint64(b.Data[off:], x)
}

// PutU32 stores x in the 4 bytes from off on.
func (b *Bytes) PutU32(off uint64, x uint32) {
	binary.LittleEndian.PutUint32(b.Data[off:], x)
}

// CopyFrom copies n bytes of src, from so on, to dst.
func (b *Bytes) CopyFrom(dst uint64, src *Bytes, so, n uint64) {
	copy(b.Data[dst:dst+n], src.Data[so:so+n])
}

// CopyBlk copies n bytes of src, from so on, to dst.
func (b *Bytes) CopyBlk(dst uint64, src *Blk, so, n uint64) {
	copy(b.Data[dst:dst+n], src.v[so:so+n])
}

// Get is byte i.
func (b *Blk) Get(i uint64) byte { return b.v[i] }

// U64 is the number in the 8 bytes from off on.
func (b *Blk) U64(off uint64) uint64 { return binary.LittleEndian.Uint64(b.v[off:]) }

// U32 is the number in the 4 bytes from off on.
func (b *Blk) U32(off uint64) uint32 { return binary.LittleEndian.Uint32(b.v[off:]) }

// EqualAt says whether the bytes from off on begin with o.
func (b *Blk) EqualAt(off uint64, o *Bytes) bool {
	return string(b.v[off:off+uint64(len(o.Data))]) == string(o.Data)
}

// Thaw returns a mutable copy.
func (b *Blk) Thaw() *Bytes {
	c := new(Blk)
	*c = *b
	return &Bytes{Data: c.v[:]}
}

// Data is the block's memory, for the Go below and above the verified code. It
// must not be written to.
func (b *Blk) Data() []byte { return b.v[:] }

// BlkOf makes a block of the 4096 bytes of data without copying them. The caller
// must not write to data any more.
func BlkOf(data []byte) *Blk {
	return (*Blk)(unsafe.Pointer((*[BlkSize]byte)(data)))
}

var zero Blk

// ZeroBlk is the block of zeros: always the same one, so that == tells a hole from
// other blocks.
func ZeroBlk() *Blk { return &zero }

// Freeze makes a block of the 4096 bytes of b without copying them, and takes them
// away from b.
func Freeze(b *Bytes) *Blk {
	k := BlkOf(b.Data)
	b.Data = nil
	return k
}
