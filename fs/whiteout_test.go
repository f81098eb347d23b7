package fs_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"tansy/disk"
	"tansy/fs"
	"tansy/fs/model"
	"tansy/offline/check"
	"tansy/test/kit/replay"
)

// A leaver is a volume in which names go and leave whiteouts, and the model of it.
type leaver struct {
	v    *fs.FS
	m    *model.Model
	dirs [][2]fs.Handle // of the volume and of the model
}

// add makes a directory, a file, or another name of one, in both.
func (l *leaver) add(t *testing.T, r *rand.Rand, name string) {
	t.Helper()
	in := l.dirs[r.IntN(len(l.dirs))]
	mode := uint32(0o755 | r.IntN(2)<<10) // some have setgid
	var made [2]fs.Handle
	for i, f := range []fs.FileSystem{l.v, l.m} {
		var n fs.Node
		var err error
		if len(name)%2 == 0 {
			n, err = f.Mkdir(root, in[i], []byte(name), &fs.SetAttr{Mode: &mode})
		} else if n, err = f.Create(root, in[i], []byte(name), fs.Guarded, &fs.SetAttr{}, 0); err == nil {
			_, _, err = f.Link(root, n.Handle, in[i], []byte(name+"'"))
		}
		if err != nil {
			t.Fatal(err)
		}
		made[i] = n.Handle
	}
	if len(name)%2 == 0 {
		l.dirs = append(l.dirs, made)
	}
}

// pick returns the name of a file in a directory, or of none.
func (l *leaver) pick(r *rand.Rand, dir [2]fs.Handle, names []string) []byte {
	for range len(names) {
		name := []byte(names[r.IntN(len(names))])
		if _, err := l.m.Lookup(root, dir[1], name); err == nil || r.IntN(50) == 0 {
			return name
		}
	}
	return []byte("none")
}

// onModel is what WHITEOUT has to come to: both names are of one file, or RENAME and then MKNOD.
func (l *leaver) onModel(who *fs.Cred, owner uint32, from fs.Handle, name []byte, to fs.Handle, newName []byte) error {
	one, err := l.m.Lookup(who, from, name)
	other, err2 := l.m.Lookup(who, to, newName)
	if _, _, err := l.m.Rename(who, from, name, to, newName); err != nil {
		return err
	}
	if err == nil && err2 == nil && one.Handle == other.Handle {
		return nil
	}
	mode := uint32(0)
	_, err = l.m.Mknod(who, from, name, fs.Char, &fs.SetAttr{Mode: &mode, UID: &owner}, 0, 0)
	return err
}

// below says what is in a directory and below: names, kinds, and what a whiteout has.
func below(t *testing.T, f fs.FileSystem, dir fs.Handle, into map[string]string, at string, names []string) {
	t.Helper()
	for _, name := range names {
		n, err := f.Lookup(root, dir, []byte(name))
		if errors.Is(err, fs.ErrNoEnt) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		a := n.Attr
		into[at+"/"+name] = fmt.Sprint(a.Type, a.Mode, a.Nlink, a.UID, a.GID, a.Major, a.Minor)
		if a.Type == fs.Directory {
			below(t, f, n.Handle, into, at+"/"+name, names)
		}
	}
}

// compare tells what differs.
func (l *leaver) compare(t *testing.T, names []string) {
	t.Helper()
	got, want := map[string]string{}, map[string]string{}
	below(t, l.v, l.v.Root(), got, "", names)
	below(t, l.m, l.m.Root(), want, "", names)
	for path, w := range want {
		if got[path] != w {
			t.Fatalf("%s is %q, want %q", path, got[path], w)
		}
	}
	if len(got) != len(want) {
		t.Fatalf("%d files, want %d", len(got), len(want))
	}
}

// TestWhiteout: a name that goes leaves a whiteout, of files, directories, and whiteouts, over others and itself, or it
// is refused for the right reason. It is as RENAME and MKNOD are in the model, and the volume is sound.
func TestWhiteout(t *testing.T) {
	r := rand.New(rand.NewPCG(replay.Seed(t), 0))
	d := disk.NewMem(16 << 20)
	mkfs(t, d, fs.MkfsOptions{Zeroed: true, Inodes: 3000})
	v := open(t, d, fs.Options{})
	l := &leaver{v: v, m: model.New(model.Options{})}
	l.dirs = [][2]fs.Handle{{v.Root(), l.m.Root()}}
	var names []string
	for i := range 40 {
		name := fmt.Sprint(i)
		l.add(t, r, name)
		names = append(names, name, name+"'")
	}
	done := map[error]int{}
	for i := range 1500 {
		from, to := l.dirs[r.IntN(len(l.dirs))], l.dirs[r.IntN(len(l.dirs))]
		name, newName := l.pick(r, from, names), l.pick(r, to, names)
		if r.IntN(8) == 0 {
			to, newName = from, []byte(string(name)+"'") // the other name of the same file, at first
		}
		who, owner := &fs.Cred{GID: uint32(r.IntN(3))}, uint32(r.IntN(3))
		if r.IntN(20) == 0 {
			who.UID = 7
		}
		got := v.Whiteout(who, owner, from[0], name, to[0], newName)
		want := l.onModel(who, owner, from[1], name, to[1], newName)
		if !errors.Is(got, want) {
			t.Fatalf("whiteout %d: %v, want %v", i, got, want)
		}
		done[want]++
		if i%300 == 0 {
			l.compare(t, names)
		}
	}
	l.compare(t, names)
	if done[nil] < 50 || done[fs.ErrNoEnt] < 50 || done[fs.ErrInval]+done[fs.ErrNotDir]+done[fs.ErrIsDir] < 5 {
		t.Errorf("%v", done)
	}
	rootOnly(t, v)
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	if rep, err := check.Volume(d, check.Options{Data: true}); err != nil || !rep.Clean() {
		t.Fatal(rep.Problems, err)
	}
}

// rootOnly: who is not root may rename a file, but not leave a whiteout.
func rootOnly(t *testing.T, v *fs.FS) {
	t.Helper()
	mode, eve := uint32(0o777), &fs.Cred{UID: 7}
	dir, err := v.Mkdir(root, v.Root(), []byte("all"), &fs.SetAttr{Mode: &mode})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := v.Create(eve, dir.Handle, []byte("a"), fs.Guarded, &fs.SetAttr{}, 0); err != nil {
		t.Fatal(err)
	}
	if err := v.Whiteout(eve, 7, dir.Handle, []byte("a"), dir.Handle, []byte("b")); err != fs.ErrPerm {
		t.Errorf("a whiteout of who is not root: %v", err)
	}
	if _, err := v.Lookup(eve, dir.Handle, []byte("a")); err != nil {
		t.Error("the file has gone for all that")
	}
	if err := v.Whiteout(root, 7, dir.Handle, []byte("a"), dir.Handle, []byte("b")); err != nil {
		t.Error(err)
	}
}
