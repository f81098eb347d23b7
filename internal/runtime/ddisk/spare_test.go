package ddisk

import (
	"errors"
	"slices"
	"testing"

	"tansy/disk"
	"tansy/internal/runtime/dbytes"
)

// logged is a device that notes what is discarded and what is written, or refuses to discard.
type logged struct {
	disk.Disk
	discarded, written []uint64
	err                error
}

func (l *logged) Discard(a, n uint64) error {
	if l.err != nil {
		return &disk.Error{Op: "discard", Block: a, Err: l.err}
	}
	for i := range n {
		l.discarded = append(l.discarded, a+i)
	}
	return disk.Discard(l.Disk, a, n)
}

func (l *logged) WriteAt(a uint64, bufs [][]byte) error {
	for i := range bufs {
		l.written = append(l.written, a+uint64(i))
	}
	return l.Disk.WriteAt(a, bufs)
}

func listOf(vs ...byte) *BList {
	l := &BList{}
	for _, v := range vs {
		l.Blks = append(l.Blks, block(v))
	}
	return l
}

// contents are the first bytes of the first n blocks, each of which is all of one byte.
func contents(t *testing.T, d *Disk, n uint64) (vs []byte) {
	t.Helper()
	ok, l := d.ReadRun(0, n)
	if !ok {
		t.Fatal(d.ReadErr())
	}
	for i := range n {
		v := l.Blks[i].Get(0)
		if string(l.Blks[i].Data()) != string(block(v).Data()) {
			t.Fatal("a block of several values")
		}
		vs = append(vs, v)
	}
	return vs
}

// Only zeros to blocks that are spare are discarded, and once; the contents are always what was written.
func TestSpare(t *testing.T) {
	under := &logged{Disk: disk.NewMem(10 * disk.BlockSize)}
	d := New(under)
	if !d.WriteRun(0, listOf(9, 9, 9, 9, 9, 9, 9, 9, 9, 9), 0, 10) {
		t.Fatal(d.Err())
	}
	under.written = nil
	d.Spare(2, 5)
	if !d.WriteRun(0, listOf(0, 0, 0, 0, 5, 0, 0, 0, 0, 0), 1, 9) { // blocks 0 to 8; block 3 gets the 5
		t.Fatal(d.Err())
	}
	if want := []uint64{2, 4, 5, 6}; !slices.Equal(under.discarded, want) {
		t.Errorf("discarded: %v, want %v", under.discarded, want)
	}
	if want := []uint64{0, 1, 3, 7, 8}; !slices.Equal(under.written, want) {
		t.Errorf("written: %v, want %v", under.written, want)
	}
	if got, want := contents(t, d, 10), []byte{0, 0, 0, 5, 0, 0, 0, 0, 0, 9}; !slices.Equal(got, want) {
		t.Errorf("contents %v, want %v", got, want)
	}
	if c := d.Counts(); c.Discards != 2 || c.DiscardedBlocks != 4 {
		t.Errorf("%d discards of %d blocks", c.Discards, c.DiscardedBlocks)
	}
	// what was written is not spare any more, whatever was written; nor what was taken back
	under.discarded = nil
	if !d.WriteRun(2, listOf(0, 0, 0, 0, 0), 0, 5) || under.discarded != nil {
		t.Errorf("discarded again: %v, %v", under.discarded, d.Err())
	}
	d.Spare(8, 2)
	d.Unspare()
	if !d.WriteRun(0, listOf(0, 0, 0, 0, 0, 0, 0, 0, 0, 0), 0, 10) || under.discarded != nil {
		t.Errorf("discarded %v, %v", under.discarded, d.Err())
	}
}

// A device that refuses gets zeros. If it says for good, it is not asked again.
func TestSpareRefused(t *testing.T) {
	for _, c := range []struct {
		err  error
		good bool
	}{{disk.ErrNoDiscard, true}, {disk.ErrNoRoom, false}} {
		under := &logged{Disk: disk.NewMem(4 * disk.BlockSize), err: c.err}
		d := New(under)
		for range 2 {
			d.Spare(0, 4)
			if !d.WriteRun(0, listOf(0, 0, 0), 0, 3) {
				t.Fatal(d.Err())
			}
			under.err = nil
		}
		if d.CannotSpare() != c.good || c.good == (len(under.discarded) > 0) {
			t.Errorf("%v: cannot %v, discarded %v", c.err, d.CannotSpare(), under.discarded)
		}
		want := uint64(3)
		if c.good {
			want = 6
		}
		if d.KeptBlocks() != want {
			t.Errorf("%v: %d blocks kept, want %d", c.err, d.KeptBlocks(), want)
		}
	}
}

// Any other error leaves contents that nobody knows: the device has failed.
func TestSpareFails(t *testing.T) {
	broken := errors.New("broken")
	d := New(&logged{Disk: disk.NewMem(4 * disk.BlockSize), err: broken})
	d.Spare(0, 4)
	if d.Write(1, dbytes.ZeroBlk()) || !errors.Is(d.Err(), broken) || d.Barrier() {
		t.Error(d.Err())
	}
}
