package dtxn

import (
	"bytes"
	"testing"

	"tansy/internal/runtime/dbytes"
)

// TestSeenInodes: an inode that a transaction has read is the caller's, also when that is over and others read more,
// unless he says that he has seen it.
func TestSeenInodes(t *testing.T) {
	poison(t)
	s := newSystem(t)
	read := func(seen bool, n int) (all []*dbytes.Bytes) {
		must(t, s.Run(false, true, func(x *Txn) error {
			for i := range n {
				blkno, off := inodeAt(uint64(i))
				all = append(all, x.ReadInode(blkno, off, false))
			}
			if seen {
				x.Seen()
			}
			return nil
		}))
		return all
	}
	zero := make([]byte, 256)
	kept := read(false, 20)
	for i, b := range kept {
		b.Data[0] = byte(i)
	}
	for range 10 {
		if b := read(true, 1)[0]; b.Data != nil {
			t.Error("what was seen is not spoiled")
		}
		read(false, 3)
	}
	for i, b := range kept {
		if b.Data[0] != byte(i) || !bytes.Equal(b.Data[1:], zero[1:]) {
			t.Errorf("inode %d, which somebody sees, is spoiled", i)
		}
	}
}

// TestCopiesOutliveTheCommit: what a transaction copied to change it is still so when it commits, which is after
// what it has only looked at was given back.
func TestCopiesOutliveTheCommit(t *testing.T) {
	poison(t)
	s := newSystem(t)
	must(t, s.Run(false, false, func(x *Txn) error {
		c := x.Copy(x.ReadBlock(data, true))
		c.Data[0] = 1
		x.WriteBlock(data, c)
		return nil
	}))
	must(t, s.Run(false, true, func(x *Txn) error {
		if b := x.ReadBlock(data, false); b.Get(0) != 1 || b.Get(1) != 0 {
			t.Errorf("it is spoiled: %x, %x, ...", b.Get(0), b.Get(1))
		}
		return nil
	}))
}

// poison has memory that may be used again spoiled up to the end of the test. With the race detector it is anyway, and
// nothing is written, which that would find.
func poison(t *testing.T) {
	if !dbytes.Poison {
		dbytes.Poison = true
		t.Cleanup(func() { dbytes.Poison = false })
	}
}
