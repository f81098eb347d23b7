package repair

import (
	"encoding/binary"
	"strings"
	"testing"

	"tansy/disk"
	"tansy/fs"
	"tansy/internal/layout"
	"tansy/offline/check"
)

// wrote has what f changes on the volume be what was last written there.
func (s *small) wrote(f func(v *volume)) {
	s.t.Helper()
	r := &run{d: s.d, layout: s.l}
	if err := r.superblock(); err != nil {
		s.t.Fatal(err)
	}
	j, err := openJournal(s.d, r.sb)
	if err != nil {
		s.t.Fatal(err)
	}
	s.v = newVolume(s.d, s.v.geometry)
	f(s.v)
	if _, err := s.v.flush(j); err != nil {
		s.t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		s.t.Fatal(err)
	}
	s.v = newVolume(s.d, s.v.geometry)
}

// Extended attributes that are damaged go, and what is left of files that are gone; the others stay.
func TestXattrs(t *testing.T) {
	for _, c := range []struct {
		what   string
		harm   func(s *small, block uint64) // of /one's
		clean  bool                         // nothing is wrong, but that something is left over
		want   string
		stay   bool   // those of /one
		report string // of check
	}{
		{what: "nothing", harm: func(*small, uint64) {}, clean: true, stay: true},
		{"an entry behind the end", func(s *small, b uint64) { s.wrote(func(v *volume) { b := v.edit(b); b[10] = 0xff }) },
			false, "go: they are damaged, an entry goes on behind the block's end", false, "an entry goes on"},
		{"no generation", func(s *small, b uint64) { s.wrote(func(v *volume) { b := v.edit(b); clear(b[:8]) }) }, false,
			"of no generation", false, "of no generation"},
		{"a zero in a name", func(s *small, b uint64) { s.wrote(func(v *volume) { b := v.edit(b); b[13] = 0 }) }, false,
			"a name has a zero", false, "a name has a zero"},
		{"no list", func(s *small, b uint64) { s.wrote(func(v *volume) { b := v.edit(b); clear(b[8:]) }) }, false,
			"there are none in it", false, "there are none"},
		{"something behind", func(s *small, b uint64) { s.wrote(func(v *volume) { b := v.edit(b); b[4095] = 1 }) }, false,
			"something behind", false, "something behind"},
		{"a name twice", func(s *small, b uint64) {
			s.wrote(func(v *volume) { b := v.edit(b); copy(b[8+4+len("user.a")+100:], b[8:8+4+len("user.a")+100]) })
		}, false, "a name is there twice", false, "there twice"},
		{"another generation", func(s *small, b uint64) {
			s.wrote(func(v *volume) { b := v.edit(b); binary.LittleEndian.PutUint64(b, 77) })
		}, true, "of a file that is gone", false, ""},
		{"of inode 0", func(s *small, b uint64) {
			s.wrote(func(v *volume) { v.set64(orphansIno, layout.Pointers+8*int(s.ino["/one"]), 0) })
			s.wrote(func(v *volume) { v.set64(orphansIno, layout.Pointers, b) })
		}, false, "inode 0 go: the table of access lists is damaged there", false,
			"the table of access lists is damaged"},
		{"of inode 2", func(s *small, b uint64) {
			s.wrote(func(v *volume) { v.set64(orphansIno, layout.Pointers+8*int(s.ino["/one"]), 0) })
			s.wrote(func(v *volume) { v.set64(orphansIno, layout.Pointers+8*2, b) })
		}, false, "inode 2 go: it can have none", false, "of inode 2, which can have none"},
		{"of a free inode", func(s *small, b uint64) {
			s.wrote(func(v *volume) { v.set64(orphansIno, layout.Pointers+8*int(s.ino["/one"]), 0) })
			s.wrote(func(v *volume) { v.set64(orphansIno, layout.Pointers+8*11, b) })
			s.wrote(func(v *volume) { v.set64(orphansIno, layout.Size, 12*disk.BlockSize) })
		}, true, "inode 11 go: they are of a file that is gone", false, ""},
		{"a size", func(s *small, _ uint64) {
			s.wrote(func(v *volume) { v.set64(orphansIno, layout.Size, v.inode(orphansIno).q(layout.Size)-5) })
		}, false, "becomes whole blocks", true, "is not whole blocks"},
		{"a count", func(s *small, _ uint64) { s.wrote(func(v *volume) { v.set64(orphansIno, layout.Used, 9) }) }, false,
			"the count of blocks of data becomes", true, "blocks of data"},
		{"a block of a file", func(s *small, _ uint64) {
			s.wrote(func(v *volume) {
				v.set64(orphansIno, layout.Pointers+8*int(s.ino["/one"]), s.v.inode(s.ino["/one"]).q(layout.Pointers))
			})
		}, false, "they are damaged", false, ""},
	} {
		t.Run(c.what, func(t *testing.T) {
			s := newSmall(t)
			v, err := fs.Open(s.d, fs.Options{})
			if err != nil {
				t.Fatal(err)
			}
			files := map[string]fs.Handle{}
			for path, ino := range s.ino {
				h := fs.Handle{Ino: ino, Gen: 1}
				if files[path] = h; path == "/a/b/c/three" {
					continue
				}
				for _, name := range []string{"user.a", "user.b"} {
					if err := v.SetXattr(h, []byte(name), []byte(strings.Repeat("v", 100)), false, false); err != nil {
						t.Fatal(err)
					}
				}
			}
			if err := v.Close(); err != nil {
				t.Fatal(err)
			}
			s.v = newVolume(s.d, s.v.geometry)
			c.harm(s, s.v.inode(orphansIno).q(layout.Pointers+8*int(s.ino["/one"])))
			r, err := check.Volume(s.d, check.Options{Data: true})
			if err != nil || r.Clean() != c.clean {
				t.Fatalf("%v, %v", r.Problems, err)
			}
			if found := func() bool {
				for _, p := range r.Problems {
					if strings.Contains(p.String(), c.report) {
						return true
					}
				}
				return c.clean
			}(); !found {
				t.Errorf("check says %v", r.Problems)
			}
			if c.want == "" {
				if p, err := NewPlan(s.d, Options{}); err != nil || len(p.Actions) > 0 {
					t.Fatalf("nothing is wrong, and a repair would do %v, %v", p.Actions, err)
				}
			} else if acts := repaired(t, s.d); !has(acts, c.want) {
				t.Errorf("no %q in %v", c.want, acts)
			}
			left := uint64(4)
			if c.stay {
				left++
			}
			if r, err := check.Volume(s.d, check.Options{Data: true}); err != nil || !r.Clean() || r.Leftovers != 0 || r.Xattrs != left {
				t.Errorf("after it: %d files, %d left over, %v, %v", r.Xattrs, r.Leftovers, r.Problems, err)
			}
			if v, err = fs.Open(s.d, fs.Options{}); err != nil {
				t.Fatal(err)
			}
			for path, h := range files {
				want := "user.b\x00user.a\x00"
				if path == "/a/b/c/three" || path == "/one" && !c.stay {
					want = ""
				}
				if names, err := v.ListXattr(h); err != nil || string(names) != want {
					t.Errorf("%s has %q, %v, want %q", path, names, err, want)
				}
			}
			if err := v.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}
