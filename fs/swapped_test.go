package fs_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"tansy/disk"
	"tansy/fs"
	"tansy/offline/check"
	"tansy/test/kit/replay"
)

// A swapper is a volume in which names change places, and what its directories are to have.
type swapper struct {
	v     *fs.FS
	dirs  map[uint64]map[string]fs.Handle // by inode of the directory
	above map[uint64]uint64               // of directories
	node  map[uint64]fs.Handle            // directories
}

func newSwapper(t *testing.T, v *fs.FS) *swapper {
	t.Helper()
	s := &swapper{v, map[uint64]map[string]fs.Handle{}, map[uint64]uint64{}, map[uint64]fs.Handle{}}
	s.dirs[v.Root().Ino], s.node[v.Root().Ino], s.above[v.Root().Ino] = map[string]fs.Handle{}, v.Root(), v.Root().Ino
	return s
}

// add makes a directory, or a file, in dir.
func (s *swapper) add(t *testing.T, dir fs.Handle, name string, isDir bool) {
	t.Helper()
	var n fs.Node
	var err error
	if isDir {
		n, err = s.v.Mkdir(root, dir, []byte(name), &fs.SetAttr{})
	} else {
		n, err = s.v.Create(root, dir, []byte(name), fs.Guarded, &fs.SetAttr{}, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.dirs[dir.Ino][name] = n.Handle
	if isDir {
		s.dirs[n.Handle.Ino], s.node[n.Handle.Ino], s.above[n.Handle.Ino] = map[string]fs.Handle{}, n.Handle, dir.Ino
	}
}

// below: directory x is top, or below it.
func (s *swapper) below(x, top uint64) bool {
	for ; x != top; x = s.above[x] {
		if x == s.above[x] {
			return false
		}
	}
	return true
}

// exchange does so, and says what the error has to be.
func (s *swapper) exchange(from uint64, fromName string, to uint64, toName string) (got, want error) {
	got = s.v.Exchange(root, s.node[from], []byte(fromName), s.node[to], []byte(toName))
	one, ok := s.dirs[from][fromName]
	other, ok2 := s.dirs[to][toName]
	isDir := func(h fs.Handle) bool { return s.dirs[h.Ino] != nil }
	switch {
	case !ok || !ok2:
		return got, fs.ErrNoEnt
	case one == other:
		return got, nil
	case isDir(one) && s.below(to, one.Ino) || isDir(other) && s.below(from, other.Ino):
		return got, fs.ErrInval
	}
	s.dirs[from][fromName], s.dirs[to][toName] = other, one
	if isDir(one) {
		s.above[one.Ino] = to
	}
	if isDir(other) {
		s.above[other.Ino] = from
	}
	return got, nil
}

// verify compares all directories.
func (s *swapper) verify(t *testing.T) {
	t.Helper()
	for ino, entries := range s.dirs {
		links := uint32(2)
		for name, want := range entries {
			n, err := s.v.Lookup(root, s.node[ino], []byte(name))
			if err != nil || n.Handle != want {
				t.Fatalf("%q in inode %d is %v, want %v: %v", name, ino, n.Handle, want, err)
			}
			if s.dirs[want.Ino] != nil {
				links++
			}
		}
		up, err := s.v.Lookup(root, s.node[ino], []byte(".."))
		if err != nil || up.Handle.Ino != s.above[ino] {
			t.Fatalf("above inode %d is %v, want %d: %v", ino, up.Handle, s.above[ino], err)
		}
		a, err := s.v.Getattr(s.node[ino])
		if err != nil || a.Nlink != links {
			t.Fatalf("inode %d has %d links, want %d: %v", ino, a.Nlink, links, err)
		}
	}
}

// TestExchange: any two names change places, of files and directories, in one directory or across, or it is refused for
// the right reason; all else stays, and the volume is sound. It takes no room.
func TestExchange(t *testing.T) {
	r := rand.New(rand.NewPCG(replay.Seed(t), 0))
	d := disk.NewMem(8 << 20)
	mkfs(t, d, fs.MkfsOptions{Zeroed: true, Inodes: 400})
	v := open(t, d, fs.Options{})
	s := newSwapper(t, v)
	dirs := []uint64{v.Root().Ino}
	for i := range 60 {
		in := dirs[r.IntN(len(dirs))]
		s.add(t, s.node[in], fmt.Sprint(i), i%2 == 0)
		if h := s.dirs[in][fmt.Sprint(i)]; i%2 == 0 {
			dirs = append(dirs, h.Ino)
		}
	}
	done := map[error]int{}
	any := func(in uint64) string {
		for name := range s.dirs[in] {
			if r.IntN(3) == 0 {
				return name
			}
		}
		return fmt.Sprint(r.IntN(60))
	}
	before, err := v.Space()
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3000 {
		from, to := dirs[r.IntN(len(dirs))], dirs[r.IntN(len(dirs))]
		got, want := s.exchange(from, any(from), to, any(to))
		if !errors.Is(got, want) {
			t.Fatalf("exchange %d: %v, want %v", i, got, want)
		}
		done[want]++
		if i%300 == 0 {
			s.verify(t)
		}
	}
	s.verify(t)
	if done[nil] < 100 || done[fs.ErrInval] < 20 || done[fs.ErrNoEnt] < 20 {
		t.Errorf("%v", done)
	}
	if after, err := v.Space(); err != nil || after.FreeBytes != before.FreeBytes {
		t.Errorf("%d bytes were free, and are %d: %v", before.FreeBytes, after.FreeBytes, err)
	}
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	if rep, err := check.Volume(d, check.Options{Data: true}); err != nil || !rep.Clean() {
		t.Fatal(rep.Problems, err)
	}
}
