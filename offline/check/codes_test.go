package check

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"tansy/disk"
)

// A block that is not what was last written there is one problem like one that cannot be read: it says what the block
// is for, and whose it is. What is only data is found if data are read.
func TestNotAsWritten(t *testing.T) {
	s := newSample(t)
	clean := s.image()
	g := &s.geo
	file, sub := s.parsed(clean, s.file), s.parsed(clean, s.sub)
	names := []string{`"/hard link"`, `"/dir/sub/file"`, fmt.Sprintf("%q", "/dir/sub/"+strings.Repeat("long", 50))}
	for _, c := range []struct {
		what  string
		block uint64
		want  string
		files []string
		data  bool
	}{
		{"inode bitmap", g.InodeBitmap(), "the bitmap of the inodes from 0 on: not what was last written there", nil, false},
		{"block bitmap", g.BlockBitmap(), "the bitmap of the blocks from 0 on: not", nil, false},
		{"inodes", g.InodeTable() + 5, "the inodes 80 to 95: not",
			[]string{`"/dir/f71"`, `"/dir/f72"`, `"/dir/f73"`, `"/dir/f74"`}, false},
		{"inodes never used", g.InodeTable() + 30, "the inodes 480 to 495: not", nil, false},
		{"indirect block", file.blks[12],
			"an indirect block (level 1) of the file, with the blocks from 12 on: not", names, false},
		{"end of a file", s.parsed(clean, s.symlink).blks[0], "the last block of the file: not",
			[]string{`"/dir/symlink"`}, false},
		{"directory block", sub.blks[0], "block 0 of the directory: not", []string{`"/dir/sub"`}, false},
		{"contents", file.blks[3], "not what was last written there", names, true},
	} {
		d := newOverlay(clean)
		b := get(t, d, c.block)
		b[4000] ^= 4
		put(t, d, c.block, b)
		for _, data := range []bool{false, true} {
			r, err := Volume(d, Options{Data: data})
			if err != nil {
				t.Fatal(err)
			}
			if c.data && !data {
				if !r.Clean() || r.DataChecked > 0 {
					t.Errorf("%s: contents were read: %+v", c.what, r)
				}
				continue
			}
			if len(r.Problems) != 1 || r.Problems[0].Block != c.block || !strings.Contains(r.Problems[0].String(), c.want) || !slices.Equal(r.Problems[0].Files, c.files) || r.Damaged != 1 {
				t.Errorf("%s: %v, want one of %q, files %v", c.what, r.Problems, c.want, c.files)
			}
			if data && r.DataChecked < r.Blocks {
				t.Errorf("%s: %d of %d blocks read", c.what, r.DataChecked, r.Blocks)
			}
		}
	}
	r, err := Volume(badBlocks(clean, file.blks[3], file.blks[4]), Options{Data: true})
	if err != nil || len(r.Problems) != 2 || r.Unreadable != 2 || !slices.Equal(r.Problems[0].Files, names) {
		t.Errorf("unreadable contents: %+v, %v", r, err)
	}
}

// A damaged page of the tree of codes is one problem; what it stands for is checked without, and it is said how
// much that is.
func TestDamagedTree(t *testing.T) {
	s := newSample(t)
	d := s.image()
	c := newChecker(Options{MaxProblems: 10})
	if err := c.run(d); err != nil {
		t.Fatal(err)
	}
	n := 0
	for p := range c.snap.Pages() {
		n++
		first := p.Block - (p.Block-1)%2
		bad := newOverlay(d)
		b := get(t, bad, p.Block)
		b[20] ^= 1
		put(t, bad, p.Block, b)
		r, err := Volume(bad, Options{Data: true})
		if err != nil || len(r.Problems) != 1 || r.Damaged != 1 || r.Problems[0].Block != first || !strings.Contains(r.Problems[0].Text, "a page of the tree of codes") {
			t.Errorf("page in block %d: %v, %v", p.Block, r.Problems, err)
		}
		if len(p.Homes) > 0 && (len(r.Unchecked) != 1 || !strings.HasPrefix(r.Unchecked[0], "whether ")) {
			t.Errorf("page in block %d: not checked: %q", p.Block, r.Unchecked)
		}
		r, err = Volume(badBlocks(d, p.Block), Options{})
		if err != nil || len(r.Problems) != 1 || r.Unreadable != 1 || r.Problems[0].Block != first || !strings.HasSuffix(r.Problems[0].Text, "cannot be read: input/output error") {
			t.Errorf("page in block %d, unreadable: %v, %v", p.Block, r.Problems, err)
		}
		moved := newOverlay(d)
		put(t, moved, first, get(t, d, first+1))
		put(t, moved, first+1, get(t, d, first))
		r, err = Volume(moved, Options{})
		if err != nil || len(r.Problems) != 1 || r.Damaged != 1 || r.Problems[0].Block != p.Block || !strings.Contains(r.Problems[0].Text, "wrong one of its two places") {
			t.Errorf("page in block %d, places exchanged: %v, %v", p.Block, r.Problems, err)
		}
	}
	if n < 2 { // the root, and another
		t.Errorf("%d pages", n)
	}
}

// Without the log it is not known what was last written: nothing at home is called damaged for it.
func TestCodesWithoutLog(t *testing.T) {
	s := newSample(t)
	d := newOverlay(s.image())
	for _, a := range []uint64{s.log(), s.geo.InodeBitmap() - 1} {
		put(t, d, a, make([]byte, disk.BlockSize))
	}
	blk := s.parsed(d, s.file).blks[3]
	put(t, d, blk, bytes.Repeat([]byte{1}, disk.BlockSize))
	r, err := Volume(d, Options{Data: true})
	if err != nil || len(r.Problems) != 3 || r.Damaged != 0 || len(r.Unchecked) != 2 {
		t.Errorf("%+v, %v", r, err)
	}
}

// A dump shows what is there, with a word about it.
func TestDumpNotAsWritten(t *testing.T) {
	s := newSample(t)
	for _, c := range []struct {
		what  string
		block uint64
		want  string
	}{
		{"inode", s.geo.InodeTable() + s.file/inodesBlock, "problem     block %d is not what was last written there"},
		{"tree", 1 + 2*(s.sb.Pages()-1), "of the tree of codes, is damaged"},
	} {
		d := newOverlay(s.image())
		for i := range uint64(2) { // a page has two places
			if i == 0 || c.what == "tree" {
				b := get(t, d, c.block+i)
				b[4095] ^= 1
				put(t, d, c.block+i, b)
			}
		}
		p, err := NewDumper(d)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := errors.Join(p.Super(&out), p.Log(&out), p.Inode(&out, s.file)); err != nil {
			t.Error(err)
		}
		want := c.want
		if strings.Contains(want, "%d") {
			want = fmt.Sprintf(want, c.block)
		}
		for _, x := range []string{
			want, "links       3", "tree        ", "root of the tree of codes ", "tree of codes    blocks 1 to ",
		} {
			if !strings.Contains(out.String(), x) {
				t.Errorf("%s: %q is not in\n%s", c.what, x, out.String())
			}
		}
	}
}

// A hole where something was written is found, also where nothing else says so.
func TestHoleNotAsWritten(t *testing.T) {
	s := newSample(t)
	clean := s.image()
	for _, c := range []struct {
		block uint64
		want  string
	}{
		{s.geo.InodeBitmap(), "the bitmap of the inodes from 0 on: not"},
		{s.geo.BlockBitmap(), "the bitmap of the blocks from 0 on: not"},
		{s.geo.InodeTable() + s.removed/inodesBlock, "the inodes 304 to 319: not"},
	} {
		d := disk.NewMem(clean.Size() * disk.BlockSize)
		for a := range d.Size() {
			if b := get(t, clean, a); a != c.block && !zeros(b) {
				put(t, d, a, b)
			}
		}
		if next, err := d.NextData(c.block); err != nil || next == c.block {
			t.Fatal("no hole:", err)
		}
		r, err := Volume(d, Options{})
		if err != nil || len(r.Problems) != 1 || r.Problems[0].Block != c.block || !strings.Contains(r.Problems[0].Text, c.want) {
			t.Errorf("%v, want %q: %v", r.Problems, c.want, err)
		}
	}
}

// What the bitmap says is in use is read, also if it is not known whose it is.
func TestDataOfLostInodes(t *testing.T) {
	s := newSample(t)
	d := newOverlay(s.image())
	inodes, blk := s.geo.InodeTable()+s.file/inodesBlock, s.parsed(d, s.file).blks[3]
	for _, a := range []uint64{inodes, blk} {
		b := get(t, d, a)
		b[9] ^= 2
		put(t, d, a, b)
	}
	r, err := Volume(d, Options{Data: true})
	if err != nil || r.Damaged != 2 || !slices.ContainsFunc(r.Problems, func(p Problem) bool { return p.Pass == "data" && p.Block == blk && len(p.Files) == 0 }) {
		t.Errorf("%+v, %v", r, err)
	}
}

// The files of what one pass finds wrong are named beside those of another, wherever the blocks lie.
func TestOwnersOfTwoPasses(t *testing.T) {
	s := newSample(t)
	d := newOverlay(s.image())
	low, high := s.parsed(d, s.file).blks[3], s.parsed(d, s.holey).blks[3]
	if low > high {
		t.Fatal("the sample is laid out differently: ", low, high)
	}
	s.tamper(d, func(d disk.Disk) {
		b := get(t, d, s.geo.BlockBitmap())
		b[high/8] &^= 1 << (high % 8)
		put(t, d, s.geo.BlockBitmap(), b)
	})
	put(t, d, low, bytes.Repeat([]byte{3}, disk.BlockSize))
	r, err := Volume(d, Options{Data: true})
	if err != nil || len(r.Problems) != 2 || r.Problems[0].Block != high || r.Problems[1].Block != low {
		t.Fatalf("%v, %v", r.Problems, err)
	}
	if a, b := r.Problems[0].Files, r.Problems[1].Files; !slices.Equal(a, []string{`"/dir/holey"`}) || len(b) != 3 {
		t.Errorf("%v, %v", a, b)
	}
}
