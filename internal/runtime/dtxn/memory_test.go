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

// TestCopiesOutliveAdmit: what a transaction copied to change it is still so when it commits, which is after Admit.
func TestCopiesOutliveAdmit(t *testing.T) {
	poison(t)
	s := newSystem(t)
	x := s.Begin()
	c := x.Copy(x.ReadBlock(data, true))
	c.Data[0] = 1
	if !x.Admit() {
		t.Fatal("not admitted")
	}
	if c.Data[0] != 1 || c.Data[1] != 0 {
		t.Errorf("it is spoiled: %x...", c.Data[:2])
	}
	x.Abort()
}

// poison has memory that may be used again spoiled up to the end of the test. With the race detector it is anyway, and
// nothing is written, which that would find.
func poison(t *testing.T) {
	if !dbytes.Poison {
		dbytes.Poison = true
		t.Cleanup(func() { dbytes.Poison = false })
	}
}
