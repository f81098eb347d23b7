package dtxn

import (
	"errors"
	"fmt"
	"testing"

	"tansy/disk"
	"tansy/internal/gen/txn/places"
	"tansy/internal/runtime/dbytes"
	"tansy/journal"
)

// What is asked for where there is nothing of the kind is refused, by an error that names the block and the place, and
// nothing is locked; right beside it lies what is there.
func TestWild(t *testing.T) {
	l := layout
	l.Places = placesOf(region{data, size, places.BLOCKS()}, region{data - 2, data, places.RECORDS()},
		region{inodeTab, data - 2, places.INODES()}, region{blockMap, inodeTab, places.BITS()})
	s := NewMem(size, l)
	defer s.Close()
	small, whole := func() *dbytes.Bytes { return dbytes.NewBytes(256) }, func() *dbytes.Bytes { return dbytes.NewBytes(4096) }
	for _, k := range []struct {
		name        string
		first, last uint64
		read, write func(x *Txn, b uint64) error
	}{
		{"bit", blockMap, inodeTab - 1,
			func(x *Txn, b uint64) error { _, err := x.TryReadBit(b, 7, false); return err },
			func(x *Txn, b uint64) error { return x.TryWriteBit(b, 7, true) }},
		{"inode", inodeTab, data - 3,
			func(x *Txn, b uint64) error { _, err := x.TryReadInode(b, 2048, false); return err },
			func(x *Txn, b uint64) error { return x.TryWriteInode(b, 2048, small()) }},
		{"block", data, size - 1,
			func(x *Txn, b uint64) error { _, err := x.TryReadBlock(b, false); return err },
			func(x *Txn, b uint64) error { return x.TryWriteBlock(b, whole()) }},
	} {
		want := fmt.Sprintf("is not within %d to %d", k.first, k.last)
		for how, f := range map[string]func(x *Txn, b uint64) error{"read": k.read, "written": k.write} {
			for _, b := range []uint64{k.first, k.last} {
				x := s.Begin()
				if err := f(x, b); err != nil {
					t.Errorf("%s in block %d %s: %v", k.name, b, how, err)
				}
				x.Abort()
			}
			for _, b := range []uint64{
				0, blockMap - 1, blockMap, inodeTab, data - 3, data - 2, data - 1, data, size - 1, size, 1 << 47, 1<<49 + blockMap,
				1<<49 + data, ^uint64(0) - memLog,
			} {
				if k.first <= b && b <= k.last {
					continue
				}
				x := s.Begin()
				err := f(x, b)
				if !errors.Is(err, ErrDamaged) || err.Error() != fmt.Sprintf("%v: block %d %s", ErrDamaged, b, want) {
					t.Errorf("%s in block %d %s: %v", k.name, b, how, err)
				}
				if s.held() != 0 || x.t.Buffer.Len() != 0 {
					t.Errorf("%s in block %d %s: it was locked or written", k.name, b, how)
				}
				if err := x.Commit(true); !errors.Is(err, ErrDamaged) {
					t.Errorf("committed all the same: %v", err)
				}
			}
		}
	}
	// nor is there anything across objects
	for _, off := range []uint64{1, 2047, 32768, 1 << 63} {
		x := s.Begin()
		if _, err := x.TryReadInode(inodeTab, off, false); !errors.Is(err, ErrDamaged) {
			t.Errorf("an inode at bit %d: %v", off, err)
		}
		x.Abort()
	}
}

// Transactions are opened only over what the journal has: its own blocks are not among them, nor is what lies behind
// the device.
func TestForeignPlaces(t *testing.T) {
	d := disk.NewMem((memLog + 100) * disk.BlockSize)
	must(t, journal.Format(d, memParams))
	j, err := journal.Open(d, memParams, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	for _, c := range []struct {
		start, end uint64
		ok         bool
	}{
		{memLog, memLog + 100, true}, {memLog - 1, memLog + 1, false}, {0, 1, false}, {memLog + 99, memLog + 101, false},
		{1, 1, true}, {memLog, ^uint64(0), false},
	} {
		for _, w := range []uint32{places.BITS(), places.INODES(), places.RECORDS(), places.BLOCKS()} {
			_, err := New(j, Layout{Places: placesOf(region{memLog, memLog + 1, places.BLOCKS()}, region{c.start, c.end, w})})
			if (err == nil) != c.ok || err != nil && !errors.Is(err, ErrDamaged) {
				t.Errorf("blocks %d to %d: %v", c.start, c.end, err)
			}
		}
	}
}
