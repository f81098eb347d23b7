package dtxn

import (
	"fmt"

	"tansy/internal/extern/dbytes"
	"tansy/internal/gen/places"
)

// The methods below are those of the contract with an error instead of the
// unwinding. After an error the transaction can only be aborted.

// Kinds has what a place can hold, and makes lists of places (verified/txn/places.dfy).
var Kinds = places.Companion_Default___

// wild is the error for a block that does not hold what was asked for. Verified code asks for none such on a sound volume.
func (s *System) wild(what uint32, blkno uint64) error {
	start, end := s.places.First(what)
	return fmt.Errorf("%w: block %d is not within %d to %d", ErrDamaged, blkno, start-s.base, end-s.base-1)
}

// TryReadInode is ReadInode.
func (t *Txn) TryReadInode(blkno, off uint64, excl bool) (*dbytes.Bytes, error) {
	if excl {
		t.owner = t.s.key(blkno, off)
	}
	st, b := t.s.places.ReadInode(t.t, Kinds.INODES(), t.s.base+blkno, off, excl)
	return b, t.fail(st, Kinds.INODES(), blkno, off, excl)
}

// TryReadBlock is ReadBlock.
func (t *Txn) TryReadBlock(blkno uint64, excl bool) (*dbytes.Blk, error) {
	st, b := t.s.places.ReadBlock(t.t, t.s.base+blkno, excl)
	return b, t.fail(st, Kinds.BLOCKS(), blkno, 0, excl)
}

// TryReadBlocks is ReadBlocks.
func (t *Txn) TryReadBlocks(blkno, n uint64, p *dbytes.Pieces) error {
	st, at := t.s.places.ReadBlocks(t.t, t.s.base+blkno, n, p)
	return t.fail(st, Kinds.BLOCKS(), at-t.s.base, 0, false)
}

// TryReadBit is ReadBit.
func (t *Txn) TryReadBit(blkno, off uint64, excl bool) (bool, error) {
	st, b := t.s.places.ReadBit(t.t, t.s.base+blkno, off, excl)
	t.lastKey, t.lastBit, t.lastOK = t.s.key(blkno, off), b, st == 0
	return b, t.fail(st, Kinds.BITS(), blkno, off, excl)
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
	return t.fail(t.s.places.WriteInode(t.t, Kinds.INODES(), t.s.base+blkno, off, b), Kinds.INODES(), blkno, off, true)
}

// TryWriteBlock is WriteBlock.
func (t *Txn) TryWriteBlock(blkno uint64, b *dbytes.Bytes) error {
	if err := t.write(); err != nil {
		return err
	}
	return t.fail(t.s.places.WriteBlock(t.t, t.s.base+blkno, b), Kinds.BLOCKS(), blkno, 0, true)
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
	return t.fail(t.s.places.WriteBit(t.t, t.s.base+blkno, off, b), Kinds.BITS(), blkno, off, true)
}

// TryAllocHint is AllocHint.
func (t *Txn) TryAllocHint(which, near uint64) (x uint64, ok bool, err error) {
	switch which {
	case Exchange:
		which = Blocks
		x, ok, err = t.s.exchange(place{t.owner, near, t.block, t.placed})
	case Blocks:
		x, ok, err = t.s.hint(which, place{t.owner, near, onLine(t.block, t.leads), t.placed})
	default:
		x, ok, err = t.s.hint(which, place{near: near})
	}
	t.placed = t.placed && t.leads
	if err != nil {
		err = t.refuse(err)
	} else if ok {
		t.took[which] = append(t.took[which], x)
	}
	return x, ok, err
}
