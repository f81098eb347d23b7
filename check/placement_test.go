package check

import (
	"strings"
	"testing"
)

// Runs are counted in the order of the file, indirect blocks among them; files of 1 MiB and more, and their short runs, by themselves.
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
	want := Placement{Files: 3, Blocks: 5 + 3*LargeRun + 1, Runs: 3 + 1 + 3, LargeFiles: 2, LargeBlocks: 3*LargeRun + 1, LargeRuns: 4, ShortRuns: 1, ShortBlocks: 1}
	if p != want {
		t.Errorf("%+v, want %+v", p, want)
	}
	for _, part := range []string{"3 files have 774 blocks in 7 runs, 442.3 KiB each", "the 2 files of 1 MiB or more: 769 blocks in 4 runs, 769.0 KiB each", "1 of them shorter than 1 MiB, with 0.1 % of the blocks"} {
		if got := p.String(); !strings.Contains(got, part) {
			t.Errorf("%q does not say %q", got, part)
		}
	}
}

// A check counts the runs of regular files as they lie: with their indirect blocks, without directories and symbolic links.
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
