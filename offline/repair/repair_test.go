package repair

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"tansy/disk"
	"tansy/fs"
	"tansy/internal/layout"
	"tansy/internal/runtime/dbytes"
	"tansy/offline/check"
)

// farBelow is how far a volume can grow that can.
const farBelow = 1 << 40

// A small is a volume with directories /a/b/c, and files /one, /a/two and /a/b/c/three of 100,000 bytes.
type small struct {
	t   *testing.T
	d   *disk.Mem
	l   disk.Disk // the layout on d
	v   *volume   // reads l; make it anew after a change
	ino map[string]uint64
}

func newSmall(t *testing.T) *small {
	t.Helper()
	return newSmallUpTo(t, 0)
}

// newSmallUpTo makes a volume that can grow up to so many bytes; 0: it cannot.
func newSmallUpTo(t *testing.T, most uint64) *small {
	t.Helper()
	s := &small{t: t, d: disk.NewMem(3000 * disk.BlockSize), ino: map[string]uint64{}}
	try := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	try(fs.Mkfs(s.d, fs.MkfsOptions{Zeroed: true, LogBytes: 5 << 20, Inodes: 200, MaxBytes: most}))
	v, err := fs.Open(s.d, fs.Options{})
	try(err)
	dirs := map[string]fs.Handle{"": v.Root()}
	for _, path := range []string{"/a", "/a/b", "/a/b/c"} {
		n, err := v.Mkdir(&fs.Cred{}, dirs[filepath.Dir(path)[1:]], []byte(filepath.Base(path)), &fs.SetAttr{})
		try(err)
		dirs[path[1:]], s.ino[path] = n.Handle, n.Handle.Ino
	}
	for _, path := range []string{"/one", "/a/two", "/a/b/c/three"} {
		n, err := v.Create(&fs.Cred{}, dirs[filepath.Dir(path)[1:]], []byte(filepath.Base(path)), fs.Guarded,
			&fs.SetAttr{}, 0)
		try(err)
		_, _, _, err = v.Write(&fs.Cred{}, n.Handle, 0, slices.Repeat([]byte(filepath.Base(path)[:2]), 50_000), fs.FileSync)
		try(err)
		s.ino[path] = n.Handle.Ino
	}
	try(v.Close())
	s.l = layoutOf(t, s.d)
	s.v = newVolume(s.l, geometryOf(t, s.d))
	return s
}

// change changes block a of the layout.
func (s *small) change(a uint64, f func(b []byte)) {
	s.t.Helper()
	b := block(s.t, s.l, a)
	f(b)
	put(s.t, s.l, a, b)
	s.v = newVolume(s.l, s.v.geometry)
}

// set changes a field of 8 bytes of an inode.
func (s *small) set(ino uint64, off int, x uint64) {
	s.t.Helper()
	a, at := s.v.inodeBlock(ino)
	s.change(a, func(b []byte) { binary.LittleEndian.PutUint64(b[at+off:], x) })
}

// enter puts an entry into a directory of one block.
func (s *small) enter(dir uint64, name string, ino uint64) {
	s.t.Helper()
	s.change(s.v.inode(dir).q(layout.Pointers), func(b []byte) {
		off := 0
		for !zeros(b[off : off+layout.ShortSlot]) {
			off += layout.ShortSlot
		}
		tag := dbytes.XXH64([]byte(name)) >> 56
		binary.LittleEndian.PutUint64(b[off:], ino|uint64(len(name))<<48|tag<<56)
		copy(b[off+8:], name)
	})
}

// leave takes an entry away.
func (s *small) leave(dir uint64, name string) {
	s.t.Helper()
	s.change(s.v.inode(dir).q(layout.Pointers), func(b []byte) {
		for off := 0; off < len(b); off += layout.ShortSlot {
			if strings.TrimRight(string(b[off+8:off+layout.ShortSlot]), "\x00") == name {
				clear(b[off : off+layout.ShortSlot])
				return
			}
		}
		s.t.Fatalf("no %q", name)
	})
}

// Each kind of damage to the tree of names, and to block trees, is repaired in the way that the documentation says.
func TestRepair(t *testing.T) {
	for _, c := range []struct {
		what string
		harm func(s *small)
		want []string // of the actions
	}{
		{"circle", func(s *small) {
			s.leave(rootIno, "a")
			s.enter(s.ino["/a/b/c"], "again", s.ino["/a"])
			s.set(s.ino["/a"], layout.Parent, s.ino["/a/b/c"])
		}, []string{"a directory has one name, and is no part of itself", "becomes /lost+found/#"}},
		{"two names", func(s *small) { s.enter(rootIno, "second", s.ino["/a/b"]) },
			[]string{`entry "second", which names inode`}},
		{"wrong parent", func(s *small) { s.set(s.ino["/a/b"], layout.Parent, rootIno) },
			[]string{"the parent becomes the directory that names it"}},
		{"no name", func(s *small) { s.leave(s.ino["/a"], "two") }, []string{`becomes /lost+found/#`, `["/lost+found/#`}},
		{"no name for a tree", func(s *small) { s.leave(rootIno, "a") }, []string{`becomes /lost+found/#`}},
		{"lost+found is a file", func(s *small) {
			s.leave(s.ino["/a"], "two")
			s.leave(rootIno, "one")
			s.enter(rootIno, "lost+found", s.ino["/one"])
		}, []string{`becomes /lost+found.2/#`}},
		{"name of a free inode", func(s *small) { s.enter(rootIno, "nobody", 150) },
			[]string{`entry "nobody", which names inode 150, is removed: there is no such file`}},
		{"name of an impossible inode",
			func(s *small) { s.enter(rootIno, "nobody", 1<<40) }, []string{"there can be no such file"}},
		{"the root as an entry",
			func(s *small) { s.enter(s.ino["/a"], "up", rootIno) }, []string{"there can be no such file"}},
		{"impossible name", func(s *small) { s.enter(rootIno, "x/y", s.ino["/one"]) }, []string{"the name is not possible"}},
		{"name twice", func(s *small) { s.enter(rootIno, "one", s.ino["/a/two"]) }, []string{"the name is there twice"}},
		{"shared block", func(s *small) {
			s.set(s.ino["/a/two"], layout.Pointers+8*3, s.v.inode(s.ino["/one"]).q(layout.Pointers+8*5))
		},
			[]string{`which gets a copy ["/one"]`, `which is in use by inode`, `["/a/two"]`}},
		{"block of another file", func(s *small) {
			s.set(s.ino["/one"], layout.Pointers+8*3, s.v.inode(s.ino["/a/two"]).q(layout.Pointers+8*5))
			s.set(s.ino["/one"], layout.Used, 3) // so that it is known which of the two is wrong
		}, []string{`which gets a copy ["/a/two"]`, `block 3 of the file (level 0) becomes a copy of`}},
		{"shared indirect block", func(s *small) {
			s.set(s.ino["/one"], layout.Pointers+8*12, s.v.inode(s.ino["/a/two"]).q(layout.Pointers+8*12))
		},
			[]string{`which gets a copy ["/one"]`, `["/a/two"]`}},
		{"pointer to nowhere", func(s *small) { s.set(s.ino["/one"], layout.Pointers+8*5, 1<<40) },
			[]string{`block 5 of the file (level 0) becomes a hole: 1099511627776 is no data block ["/one"]`}},
		{"data as an indirect block", func(s *small) {
			s.set(s.ino["/one"], layout.Pointers+8*12, s.v.inode(s.ino["/a/two"]).q(layout.Pointers))
		},
			[]string{`are no block numbers ["/one"]`}},
		{"a size too small", func(s *small) { s.set(s.ino["/one"], layout.Size, 4096) },
			[]string{`the size becomes that of the blocks: where the file ends is not known (102400, was 4096) ["/one"]`}},
		{"a directory without its type", func(s *small) {
			a, at := s.v.inodeBlock(s.ino["/a/b"])
			s.change(a, func(b []byte) { b[at] = 0 })
		}, []string{"the file becomes a directory"}},
		{"no root", func(s *small) {
			a, at := s.v.inodeBlock(rootIno)
			s.change(a, func(b []byte) { clear(b[at : at+layout.InodeSize]) })
		}, []string{"the root becomes a directory", "becomes /lost+found/#"}},
		{"an owner and a group that nobody is", func(s *small) {
			a, at := s.v.inodeBlock(s.ino["/one"])
			s.change(a, func(b []byte) { binary.LittleEndian.PutUint64(b[at+layout.UID:], 1<<64-1) })
		}, []string{`the owner, who is no user, becomes nobody (0xfffe, was 0xffffffff) ["/one"]`,
			`the group, which is none, becomes nobody's (0xfffe, was 0xffffffff) ["/one"]`}},
		{"circle of orphans", func(s *small) { s.set(orphansIno, layout.Next, s.ino["/one"]) },
			[]string{"the orphan list is made anew, with 0 files"}},
	} {
		once := func(t *testing.T, most uint64) {
			s := newSmallUpTo(t, most)
			was := filesOf(t, s.d)
			c.harm(s)
			acts := repaired(t, s.d)
			for _, w := range c.want {
				if !has(acts, w) {
					t.Errorf("no %q in %v", w, acts)
				}
			}
			now := filesOf(t, s.d)
			changed := 0
			for ino, f := range was {
				if now[ino] != f {
					changed++
				}
			}
			if limit := map[bool]int{true: 1, false: 0}[strings.Contains(strings.Join(c.want, ""), "level") || slices.Contains(
				[]string{"shared block", "block of another file", "shared indirect block", "data as an indirect block",
					"a size too small", "no root", "an owner and a group that nobody is"}, c.what)]; changed > limit {
				t.Errorf("%d files changed, after %v", changed, acts)
			}
		}
		t.Run(c.what, func(t *testing.T) { once(t, 0) })
		t.Run(c.what+", of a volume that can grow", func(t *testing.T) { once(t, farBelow) })
	}
}

// Of a block of a directory that holds something else the first entries are told, and how many more there are.
func TestGarbageInDirectory(t *testing.T) {
	s := newSmall(t)
	a := s.v.inode(s.ino["/a/b"]).q(layout.Pointers)
	garbage := 0
	s.change(a, func(b []byte) {
		for off := layout.ShortSlot; off < len(b); off += layout.ShortSlot {
			binary.LittleEndian.PutUint64(b[off:], 77|200<<48) // a name that is too long for its slot
			garbage++
		}
	})
	acts := repaired(t, s.d)
	removed := 0
	for _, x := range acts {
		if strings.Contains(x.Text, "the length of the name does not fit") {
			removed++
		}
	}
	more := fmt.Sprintf("and %d more such entries of block %d are removed", garbage-4, a)
	if removed != 4 || !has(acts, more) {
		t.Errorf("%d entries are told, and no %q in %v", removed, more, acts)
	}
}

// While blocks cannot be read nothing is freed, and no file is taken for lost: what else is damaged is repaired, and
// the blocks are what is left.
func TestUnreadable(t *testing.T) {
	for _, what := range []string{
		"indirect block", "inodes", "directory", "bitmap of blocks", "bitmap of inodes", "copy of the superblock",
	} {
		t.Run(what, func(t *testing.T) {
			s := newSmall(t)
			bad := map[string]uint64{
				"indirect block":   s.v.inode(s.ino["/one"]).q(layout.Pointers + 8*12),
				"directory":        s.v.inode(s.ino["/a/b"]).q(layout.Pointers),
				"bitmap of blocks": s.v.bbm, "bitmap of inodes": s.v.ibm, "copy of the superblock": s.d.Size() - 1,
			}[what]
			whole := contents(t, s.d)
			if what == "inodes" {
				// all but the first inodes: the first block has the root, without which nothing goes
				v, err := fs.Open(s.d, fs.Options{})
				if err != nil {
					t.Fatal(err)
				}
				for i := range 20 {
					if _, err := v.Mkdir(&fs.Cred{}, v.Root(), fmt.Appendf(nil, "d%d", i), &fs.SetAttr{}); err != nil {
						t.Fatal(err)
					}
				}
				if err := v.Close(); err != nil {
					t.Fatal(err)
				}
				whole = contents(t, s.d)
				bad = s.v.itab + 1
			}
			// and a damage besides: the directory's count of entries
			s.set(s.ino["/a"], layout.Entries, 77)
			written := false
			d := disk.NewFault(s.d, 1, func(op disk.Op, _ *rand.Rand) disk.Harm {
				if op.Addr <= bad && bad < op.Addr+uint64(op.Blocks) {
					switch op.Kind {
					case disk.Write:
						written = true // which makes the block whole, as disks do
					case disk.Read:
						if !written {
							return disk.Harm{Err: syscall.EIO}
						}
					}
				}
				return disk.Harm{}
			})
			p, err := NewPlan(d, Options{})
			if err != nil {
				t.Fatal(err)
			}
			after, err := p.Apply(d, filepath.Join(t.TempDir(), "undo"))
			if err != nil {
				t.Fatal(err)
			}
			if mends := strings.HasPrefix(what, "bitmap") || strings.HasPrefix(what, "copy"); mends != after.Clean() || len(after.Problems) > 1 {
				t.Errorf("left: %v\nafter %v", after.Problems, p.Actions)
			}
			now := contents(t, s.d)
			for a := s.v.ibm; a <= s.d.Size()-1; a++ {
				if string(now[a]) != string(whole[a]) {
					t.Errorf("block %d is not what it was before the damage\nafter %v", a, p.Actions)
				}
			}
			if p, err := NewPlan(d, Options{}); err != nil || len(p.Actions) > 0 {
				t.Errorf("a second repair does %v, %v", p.Actions, err)
			}
		})
	}
}

// A repair that a failing device ends anywhere can be undone, and another repair finishes it.
func TestInterrupted(t *testing.T) {
	s := newSmall(t)
	s.leave(rootIno, "a")
	s.set(s.ino["/one"], layout.Pointers+8*5, 1<<40)
	put(t, s.d, s.d.Size()-1, make([]byte, disk.BlockSize))
	put(t, s.d, s.v.bbm, make([]byte, disk.BlockSize))
	damaged := contents(t, s.d)
	for n := 1; ; n++ {
		d := device(t, s.d.Size(), damaged)
		p, err := NewPlan(d, Options{})
		if err != nil {
			t.Fatal(err)
		}
		writes := 0
		f := disk.NewFault(d, 1, func(op disk.Op, _ *rand.Rand) disk.Harm {
			if op.Kind == disk.Write {
				writes++
			}
			if writes >= n && op.Kind != disk.Read {
				return disk.Harm{Err: syscall.EIO}
			}
			return disk.Harm{}
		})
		undo := filepath.Join(t.TempDir(), "undo")
		_, err = p.Apply(f, undo)
		if err == nil {
			if n < 5 {
				t.Errorf("only %d writes", n)
			}
			return
		}
		half := contents(t, d)
		u, err := LoadUndo(undo)
		if err == nil {
			err = u.Apply(d)
		}
		if err != nil {
			t.Fatal(err)
		}
		same(t, d, damaged)
		d = device(t, s.d.Size(), half)
		if p, err = NewPlan(d, Options{}); err == nil && len(p.Actions) > 0 {
			_, err = p.Apply(d, undo+"2")
		}
		if rep, e := check.Volume(d, check.Options{}); err != nil || e != nil || !rep.Clean() {
			t.Fatalf("write %d: %v, %v, %v", n, err, e, rep.Problems)
		}
	}
}

// Undoing is refused once the volume was opened again, for another volume, and with a damaged undo file.
func TestUndoRefused(t *testing.T) {
	s := newSmall(t)
	s.leave(s.ino["/a"], "two")
	p, err := NewPlan(s.d, Options{})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "undo")
	if _, err := p.Apply(s.d, path); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Apply(s.d, path); err == nil {
		t.Error("the undo file was written over")
	}
	u, err := LoadUndo(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := u.Check(s.d); err != nil {
		t.Error(err)
	}
	if err := u.Check(newSmall(t).d); err == nil || errors.Is(err, ErrChanged) {
		t.Errorf("another volume: %v", err)
	}
	v, err := fs.Open(s.d, fs.Options{})
	if err == nil {
		err = v.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	was := contents(t, s.d)
	if err := u.Apply(s.d); !errors.Is(err, ErrChanged) {
		t.Error(err)
	}
	same(t, s.d, was)

	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []int{3, 20, undoHeader + 1000, undoHeader + undoRecord + 4} {
		bad := slices.Clone(whole)
		bad[at] ^= 1
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := LoadUndo(path); err == nil {
			t.Errorf("byte %d of the undo file is wrong, which is not noticed", at)
		}
	}
}

// The undo file has what the plan overwrites before anything is written, and gets what the plan did not foresee before
// that is written.
func TestUndoFirst(t *testing.T) {
	s := newSmall(t)
	s.leave(s.ino["/a"], "two")
	damaged := contents(t, s.d)
	p, err := NewPlan(s.d, Options{})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	first := filepath.Join(dir, "first")
	f := disk.NewFault(s.d, 1, func(op disk.Op, _ *rand.Rand) disk.Harm {
		if op.Kind == disk.Write {
			return disk.Harm{Err: syscall.EIO}
		}
		return disk.Harm{}
	})
	if _, err := p.Apply(f, first); err == nil {
		t.Fatal("a device that cannot be written was repaired")
	}
	if u, err := LoadUndo(first); err != nil || u.Blocks != uint64(len(p.blocks)) || u.Blocks < 5 {
		t.Fatalf("%d blocks in the undo file, %d will be written; %v", u.Blocks, len(p.blocks), err)
	}
	p.blocks = p.blocks[:2]
	second := filepath.Join(dir, "second")
	if _, err := p.Apply(s.d, second); err != nil {
		t.Fatal(err)
	}
	u, err := LoadUndo(second)
	if err == nil {
		err = u.Apply(s.d)
	}
	if err != nil {
		t.Fatal(err)
	}
	same(t, s.d, damaged)
}
