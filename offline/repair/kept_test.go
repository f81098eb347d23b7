package repair

import (
	"testing"

	"tansy/fs"
	"tansy/internal/layout"
	"tansy/offline/check"
)

// Files that a mount had open stay on their list, if that can be believed. Else they are like others: those without a
// name come to lost+found.
func TestKept(t *testing.T) {
	for _, c := range []struct {
		what string
		harm func(s *small, nameless, named uint64)
		want []string
		kept uint64
	}{
		{"sound", func(*small, uint64, uint64) {}, nil, 2},
		{"another file has a wrong count", func(s *small, _, _ uint64) { s.links(s.ino["/one"], 7) },
			[]string{"the count of links becomes the number of names (0x1, was 0x7)"}, 2},
		{"a kept file has one", func(s *small, _, named uint64) { s.links(named, 7) },
			[]string{"the count of links becomes the number of names (0x2, was 0x7)"}, 2},
		{"circle", func(s *small, nameless, named uint64) { s.set(nameless, layout.Parent, named) },
			[]string{"is not kept open any more", "becomes /lost+found/#"}, 0},
		{"no head", func(s *small, _, _ uint64) { s.set(orphansIno, layout.Parent, 0) },
			[]string{"is not kept open any more", "becomes /lost+found/#"}, 0},
		{"nowhere", func(s *small, nameless, _ uint64) { s.set(nameless, layout.Parent, 1<<40) },
			[]string{"is not kept open any more", "becomes /lost+found/#"}, 0},
		{"a directory on it", func(s *small, nameless, _ uint64) { s.set(nameless, layout.Parent, s.ino["/a"]) },
			[]string{"is not kept open any more", "becomes /lost+found/#"}, 0},
	} {
		t.Run(c.what, func(t *testing.T) {
			s := newSmall(t)
			v, err := fs.Open(s.d, fs.Options{})
			if err != nil {
				t.Fatal(err)
			}
			nameless, err := v.Tmpfile(&fs.Cred{}, v.Root(), nil)
			if err != nil {
				t.Fatal(err)
			}
			named, err := v.Create(&fs.Cred{}, v.Root(), []byte("named"), fs.Guarded, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			if err := v.Keep(named.Handle); err != nil {
				t.Fatal(err)
			}
			if err := v.Close(); err != nil {
				t.Fatal(err)
			}
			s.v = newVolume(s.d, s.v.geometry)
			c.harm(s, nameless.Handle.Ino, named.Handle.Ino)
			if c.want == nil {
				if p, err := NewPlan(s.d, Options{}); err != nil || len(p.Actions) > 0 {
					t.Fatalf("nothing is wrong, and a repair would do %v, %v", p.Actions, err)
				}
				return
			}
			acts := repaired(t, s.d)
			for _, w := range c.want {
				if !has(acts, w) {
					t.Errorf("no %q in %v", w, acts)
				}
			}
			r, err := check.Volume(s.d, check.Options{})
			if err != nil || r.Kept != c.kept {
				t.Errorf("%d files are kept, %v; want %d", r.Kept, err, c.kept)
			}
		})
	}
}

// links sets the link count of an inode.
func (s *small) links(ino uint64, n uint64) {
	s.set(ino, layout.Links, n|uint64(s.v.inode(ino).w(layout.Links+4))<<32)
}
