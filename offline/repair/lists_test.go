package repair

import (
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"tansy/disk"
	"tansy/fs"
	"tansy/internal/layout"
	"tansy/offline/check"
)

// Access lists whose table is damaged, or that a file cannot have, go; a file that loses its list is its owner's alone
// then, and was so before. Flags of chattr stay.
func TestLists(t *testing.T) {
	list := &fs.AccessList{
		Owner: 7, Group: 5, Mask: 6, Other: 4, Masked: true,
		Named: []fs.AccessEntry{{ID: 11, Rights: 7}, {Group: true, ID: 21, Rights: 1}},
	}
	table := func(s *small) uint64 { return s.v.inode(orphansIno).q(layout.Pointers) }
	edit := func(at int, x byte) func(s *small) {
		return func(s *small) { b := table(s); s.wrote(func(v *volume) { v.edit(b)[at] = x }) }
	}
	marks := func(path string, x uint32) func(s *small) {
		return func(s *small) { s.wrote(func(v *volume) { v.set32(s.ino[path], layout.Marks, x) }) }
	}
	const value = 8 + 4 + 3 // where the value of the first list is
	for _, c := range []struct {
		what   string
		harm   func(s *small)
		report string // of check; "": nothing is wrong
		want   string // of repair
		stay   bool   // the list of /one
	}{
		{"nothing", func(*small) {}, "", "", true},
		{"no table", func(s *small) { s.wrote(func(v *volume) { v.set64(orphansIno, layout.Pointers, 0) }) },
			"there is no access list 1", "its owner's alone", false},
		{"another generation", edit(0, 2), "they are of generation 2", "the table of access lists is damaged", false},
		{"a number 0", edit(14, '0'), "is no number", "the table of access lists is damaged", false},
		{"a name that is no number", edit(14, 'x'), "is no number", "the table of access lists is damaged", false},
		{"a number in capitals", edit(14, 'A'), "is no number", "the table of access lists is damaged", false},
		{"a name that is too long", edit(8, 255), "a name has a zero", "the table of access lists is damaged", false},
		{"another number", edit(14, '3'), "there is no access list 1", "its owner's alone", false},
		{"a right that is none", edit(value+1, 0x3f), "begins with", "the table of access lists is damaged", false},
		{"no mask", edit(value+1, 0), "has no mask", "the table of access lists is damaged", false},
		{"an entry that is none", edit(value+2, 0x1f), "has an entry 0x1f", "the table of access lists is damaged",
			false},
		{"two groups", edit(value+2, 0xf), "", "", true},
		{"a user behind a group", func(s *small) { edit(value+2, 0xf)(s); edit(value+7, 7)(s) }, "behind a group",
			"the table of access lists is damaged", false},
		{"a number that is not there", marks("/one", 7<<8), "there is no access list 7", "its owner's alone", false},
		{"a default list of a file", marks("/one", 1<<8|1<<20), "has a default list", "flags that mean nothing", true},
		{"a flag that is none", marks("/one", 1<<8|1), "the flags 0x1", "flags that mean nothing", true},
		{"a missing default list", marks("/a", 9<<20|0x40), "there is no access list 9", "that are missing go", true},
	} {
		t.Run(c.what, func(t *testing.T) {
			s := newSmall(t)
			v, err := fs.Open(s.d, fs.Options{})
			if err != nil {
				t.Fatal(err)
			}
			one := fs.Handle{Ino: s.ino["/one"], Gen: 1}
			for _, err := range []error{
				v.SetAccess(&fs.Cred{}, one, list),
				v.SetFlags(&fs.Cred{}, fs.Handle{Ino: s.ino["/a"], Gen: 1}, fs.FlagNoDump),
				v.Close(),
			} {
				if err != nil {
					t.Fatal(err)
				}
			}
			s.v = newVolume(s.d, s.v.geometry)
			c.harm(s)
			if v, err := fs.Open(s.d, fs.Options{ReadOnly: true, Log: slog.New(slog.DiscardHandler)}); err != nil {
				t.Errorf("it is not opened: %v", err)
			} else if l, err := v.GetAccess(one); c.what == "another generation" && err != fs.ErrIO {
				t.Errorf("before it the list is %+v, %v", l, err)
			} else if g, _, failed := v.GetLists(one, true, true); failed != nil ||
				err == fs.ErrIO && !g.Access.Equal(fs.MissingList(0o700)) {
				t.Errorf("clients see %+v, %v", g, failed)
			} else if err := v.Close(); err != nil {
				t.Error(err)
			}
			said := func() (all string) {
				r, err := check.Volume(s.d, check.Options{Data: true})
				if err != nil {
					t.Fatal(err)
				}
				for _, p := range r.Problems {
					all += p.String() + "\n"
				}
				return all
			}
			if is := said(); !strings.Contains(is, c.report) || (c.report == "") != (is == "") {
				t.Errorf("check says %q, not %q", is, c.report)
			}
			if c.want == "" {
				if p, err := NewPlan(s.d, Options{}); err != nil || len(p.Actions) > 0 {
					t.Errorf("nothing is wrong, and a repair would do %v, %v", p.Actions, err)
				}
			} else if acts := repaired(t, s.d); !has(acts, c.want) {
				t.Errorf("no %q in %v", c.want, acts)
			}
			if is := said(); is != "" {
				t.Errorf("after it check says %q", is)
			}
			if v, err = fs.Open(s.d, fs.Options{}); err != nil {
				t.Fatal(err)
			}
			defer v.Close()
			got, err := v.GetAccess(one)
			if err != nil || (got != nil) != c.stay {
				t.Errorf("the list is %+v, %v", got, err)
			}
			a, err := v.Getattr(one)
			if want := map[bool]uint32{true: 0o764, false: 0o700}[c.stay]; err != nil || a.Mode != want {
				t.Errorf("mode %o, %v, want %o", a.Mode, err, want)
			}
			if flags, err := v.Flags(fs.Handle{Ino: s.ino["/a"], Gen: 1}); err != nil || flags != fs.FlagNoDump {
				t.Errorf("flags %#x, %v", flags, err)
			}
		})
	}
}

// Of a table whose first page is lost the others stay, and their numbers mean what they meant.
func TestListsBehind(t *testing.T) {
	long := func(right uint32) *fs.AccessList {
		l := &fs.AccessList{Owner: 7, Mask: 7, Masked: true}
		for id := range uint32(500) {
			l.Named = append(l.Named, fs.AccessEntry{ID: id + 100, Rights: right})
		}
		return l
	}
	s := newSmall(t)
	one, dir := fs.Handle{Ino: s.ino["/one"], Gen: 1}, fs.Handle{Ino: s.ino["/a"], Gen: 1}
	v, err := fs.Open(s.d, fs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		v.SetAccess(&fs.Cred{}, one, long(1)), v.SetAccess(&fs.Cred{}, dir, long(2)), v.Close(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	s.v = newVolume(s.d, s.v.geometry)
	s.wrote(func(v *volume) { v.set64(orphansIno, layout.Pointers, 0) })
	repaired(t, s.d)
	if v, err = fs.Open(s.d, fs.Options{}); err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	for range 2 {
		if l, err := v.GetAccess(dir); err != nil || l == nil || !l.Equal(long(2)) {
			t.Fatalf("the list on the second page is %v, %v", l, err)
		}
		for right := range uint32(3) { // each takes a number
			if err := v.SetAccess(&fs.Cred{}, one, long(right+3)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Lists that no file has go if that is asked for, whole pages of them and single ones, and their numbers are given out
// again. All others stay, as default lists, too.
func TestForgetLists(t *testing.T) {
	list := func(named, right uint32) *fs.AccessList {
		l := &fs.AccessList{Mask: 7, Masked: true}
		for id := range named {
			l.Named = append(l.Named, fs.AccessEntry{ID: id + 100, Rights: right})
		}
		return l
	}
	s := newSmall(t)
	one, dir := fs.Handle{Ino: s.ino["/one"], Gen: 1}, fs.Handle{Ino: s.ino["/a"], Gen: 1}
	opened := func(f func(v *fs.FS) []error) {
		t.Helper()
		v, err := fs.Open(s.d, fs.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range append(f(v), v.Close()) {
			if err != nil {
				t.Fatal(err)
			}
		}
		s.v = newVolume(s.d, s.v.geometry)
	}
	opened(func(v *fs.FS) (errs []error) {
		for _, l := range []*fs.AccessList{list(1, 1), list(1, 2), list(500, 3), list(500, 4), list(1, 5), list(1, 1)} {
			errs = append(errs, v.SetAccess(&fs.Cred{}, one, l)) // numbers 1 to 5, of which 4 is on a second page
		}
		// a mask comes into the table with default lists alone, so this one is number 6, on a third page
		return append(errs, v.SetAccess(&fs.Cred{}, dir, list(1, 2)), v.SetDefault(&fs.Cred{}, dir, list(500, 4)))
	})
	s.set(s.ino["/a"], layout.Entries, 77) // so that there is something to repair
	if p, err := NewPlan(s.d, Options{}); err != nil || has(p.Actions, "no file has") {
		t.Errorf("without being asked it would do %v, %v", p.Actions, err)
	}
	repair := func() (acts []Action) {
		t.Helper()
		p, err := NewPlan(s.d, Options{ForgetLists: true})
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Actions) > 0 {
			after, err := p.Apply(s.d, filepath.Join(t.TempDir(), "undo"))
			if err != nil || !after.Clean() || after.Leftovers > 0 {
				t.Fatalf("after %v it is %+v, %v", p.Actions, after, err)
			}
		}
		s.v = newVolume(s.d, s.v.geometry)
		return p.Actions
	}
	acts := repair()
	if !has(acts, "that no file has go: 2 of 4 in block") ||
		!has(acts, "it is a page of access lists that no file has") {
		t.Errorf("it does %v", acts)
	}
	if acts := repair(); len(acts) > 0 {
		t.Errorf("again it does %v", acts)
	}
	numbers := func(ino uint64) (access, dflt uint32) {
		marks := s.v.inode(ino).w(layout.Marks)
		return marks & accessBits >> 8, marks >> 20
	}
	size := s.v.inode(orphansIno).q(layout.Size)
	opened(func(v *fs.FS) (errs []error) {
		same := func(l *fs.AccessList, err error, want *fs.AccessList) {
			if err != nil || l == nil || !slices.Equal(l.Named, want.Named) {
				t.Errorf("the list is %+v, %v, not %+v", l, err, want)
			}
		}
		l, err := v.GetAccess(one)
		same(l, err, list(1, 1))
		l, err = v.GetAccess(dir)
		same(l, err, list(1, 2))
		l, err = v.GetDefault(dir)
		same(l, err, list(500, 4))
		return []error{v.SetAccess(&fs.Cred{}, one, list(1, 6)), v.SetDefault(&fs.Cred{}, dir, list(1, 7))}
	})
	opened(func(v *fs.FS) []error { // the second has no room on the first page
		return []error{v.SetAccess(&fs.Cred{}, one, list(500, 6)), v.SetAccess(&fs.Cred{}, one, list(500, 7))}
	})
	if now := s.v.inode(orphansIno).q(layout.Size); now != size {
		t.Errorf("the table's file has %d bytes, and had %d: the room of what is gone is not used again", now, size)
	}
	opened(func(v *fs.FS) []error { return []error{v.SetAccess(&fs.Cred{}, one, list(1, 6))} })
	if a, _ := numbers(one.Ino); a != 3 {
		t.Errorf("the next list has the number %d, not 3", a)
	}
	if a, d := numbers(dir.Ino); a != 2 || d != 4 {
		t.Errorf("the directory has the lists %d and %d, not 2 and 4", a, d)
	}
}

// oneForgotten is a volume with two access lists, of which /one has the second, and no file the first.
func oneForgotten(t *testing.T) *small {
	t.Helper()
	s := newSmall(t)
	v, err := fs.Open(s.d, fs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	one := fs.Handle{Ino: s.ino["/one"], Gen: 1}
	for _, l := range []*fs.AccessList{{Mask: 7, Masked: true}, {Mask: 7, Masked: true, Group: 5}} {
		if err := v.SetAccess(&fs.Cred{}, one, l); err != nil {
			t.Fatal(err)
		}
	}
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	return s
}

// While inodes cannot be read, nobody knows which lists they have: none is forgotten.
func TestForgetNoLists(t *testing.T) {
	s := oneForgotten(t)
	s.v = newVolume(s.l, s.v.geometry)
	bad := s.v.itab + 1 // of inodes that are not in use, which nobody can know now
	d := disk.NewFault(s.d, 1, func(op disk.Op, _ *rand.Rand) disk.Harm {
		if op.Kind == disk.Read && op.Addr <= bad && bad < op.Addr+uint64(op.Blocks) {
			return disk.Harm{Err: syscall.EIO}
		}
		return disk.Harm{}
	})
	p, err := NewPlan(d, Options{ForgetLists: true})
	if err != nil || has(p.Actions, "no file has") {
		t.Errorf("it would do %v, %v", p.Actions, err)
	}
}

// A file that has a page of the table as well gets a copy of it as it was.
func TestForgetSharedLists(t *testing.T) {
	s := oneForgotten(t)
	s.v = newVolume(s.d, s.v.geometry)
	var was []byte
	s.wrote(func(v *volume) {
		b := v.inode(orphansIno).q(layout.Pointers)
		was = slices.Clone(v.contents(b))
		v.set64(s.ino["/a/two"], layout.Pointers, b)
	})
	p, err := NewPlan(s.d, Options{ForgetLists: true})
	if err != nil {
		t.Fatal(err)
	}
	after, err := p.Apply(s.d, filepath.Join(t.TempDir(), "undo"))
	if err != nil || !after.Clean() || !has(p.Actions, "no file has go: 1 of 2") {
		t.Fatalf("left %v, %v after %v", after.Problems, err, p.Actions)
	}
	s.v = newVolume(s.d, s.v.geometry)
	if b := s.v.inode(s.ino["/a/two"]).q(layout.Pointers); !slices.Equal(s.v.contents(b), was) {
		t.Error("the copy is another one")
	}
}
