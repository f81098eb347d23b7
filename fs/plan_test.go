package fs

import (
	"errors"
	"testing"

	"tansy/disk"
	"tansy/journal"
)

// A device of any size can be a volume: the tree of codes never is too small or too large for it. (Plan in
// verified/fs/mkfs.)
func TestPlanSizes(t *testing.T) {
	for _, least := range []uint64{20000, 150000, 1 << 30} {
		for size := least; size < least+2*256+2; size++ {
			s, err := plan(size, MkfsOptions{})
			if err != nil {
				t.Fatalf("%d blocks: %v", size, err)
			}
			g := s.Geometry()
			if pages, ok := journal.PagesFor(size - g.InodeBitmap()); !ok || pages != s.Pages() {
				t.Errorf("%d blocks: a tree of %d pages, want %d", size, s.Pages(), pages)
			}
			if p := journalParams(s); p.Home() != g.InodeBitmap() || p.Ring < journal.MinRing || g.Data1() != size-1 {
				t.Errorf("%d blocks: %+v, %+v", size, p, g)
			}
		}
	}
}

// So it is made, and opens, also where the tree would be too small or too large by a block or two if nobody took care.
func TestMkfsSizes(t *testing.T) {
	const log = 2000
	for rest := range uint64(5) { // of the home blocks, by those that a page of the tree has codes for
		d := disk.NewMem((1 + log + 256*50 + rest) * disk.BlockSize)
		want(t, Mkfs(d, MkfsOptions{LogBytes: log * BlockSize, Inodes: 256}), 0)
		v, err := Open(d, Options{})
		if err != nil {
			t.Fatalf("%d: %v", rest, err)
		}
		want(t, v.Close(), 0)
	}
}

// What cannot be a volume is refused before anything is written.
func TestPlanRefuses(t *testing.T) {
	for _, c := range []struct {
		size   uint64
		o      MkfsOptions
		params bool
	}{
		{100, MkfsOptions{}, false},
		{1300, MkfsOptions{}, false},
		{25000, MkfsOptions{LogBytes: 4 << 20}, false},
		{25000, MkfsOptions{LogBytes: 25000 * BlockSize}, false},
		{25000, MkfsOptions{Inodes: 1 << 40}, false},
		{1 << 40, MkfsOptions{}, true},
		{1 << 36, MkfsOptions{LogBytes: 1 << 45}, true},
	} {
		d := &untouched{disk.NewMem(c.size * disk.BlockSize), t}
		if err := Mkfs(d, c.o); err == nil || errors.Is(err, journal.ErrParams) != c.params {
			t.Errorf("%d blocks, %+v: %v", c.size, c.o, err)
		}
	}
}

// untouched is a device that nobody is to write to.
type untouched struct {
	disk.Disk
	t *testing.T
}

func (u *untouched) WriteAt(a uint64, _ [][]byte) error {
	u.t.Errorf("block %d was written", a)
	return errors.New("it is not to be written")
}

// mkfs of a device that may hold anything tells how far it is: of inodes and records, up to all of them. In a new image
// it has none of these to write.
func TestMkfsProgress(t *testing.T) {
	for _, zeroed := range []bool{false, true} {
		var last, all uint64
		o := MkfsOptions{Zeroed: zeroed, Progress: func(done, total uint64) {
			if done <= last || done > total || total == 0 {
				t.Errorf("%d of %d after %d", done, total, last)
			}
			last, all = done, total
		}}
		want(t, Mkfs(disk.NewMem(200000*disk.BlockSize), o), 0)
		if last != all || (all == 0) != zeroed {
			t.Errorf("zeroed %v: told of %d bytes of %d", zeroed, last, all)
		}
	}
}

// mkfs that is stopped before one of its writes makes none from there on, returns the reason, and leaves no volume.
func TestMkfsStop(t *testing.T) {
	stopped := errors.New("stopped")
	for writes := 0; ; writes++ {
		left, d := writes, disk.NewMem(64<<20)
		err := Mkfs(d, MkfsOptions{Stop: func() error {
			if left--; left < 0 {
				return stopped
			}
			return nil
		}})
		if err == nil {
			if writes < 3 {
				t.Errorf("%d writes make a volume", writes)
			}
			return
		}
		if !errors.Is(err, stopped) {
			t.Fatalf("after %d writes: %v", writes, err)
		}
		if f, err := Open(d, Options{}); err == nil {
			f.Close()
			t.Fatalf("a volume after %d writes", writes)
		}
	}
}
