package dtxn

import (
	"fmt"

	"tansy/internal/extern/dbytes"
)

// The methods below are those of the contract with an error instead of the
// unwinding. After an error the transaction can only be aborted.

// inside refuses a block outside of the region r. Verified code asks for none on a
// sound volume; on a damaged one, a wild pointer must not reach the superblock or the log.
func (t *Txn) inside(r Region, blkno uint64) error {
	if blkno-r.Start < r.End-r.Start || r.End == 0 {
		return nil
	}
	t.failed = fmt.Errorf("%w: block %d is not within %d to %d", ErrDamaged, blkno, r.Start, r.End-1)
	return t.failed
}

// TryReadInode is ReadInode.
func (t *Txn) TryReadInode(blkno, off uint64, excl bool) (*dbytes.Bytes, error) {
	if err := t.inside(t.s.layout.Small, blkno); err != nil {
		return nil, err
	}
	st, b := t.t.ReadInode(t.s.base+blkno, off, excl)
	return b, t.fail(st, t.s.key(blkno, off), excl)
}

// TryReadBlock is ReadBlock.
func (t *Txn) TryReadBlock(blkno uint64, excl bool) (*dbytes.Blk, error) {
	if err := t.inside(t.s.layout.Whole, blkno); err != nil {
		return nil, err
	}
	st, b := t.t.ReadBlock(t.s.base+blkno, excl)
	return b, t.fail(st, t.s.key(blkno, 0), excl)
}

// TryReadBit is ReadBit.
func (t *Txn) TryReadBit(blkno, off uint64, excl bool) (bool, error) {
	if err := t.inside(t.s.layout.Bits, blkno); err != nil {
		return false, err
	}
	k := t.s.key(blkno, off)
	st, b := t.t.ReadBit(t.s.base+blkno, off, excl)
	t.lastKey, t.lastBit, t.lastOK = k, b, st == 0
	return b, t.fail(st, k, excl)
}

// write refuses writes in a read-only transaction, and outside of the region r.
func (t *Txn) write(r Region, blkno uint64) error {
	if t.readOnly {
		t.failed = ErrReadOnly
		return ErrReadOnly
	}
	return t.inside(r, blkno)
}

// TryWriteInode is WriteInode.
func (t *Txn) TryWriteInode(blkno, off uint64, b *dbytes.Bytes) error {
	if err := t.write(t.s.layout.Small, blkno); err != nil {
		return err
	}
	return t.fail(t.t.WriteInode(t.s.base+blkno, off, b), t.s.key(blkno, off), true)
}

// TryWriteBlock is WriteBlock.
func (t *Txn) TryWriteBlock(blkno uint64, b *dbytes.Bytes) error {
	if err := t.write(t.s.layout.Whole, blkno); err != nil {
		return err
	}
	return t.fail(t.t.WriteBlock(t.s.base+blkno, b), t.s.key(blkno, 0), true)
}

// TryWriteBit is WriteBit.
func (t *Txn) TryWriteBit(blkno, off uint64, b bool) error {
	if err := t.write(t.s.layout.Bits, blkno); err != nil {
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
	return t.fail(t.t.WriteBit(t.s.base+blkno, off, b), k, true)
}

// TryAllocHint is AllocHint.
func (t *Txn) TryAllocHint(which, near uint64) (x uint64, ok bool, err error) {
	x, ok, err = t.s.hint(which, near)
	if err != nil {
		t.failed = err
	} else if ok {
		t.took[which] = append(t.took[which], x)
	}
	return x, ok, err
}
