package check

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"sync"
	"testing"

	"tansy/disk"
	"tansy/fs"
	"tansy/test/kit/replay"
)

// Runs are counted in the order of the file, indirect blocks among them; files of 1 MiB and more, and their short runs,
// by themselves.
func TestPlacement(t *testing.T) {
	var p Placement
	file := func(runs ...[2]uint64) {
		var f fileRuns
		for _, r := range runs {
			for b := r[0]; b < r[0]+r[1]; b++ {
				f.add(b)
			}
		}
		p.add(&f)
	}
	if got := p.String(); got != "no file has blocks" {
		t.Error(got)
	}
	file()
	file([2]uint64{10, 3}, [2]uint64{20, 1}, [2]uint64{19, 1})
	file([2]uint64{100, 10}, [2]uint64{110, LargeRun - 10})                       // one run
	file([2]uint64{1000, LargeRun}, [2]uint64{999, 1}, [2]uint64{5000, LargeRun}) // the second one is short
	want := Placement{Files: 3, Blocks: 5 + 3*LargeRun + 1, Runs: 3 + 1 + 3, LargeFiles: 2, LargeBlocks: 3*LargeRun + 1,
		LargeRuns: 4, ShortRuns: 1, ShortBlocks: 1}
	if p != want {
		t.Errorf("%+v, want %+v", p, want)
	}
	for _, part := range []string{
		"3 files have 774 blocks in 7 runs, 442.3 KiB each",
		"the 2 files of 1 MiB or more: 769 blocks in 4 runs, 769.0 KiB each",
		"1 of them shorter than 1 MiB, with 0.1 % of the blocks",
	} {
		if got := p.String(); !strings.Contains(got, part) {
			t.Errorf("%q does not say %q", got, part)
		}
	}
}

// A check counts the runs of regular files as they lie: with their indirect blocks, without directories and symbolic
// links.
func TestPlacementOfVolume(t *testing.T) {
	s := newBuilder(t, 5000, 600)
	a, b := s.make(rootIno, "a", typeReg), s.make(rootIno, "b", typeReg)
	s.make(rootIno, "empty", typeReg)
	s.write(s.make(rootIno, "symlink", typeLnk), 0, []byte("target"))
	for k := range uint64(2) { // in turns
		s.write(a, k*4096, []byte("x"))
		s.write(b, k*4096, []byte("x"))
	}
	s.write(s.make(rootIno, "c", typeReg), 11*4096, make([]byte, 2*4096)) // a direct block, an indirect one, another
	r, err := Volume(s.image(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if want := (Placement{Files: 3, Blocks: 2 + 2 + 3, Runs: 2 + 2 + 1}); r.Placement != want {
		t.Errorf("%+v, want %+v; %v", r.Placement, want, r.Problems)
	}
}

// Files that clients write side by side on an empty volume, with WRITEs of 64 KiB, lie in runs of 1 MiB and more in the
// mean.
func TestPlacementSideBySide(t *testing.T) {
	const files, size, piece = 8, 32 << 20, 64 << 10
	d, v := emptyVolume(t)
	var wg sync.WaitGroup
	turns := make(chan struct{}, 1) // one at a time, so that they take turns
	for i := range files {
		wg.Go(func() {
			n, err := v.Create(&fs.Cred{}, v.Root(), fmt.Append(nil, i), fs.Guarded, &fs.SetAttr{}, 0)
			data := make([]byte, piece)
			for off := uint64(0); err == nil && off < size; off += piece {
				turns <- struct{}{}
				_, _, _, err = v.Write(&fs.Cred{}, n.Handle, off, data, fs.Unstable)
				<-turns
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if p := placement(t, d, v); p.LargeFiles != files || p.LargeBlocks/p.LargeRuns < LargeRun || p.ShortBlocks > p.LargeBlocks/10 {
		t.Errorf("%v", &p)
	}
}

// So do files of which many pieces are being written at the same time, as a client has them under way, in whichever
// order these come.
func TestPlacementOutOfOrder(t *testing.T) {
	const size, piece, underWay = 32 << 20, 64 << 10, 16
	for _, files := range []int{1, 8} {
		d, v := emptyVolume(t)
		r := rand.New(rand.NewSource(int64(replay.Seed(t))))
		var handles []fs.Handle
		var order [][]uint64 // offsets, by file
		for i := range files {
			n, err := v.Create(&fs.Cred{}, v.Root(), fmt.Append(nil, i), fs.Guarded, &fs.SetAttr{}, 0)
			if err != nil {
				t.Fatal(err)
			}
			handles = append(handles, n.Handle)
			order = append(order, outOfOrder(r, size, piece, underWay))
		}
		data := make([]byte, piece)
		for len(order[0]) > 0 {
			for i := range files {
				if _, _, _, err := v.Write(&fs.Cred{}, handles[i], order[i][0], data, fs.Unstable); err != nil {
					t.Fatal(err)
				}
				order[i] = order[i][1:]
			}
		}
		if p := placement(t, d, v); p.LargeFiles != uint64(files) || p.LargeBlocks/p.LargeRuns < LargeRun/2 || p.ShortBlocks > p.LargeBlocks/5 {
			t.Errorf("%d files: %v", files, &p)
		}
	}
}

// TestPlacementWrittenOver: one file written over and over, by WRITEs of which many are under way, lies in runs of
// about 1 MiB. Without stretches (internal/runtime/dtxn/stretches.go) these are as short as a WRITE.
func TestPlacementWrittenOver(t *testing.T) {
	const size, piece, underWay = 32 << 20, 64 << 10, 16
	d, v := emptyVolume(t)
	r := rand.New(rand.NewSource(int64(replay.Seed(t))))
	n, err := v.Create(&fs.Cred{}, v.Root(), []byte("f"), fs.Guarded, &fs.SetAttr{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	data := make([]byte, piece)
	for range 5 {
		for _, off := range outOfOrder(r, size, piece, underWay) {
			if _, _, _, err := v.Write(&fs.Cred{}, n.Handle, off, data, fs.Unstable); err != nil {
				t.Fatal(err)
			}
		}
	}
	if p := placement(t, d, v); p.LargeFiles != 1 || p.LargeBlocks/p.LargeRuns < LargeRun/2 || p.ShortBlocks > p.LargeBlocks/5 {
		t.Error(&p)
	}
}

// outOfOrder are the offsets of the pieces of a file, as they come with some under way.
func outOfOrder(r *rand.Rand, size, piece uint64, underWay int) (offs []uint64) {
	var next []uint64
	for off := uint64(0); off < size || len(next) > 0; off += piece {
		if off < size {
			next = append(next, off)
		}
		if len(next) == underWay || off >= size {
			k := r.Intn(len(next))
			if next[0]+2*uint64(underWay)*piece <= off {
				k = 0 // it has waited long
			}
			offs = append(offs, next[k])
			next = slices.Delete(next, k, k+1)
		}
	}
	return offs
}

// emptyVolume is a volume of 512 MiB in memory.
func emptyVolume(t *testing.T) (disk.Disk, *fs.FS) {
	t.Helper()
	d := disk.NewMem(512 << 20)
	if err := fs.Mkfs(d, fs.MkfsOptions{Zeroed: true}); err != nil {
		t.Fatal(err)
	}
	v, err := fs.Open(d, fs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return d, v
}

// placement closes v, and is how its files lie on d, where nothing may be wrong.
func placement(t *testing.T, d disk.Disk, v *fs.FS) Placement {
	t.Helper()
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := Volume(d, Options{})
	if err != nil || len(r.Problems) > 0 {
		t.Fatal(err, r.Problems)
	}
	t.Log(&r.Placement)
	return r.Placement
}
