package dtxn

import (
	"fmt"

	"tansy/internal/gen/txn/places"
	"tansy/internal/runtime/dbytes"
)

// The objects of a volume, as the contract has them (verified/trusted/txn.s.dfy). What cannot do what it promises
// unwinds; what begins with Try returns an error instead, after which the transaction can only be aborted.

// TryReadInode is ReadInode.
func (t *Txn) TryReadInode(blkno, off uint64, excl bool) (*dbytes.Bytes, error) {
	if excl {
		t.owner = t.s.key(blkno, off)
	}
	st, b := t.s.places.ReadInode(t.t, places.INODES(), t.s.base+blkno, off, excl)
	return b, t.fail(st, places.INODES(), blkno, off, excl)
}

// TryReadBlock is ReadBlock.
func (t *Txn) TryReadBlock(blkno uint64, excl bool) (*dbytes.Blk, error) {
	st, b := t.s.places.ReadBlock(t.t, t.s.base+blkno, excl)
	return b, t.fail(st, places.BLOCKS(), blkno, 0, excl)
}

// TryReadBlocks is ReadBlocks.
func (t *Txn) TryReadBlocks(blkno, n uint64, p *dbytes.Pieces) error {
	st, at := t.s.places.ReadBlocks(t.t, t.s.base+blkno, n, p)
	return t.fail(st, places.BLOCKS(), at-t.s.base, 0, false)
}

// TryReadBit is ReadBit.
func (t *Txn) TryReadBit(blkno, off uint64, excl bool) (bool, error) {
	st, b := t.s.places.ReadBit(t.t, t.s.base+blkno, off, excl)
	t.lastKey, t.lastBit, t.lastOK = t.s.key(blkno, off), b, st == 0
	return b, t.fail(st, places.BITS(), blkno, off, excl)
}

// write refuses writes in a read-only transaction.
func (t *Txn) write() error {
	if t.readOnly {
		return t.refuse(ErrReadOnly)
	}
	return nil
}

// TryWriteInode is WriteInode.
func (t *Txn) TryWriteInode(blkno, off uint64, b *dbytes.Bytes) error {
	if err := t.write(); err != nil {
		return err
	}
	return t.fail(t.s.places.WriteInode(t.t, places.INODES(), t.s.base+blkno, off, b), places.INODES(), blkno, off, true)
}

// TryWriteBlock is WriteBlock.
func (t *Txn) TryWriteBlock(blkno uint64, b *dbytes.Bytes) error {
	if err := t.write(); err != nil {
		return err
	}
	return t.fail(t.s.places.WriteBlock(t.t, t.s.base+blkno, b), places.BLOCKS(), blkno, 0, true)
}

// TryWriteBit is WriteBit.
func (t *Txn) TryWriteBit(blkno, off uint64, b bool) error {
	if err := t.write(); err != nil {
		return err
	}
	k := t.s.key(blkno, off)
	for i, a := range t.s.alloc {
		if !a.has(blkno) {
			continue
		}
		// the allocator counts changes: what is the bit now?
		if !t.lastOK || t.lastKey != k {
			if _, err := t.TryReadBit(blkno, off, true); err != nil {
				return err
			}
		}
		t.bits[i] = append(t.bits[i], bitWrite{(blkno-a.start)*windowBits + off, t.lastBit, b})
	}
	t.lastOK = false
	return t.fail(t.s.places.WriteBit(t.t, t.s.base+blkno, off, b), places.BITS(), blkno, off, true)
}

// ReadInode returns a copy of the 256-byte object at bit offset off of blkno, which is the caller's up to Seen.
func (t *Txn) ReadInode(blkno, off uint64, excl bool) *dbytes.Bytes {
	b, err := t.TryReadInode(blkno, off, excl)
	t.check(err)
	if ok := t.s.layout.SmallOK; ok != nil && !ok(b) {
		t.check(fmt.Errorf("%w: the object at byte %d of block %d cannot be", ErrDamaged, off/8, blkno))
	}
	return b
}

// ReadBlock returns block blkno.
func (t *Txn) ReadBlock(blkno uint64, excl bool) *dbytes.Blk {
	b, err := t.TryReadBlock(blkno, excl)
	t.check(err)
	return b
}

// ReadBlocks adds the n blocks from blkno on to p.
func (t *Txn) ReadBlocks(blkno, n uint64, p *dbytes.Pieces) { t.check(t.TryReadBlocks(blkno, n, p)) }

// Copy returns a mutable copy of b, to be written or dropped before the transaction is over.
func (t *Txn) Copy(b *dbytes.Blk) *dbytes.Bytes { return t.hold.Copy(b) }

// ReadBit returns bit off of blkno.
func (t *Txn) ReadBit(blkno, off uint64, excl bool) bool {
	b, err := t.TryReadBit(blkno, off, excl)
	t.check(err)
	return b
}

// ReadSlot returns a copy of record i, which is nobody else's until the transaction ends.
func (t *Txn) ReadSlot(i uint64) *dbytes.Bytes {
	st, a, off, b := t.s.places.ReadRecord(t.t, i)
	t.check(t.fail(st, places.RECORDS(), a-t.s.base, off, true))
	return b
}

// WriteSlot makes record i a copy of b.
func (t *Txn) WriteSlot(i uint64, b *dbytes.Bytes) {
	t.check(t.write())
	st, a, off := t.s.places.WriteRecord(t.t, i, b)
	t.check(t.fail(st, places.RECORDS(), a-t.s.base, off, true))
}

// WriteInode writes a copy of b to the 256-byte object.
func (t *Txn) WriteInode(blkno, off uint64, b *dbytes.Bytes) {
	t.check(t.TryWriteInode(blkno, off, b))
}

// WriteBlock writes block blkno and takes b over: it is empty afterwards.
func (t *Txn) WriteBlock(blkno uint64, b *dbytes.Bytes) { t.check(t.TryWriteBlock(blkno, b)) }

// WriteBit sets bit off of blkno to b.
func (t *Txn) WriteBit(blkno, off uint64, b bool) { t.check(t.TryWriteBit(blkno, off, b)) }
