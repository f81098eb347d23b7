package disk

import (
	"errors"
	"os"
	"slices"
	"testing"
)

// everything is a disk with all that one may have besides, which says what it is asked for.
type everything struct {
	Disk
	asked []string
}

func (d *everything) ask(what string) { d.asked = append(d.asked, what) }

func (d *everything) Forget(a, n uint64)           { d.ask("forget") }
func (d *everything) Push(a, n uint64, wait bool)  { d.ask("push") }
func (d *everything) BarrierFollows(a, end uint64) { d.ask("barrier follows") }
func (d *everything) Discard(a, n uint64) error    { d.ask("discard"); return nil }
func (d *everything) Host() Host                   { d.ask("host"); return nil }
func (d *everything) NextData(a uint64) (uint64, error) {
	d.ask("next data")
	return a, nil
}

// What wraps a disk in service keeps all that the disk has besides. (A Fault hides holes: every block is to be read.)
func TestWrappersKeepEverything(t *testing.T) {
	for name, wrap := range map[string]func(Disk) Disk{
		"Prefix": func(d Disk) Disk { return NewPrefix(d, 5) },
		"Stats":  func(d Disk) Disk { return NewStats(d) },
	} {
		in := &everything{Disk: NewMem(10 * BlockSize)}
		d := wrap(in)
		Forget(d, 0, 1)
		Push(d, 0, 1, false)
		BarrierFollows(d, 0, 1)
		HostOf(d)
		if err := Discard(d, 0, 1); err != nil {
			t.Errorf("%s: discard: %v", name, err)
		}
		if a, err := NextData(d, 3); a != 3 || err != nil {
			t.Errorf("%s: next data: %d, %v", name, a, err)
		}
		want := []string{"forget", "push", "barrier follows", "host", "discard", "next data"}
		if !slices.Equal(in.asked, want) {
			t.Errorf("%s: the disk was asked for %q, want %q", name, in.asked, want)
		}
	}
}

// A Prefix ends where it was told to, for all that it does.
func TestPrefixEnds(t *testing.T) {
	whole := NewMem(10 * BlockSize)
	behind := blocksOf(1, nil)
	behind[0][7] = 1
	if err := whole.WriteAt(7, behind); err != nil {
		t.Fatal(err)
	}
	d := NewPrefix(whole, 6)
	if d.Size() != 6 {
		t.Errorf("%d blocks, want 6", d.Size())
	}
	for what, err := range map[string]error{
		"read":     d.ReadAt(5, blocksOf(2, nil)),
		"write":    d.WriteAt(5, blocksOf(2, nil)),
		"discard":  d.Discard(5, 2),
		"read far": d.ReadAt(1<<63, blocksOf(1, nil)),
	} {
		if !errors.Is(err, ErrRange) {
			t.Errorf("%s: %v, want %v", what, err, ErrRange)
		}
	}
	for _, a := range []uint64{0, 5, 6, 9, 1 << 63} {
		if next, err := d.NextData(a); next != 6 || err != nil {
			t.Errorf("the first data from block %d on: %d, %v; want 6: there are none", a, next, err)
		}
	}
	if got := blocksOf(1, nil); whole.ReadAt(7, got) != nil || got[0][7] != 1 {
		t.Error("what is behind it was changed")
	}
}

// An image may be cut to its volume while that is in use, and not further.
func TestPrefixCut(t *testing.T) {
	f := create(t, 100)
	d := NewPrefix(NewStats(f), 60)
	for _, x := range []struct {
		blocks int64
		lost   bool
	}{{80, false}, {60, false}, {200, false}, {60, false}, {59, true}} {
		if err := os.Truncate(f.path, x.blocks*BlockSize); err != nil {
			t.Fatal(err)
		}
		if err := d.Barrier(); (err != nil) != x.lost {
			t.Errorf("a barrier of 60 blocks, of which %d are there: %v", x.blocks, err)
		}
		if err := f.Check(); errors.Is(err, ErrLost) != x.lost {
			t.Errorf("a look at 60 blocks, of which %d are there: %v", x.blocks, err)
		}
	}
}

// A preallocated image that has grown is one: it keeps its room. A sparse one gives it back.
func TestPrefixKeepsRoom(t *testing.T) {
	for _, thick := range []bool{false, true} {
		f := create(t, 100)
		if thick {
			if err := f.Preallocate(); err != nil {
				t.Skip(err)
			}
		}
		if err := os.Truncate(f.path, 1000*BlockSize); err != nil {
			t.Fatal(err)
		}
		f.Close()
		f, err := OpenFile(f.path, FileOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		d := NewPrefix(f, 100)
		if (HostOf(d) == nil) != thick || f.Discards() == thick {
			t.Errorf("preallocated %v: a host %v, gives room back %v", thick, HostOf(d) != nil, f.Discards())
		}
	}
}
