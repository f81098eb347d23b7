package check

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// The files of blocks: by their data, their indirect blocks, and their inodes; bitmaps are nobody's.
func TestWhose(t *testing.T) {
	s := newSample(t)
	d := s.image()
	file := []string{`"/hard link"`, `"/dir/sub/file"`, fmt.Sprintf("%q", "/dir/sub/"+strings.Repeat("long", 50))}
	slices.Sort(file)
	inodeBlock := s.geo.InodeTable() + 5
	var inBlock []string
	for ino := uint64(80); ino < 96; ino++ {
		paths, err := Paths(d, []uint64{ino})
		if err != nil || len(paths) != 1 || len(paths[ino]) != 1 || !strings.HasPrefix(paths[ino][0], `"/dir/f`) {
			t.Fatal(paths, err)
		}
		inBlock = append(inBlock, paths[ino]...)
	}
	slices.Sort(inBlock)
	for _, c := range []struct {
		what   string
		blocks []uint64
		want   []string
	}{
		{"nothing", nil, nil},
		{"bitmaps", []uint64{s.geo.InodeBitmap(), s.geo.BlockBitmap()}, nil},
		{"data", []uint64{s.parsed(d, s.file).blks[3]}, file},
		{"indirect", []uint64{s.parsed(d, s.file).blks[12]}, file},
		{"double indirect, twice", []uint64{s.parsed(d, s.holey).blks[13], s.parsed(d, s.holey).blks[13]},
			[]string{`"/dir/holey"`}},
		{"directory", []uint64{s.parsed(d, s.sub).blks[0]}, []string{`"/dir/sub"`}},
		{"inodes", []uint64{inodeBlock}, inBlock},
		{"removed", []uint64{s.parsed(d, s.removed).blks[0]}, []string{fmt.Sprintf("inode %d", s.removed)}},
		{"no block", []uint64{1 << 50}, nil},
	} {
		if got, err := Whose(d, c.blocks); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, %v, want %q", c.what, got, err, c.want)
		}
	}
}
