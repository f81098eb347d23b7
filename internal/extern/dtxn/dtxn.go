// Package dtxn is the Go behind verified/trusted/txn.s.dfy: transactions over
// the objects of a volume, as the verified file system sees them.
package dtxn

import (
	"sync"

	"tansy/internal/extern/dbytes"
)

// Which bitmap a hint is about.
const (
	Blocks = 0
	Inodes = 1
)

// A Bitmap says where an allocation bitmap lies and which of its bits may be
// handed out: [First, Limit). Bit i is bit i%32768 of block Start+i/32768.
type Bitmap struct{ Start, First, Limit uint64 }

// Layout tells the transaction system about the volume: its allocation bitmaps,
// indexed by Blocks and Inodes.
type Layout struct{ Maps [2]Bitmap }

// Jrnl is the ghost state of a volume; nothing at run time.
type Jrnl struct{}

// System is the transactions of one volume.
type System struct {
	alloc  [2]*alloc
	mu     sync.Mutex
	blocks map[uint64]*dbytes.Blk
}

// NewMem returns a system on an empty volume in memory, for tests.
func NewMem(size uint64, l Layout) *System {
	s := &System{blocks: map[uint64]*dbytes.Blk{}}
	for i := range s.alloc {
		s.alloc[i] = newAlloc(l.Maps[i], func(b uint64) ([]byte, error) { return s.block(b).Data(), nil })
	}
	return s
}

// Close stops the system.
func (s *System) Close() error { return nil }

func (s *System) block(b uint64) *dbytes.Blk {
	if p := s.blocks[b]; p != nil {
		return p
	}
	return dbytes.ZeroBlk()
}

// Free returns how many clear bits the bitmap has: free blocks or inodes.
func (s *System) Free(which uint64) (uint64, error) { return s.alloc[which].count() }

// Flush makes everything committed so far durable.
func (s *System) Flush() error { return nil }

// Txn is a transaction. It belongs to one goroutine.
type Txn struct {
	s    *System
	buf  map[uint64][]byte
	bit  map[uint64]bool
	took [2][]uint64
	bits [2][]bitWrite
}

// Begin starts a transaction, to be ended by Commit or Abort.
func (s *System) Begin() *Txn {
	s.mu.Lock()
	return &Txn{s: s, buf: map[uint64][]byte{}, bit: map[uint64]bool{}}
}

// Run runs f in a transaction, again and again while it conflicts with others,
// so f must have no other effect than on the transaction. When f returns nil the
// transaction is committed, else aborted, and Run returns f's error. A stable
// transaction is durable when Run returns nil.
func (s *System) Run(stable, readOnly bool, f func(*Txn) error) error {
	t := s.Begin()
	defer func() {
		if t.s != nil {
			t.Abort()
		}
	}()
	if err := f(t); err != nil {
		return err
	}
	return t.Commit(stable)
}

// Abort ends the transaction without effect.
func (t *Txn) Abort() {
	for i := range t.took {
		t.s.alloc[i].done(t.took[i], nil)
	}
	t.s.mu.Unlock()
	t.s = nil
}

// Commit ends the transaction: all its writes take effect at once.
func (t *Txn) Commit(stable bool) error {
	for a := range t.s.alloc {
		t.s.alloc[a].gate.RLock()
	}
	for k, p := range t.buf {
		b, off := k>>15, k&32767
		n := t.s.block(b).Thaw()
		copy(n.Data[off/8:], p)
		t.s.blocks[b] = dbytes.Freeze(n)
	}
	for k, v := range t.bit {
		b, off := k>>15, k&32767
		n := t.s.block(b).Thaw()
		old := n.Data[off/8]>>(off%8)&1 == 1
		n.Data[off/8] &^= 1 << (off % 8)
		if v {
			n.Data[off/8] |= 1 << (off % 8)
		}
		t.s.blocks[b] = dbytes.Freeze(n)
		for i, a := range t.s.alloc {
			if a.has(b) {
				t.bits[i] = append(t.bits[i], bitWrite{(b-a.start)*windowBits + off, old, v})
			}
		}
	}
	for i := range t.took {
		t.s.alloc[i].done(t.took[i], t.bits[i])
		t.s.alloc[i].gate.RUnlock()
	}
	t.s.mu.Unlock()
	t.s = nil
	return nil
}

// ReadInode returns a copy of the 256-byte object at bit offset off of blkno.
func (t *Txn) ReadInode(blkno, off uint64, excl bool) *dbytes.Bytes {
	b := dbytes.NewBytes(256)
	if p, ok := t.buf[blkno<<15|off]; ok {
		copy(b.Data, p)
	} else {
		copy(b.Data, t.s.block(blkno).Data()[off/8:])
	}
	return b
}

// ReadBlock returns block blkno.
func (t *Txn) ReadBlock(blkno uint64, excl bool) *dbytes.Blk {
	if p, ok := t.buf[blkno<<15]; ok {
		return dbytes.BlkOf(p)
	}
	return t.s.block(blkno)
}

// ReadBit returns bit off of blkno.
func (t *Txn) ReadBit(blkno, off uint64, excl bool) bool {
	if v, ok := t.bit[blkno<<15|off]; ok {
		return v
	}
	return t.s.block(blkno).Get(off/8)>>(off%8)&1 == 1
}

// WriteInode writes a copy of b to the 256-byte object.
func (t *Txn) WriteInode(blkno, off uint64, b *dbytes.Bytes) {
	t.buf[blkno<<15|off] = append([]byte(nil), b.Data...)
}

// WriteBlock writes block blkno and takes b over: it is empty afterwards.
func (t *Txn) WriteBlock(blkno uint64, b *dbytes.Bytes) {
	t.buf[blkno<<15] = b.Data
	b.Data = nil
}

// WriteBit sets bit off of blkno to b.
func (t *Txn) WriteBit(blkno, off uint64, b bool) { t.bit[blkno<<15|off] = b }

// AllocHint proposes a block or inode that is free, near the given one.
func (t *Txn) AllocHint(which, near uint64) (bool, uint64) {
	x, ok, _ := t.s.alloc[which].take(near)
	if ok {
		t.took[which] = append(t.took[which], x)
	}
	return ok, x
}

// FreeHint gives a proposal back.
func (t *Txn) FreeHint(which, x uint64) {
	for i, y := range t.took[which] {
		if x == y {
			n := len(t.took[which]) - 1
			t.took[which][i] = t.took[which][n]
			t.took[which] = t.took[which][:n]
			t.s.alloc[which].done([]uint64{x}, nil)
			return
		}
	}
}
