package check

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"tansy/disk"
)

// A problem names the files that it concerns.
func TestPaths(t *testing.T) {
	s := newSample(t)
	clean := s.image()
	flip := func(d disk.Disk, ino uint64, off int, x byte) {
		a, o := s.inodeAt(ino)
		b := get(t, d, a)
		b[o+off] ^= x
		put(t, d, a, b)
	}
	for _, c := range []struct {
		what string
		edit func(d disk.Disk)
		want string // a problem
		path []string
	}{
		{"three names", func(d disk.Disk) { flip(d, s.file, 6, 1) }, "bits beyond the permissions",
			[]string{`"/hard link"`, `"/dir/sub/file"`, fmt.Sprintf("%q", "/dir/sub/"+strings.Repeat("long", 50))}},
		{"the root", func(d disk.Disk) { flip(d, rootIno, 92, 1) }, "of chattr, are unknown", []string{`"/"`}},
		{"a file waiting to be freed",
			func(d disk.Disk) { flip(d, s.removed, 6, 1) }, "bits beyond", []string{"(unreachable)"}},
		{"a directory in itself", func(d disk.Disk) {
			a := s.parsed(d, rootIno).blks[0]
			b, off := get(t, d, a), entryOff(s, rootIno, "dir")
			clear(b[off : off+shortSlot]) // no name is left in the root
			put(t, d, a, b)
			flip(d, s.dir, 104, byte(rootIno^s.dir))
		}, "for the second time, not to the root", []string{fmt.Sprintf(`"(directory %d)/sub"`, s.dir)}},
		{"owners of blocks marked free", func(d disk.Disk) {
			a := s.geo.BlockBitmap()
			b := get(t, d, a)
			first := s.parsed(d, s.file).blks[0]
			b[first/8] &^= 1 << (first % 8)
			put(t, d, a, b)
		}, "marked free, but in a file", []string{`"/hard link"`, `"/dir/sub/file"`, fmt.Sprintf("%q", "/dir/sub/"+strings.Repeat("long", 50))}},
		{"owners of blocks used twice", func(d disk.Disk) {
			a, o := s.inodeAt(s.holey)
			b := get(t, d, a)
			binary.LittleEndian.PutUint64(b[o+136:], s.parsed(d, s.symlink).blks[0])
			put(t, d, a, b)
		}, "is used more than once", []string{`"/dir/holey"`}},
	} {
		t.Run(c.what, func(t *testing.T) {
			d := newOverlay(clean)
			s.tamper(d, c.edit)
			r, err := Volume(d, Options{})
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range r.Problems {
				if strings.Contains(p.Text, c.want) && slices.Equal(p.Files, c.path) {
					return
				}
			}
			t.Errorf("want %q with files %v in %v", c.want, c.path, r.Problems)
		})
	}
}

// A zeroed bitmap is one problem, with some of the files and the number of the rest.
func TestManyFilesHit(t *testing.T) {
	s := newSample(t)
	d := s.image()
	s.tamper(d, func(d disk.Disk) { put(t, d, s.geo.BlockBitmap(), make([]byte, disk.BlockSize)) })
	r, err := Volume(d, Options{})
	if err != nil || len(r.Problems) != 1 || len(r.Problems[0].Files) < maxPaths || r.Problems[0].More == 0 || r.Files == 0 {
		t.Errorf("%+v, %v", r, err)
	}
	if want := fmt.Sprintf(", and %d more files]", r.Problems[0].More); !strings.HasSuffix(r.Problems[0].String(), want) {
		t.Errorf("%s does not end with %s", r.Problems[0], want)
	}
}

// A path that is too long loses its beginning; one without an end does not exist.
func TestNamer(t *testing.T) {
	n := namer{places: map[uint64][]place{}, paths: map[uint64]string{rootIno: ""}, none: "none"}
	name := strings.Repeat("x", 200)
	for i := uint64(10); i < 1000; i++ {
		n.places[i+1] = []place{{i, name}}
	}
	n.places[10] = []place{{rootIno, "first"}}
	if got := n.of(11); got[0] != `"/first/`+name+`"` {
		t.Error(got)
	}
	if got := n.of(1000); len(got[0]) > maxPathLen+300 || !strings.HasPrefix(got[0], `"(directory `) {
		t.Error(got)
	}
	n.places[5], n.places[6] = []place{{6, "a"}}, []place{{5, "b"}}
	if got := n.of(5); got[0] != `"(directory 6)/a/b/a"` {
		t.Error(got)
	}
	if got := n.of(7); got[0] != "none" {
		t.Error(got)
	}
}
