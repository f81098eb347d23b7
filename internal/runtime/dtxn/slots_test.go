package dtxn

import (
	"bytes"
	"errors"
	"sync"
	"testing"

	"tansy/internal/gen/txn/places"
	"tansy/internal/runtime/dbytes"
)

// Records are what was last written to them and committed, each by itself; whoever reads one has it until the
// transaction ends; they change together with the other objects, or not at all; and they lie nowhere else.
func TestSlots(t *testing.T) {
	random := seeded(t)
	l := layout
	l.Places = placesOf(region{data - 2, data, places.RECORDS()}, region{inodeTab, data - 2, places.INODES()})
	s := NewMem(size, l)
	defer s.Close()
	const slotBytes, slots, rounds, workers = 256, 2 * 16, 200, 4
	read := func(x *Txn, i uint64) byte {
		b := x.ReadSlot(i)
		if len(b.Data) != slotBytes || !bytes.Equal(b.Data, bytes.Repeat(b.Data[:1], slotBytes)) {
			t.Errorf("record %d: %x", i, b.Data)
		}
		v := b.Data[0]
		b.Data[0]++ // it is the caller's
		return v
	}
	write := func(x *Txn, i uint64, v byte) {
		b := &dbytes.Bytes{Data: bytes.Repeat([]byte{v}, slotBytes)}
		x.WriteSlot(i, b)
		b.Data[0]++ // so is this
	}
	abort := errors.New("abort")
	var all sync.WaitGroup
	for w := range workers {
		r := random(w)
		all.Go(func() {
			for range rounds {
				i, k := r.Uint64N(slots), r.Uint64N(slots)
				fails := r.IntN(4) == 0
				err := s.Run(false, false, func(x *Txn) error {
					a := read(x, i)
					write(x, i, a+1)
					b := read(x, k)
					write(x, k, b-1)
					blkno, off := inodeAt(5)
					ino := x.ReadInode(blkno, off, true)
					ino.Data[0]++
					x.WriteInode(blkno, off, ino)
					if fails {
						return abort
					}
					return nil
				})
				if fails != errors.Is(err, abort) || !fails && err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	sum := byte(0)
	must(t, s.Run(false, true, func(x *Txn) error {
		for i := range uint64(slots) {
			sum += read(x, i)
		}
		return nil
	}))
	if sum != 0 {
		t.Errorf("the records add up to %d", sum)
	}
	if err := s.Run(false, false, func(x *Txn) error { x.ReadSlot(slots); return nil }); !errors.Is(err, ErrDamaged) {
		t.Errorf("a record beyond the last: %v", err)
	}
	if err := s.Run(false, false, func(x *Txn) error { x.ReadInode(data-1, 0, false); return nil }); !errors.Is(err, ErrDamaged) {
		t.Errorf("a record as an inode: %v", err)
	}
	if err := s.Run(false, true, func(x *Txn) error { write(x, 0, 1); return nil }); !errors.Is(err, ErrReadOnly) {
		t.Errorf("a record written in a transaction that reads: %v", err)
	}
}
