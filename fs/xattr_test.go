package fs_test

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"strings"
	"sync"
	"testing"

	"tansy/disk"
	"tansy/fs"
	"tansy/offline/check"
	"tansy/test/kit/replay"
)

// An attributed is a file, and what extended attributes it is to have.
type attributed struct {
	handle fs.Handle
	list   map[string]string
	names  int
}

func some[T any](x T) *T { return &x }

// room is what a list takes of a block.
func room(list map[string]string) (n int) {
	n = 8
	for name, value := range list {
		n += 4 + len(name) + len(value)
	}
	return n
}

// seen describes the attributes of a file.
func seen(t testing.TB, v *fs.FS, h fs.Handle) string {
	t.Helper()
	names, err := v.ListXattr(h)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for name := range strings.SplitSeq(strings.TrimSuffix(string(names), "\x00"), "\x00") {
		if name == "" {
			continue
		}
		value, err := v.GetXattr(h, []byte(name))
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, fmt.Sprintf("%s=%x", name, value))
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

func described(list map[string]string) string {
	var all []string
	for name, value := range list {
		all = append(all, fmt.Sprintf("%s=%x", name, value))
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// someName is a name, as a rule one of a few.
func someName(rnd *rand.Rand) string {
	if rnd.Intn(8) == 0 {
		return "user." + strings.Repeat(string(rune('a'+rnd.Intn(3))), rnd.Intn(250)+1)
	}
	return []string{"user.a", "user.ab", "user.b", "trusted.x", "security.capability", "security.selinux"}[rnd.Intn(6)]
}

func someValue(rnd *rand.Rand) string {
	n := rnd.Intn(40)
	switch rnd.Intn(6) {
	case 0:
		n = 0
	case 1:
		n = rnd.Intn(4500)
	}
	value := make([]byte, n)
	rnd.Read(value)
	return string(value)
}

// change does something at random to the attributes of a file, and compares what is said of it.
func (f *attributed) change(t testing.TB, v *fs.FS, rnd *rand.Rand) {
	t.Helper()
	name, value := someName(rnd), someValue(rnd)
	before, err := v.Getattr(f.handle)
	if err != nil {
		t.Fatal(err)
	}
	_, has := f.list[name]
	next := maps.Clone(f.list)
	var want error
	if rnd.Intn(3) == 0 {
		if delete(next, name); !has {
			want = fs.ErrNoEnt
		}
		err = v.RemoveXattr(f.handle, []byte(name))
	} else {
		create, replace := rnd.Intn(5) == 0, rnd.Intn(5) == 0
		switch next[name] = value; {
		case create && has:
			want = fs.ErrExist
		case replace && !has:
			want = fs.ErrNoEnt
		case room(next) > fs.BlockSize:
			want = fs.ErrNoSpc
		}
		err = v.SetXattr(f.handle, []byte(name), []byte(value), create, replace)
	}
	if err != want {
		t.Fatalf("%q of %d bytes to %d bytes: %v, want %v", name, len(value), room(f.list), err, want)
	}
	after, err := v.Getattr(f.handle)
	if err != nil {
		t.Fatal(err)
	}
	later := after.Ctime.Sec > before.Ctime.Sec ||
		after.Ctime.Sec == before.Ctime.Sec && after.Ctime.Nsec > before.Ctime.Nsec
	if want == nil {
		f.list = next
		before.Ctime = after.Ctime
	}
	if later != (want == nil) || after != before {
		t.Fatalf("%v, and the file was %+v and is %+v", want, before, after)
	}
}

// Attributes are those of a map for each file, through reopening, also of what has them in the root; a new file has
// none, whatever had its inode before; and what goes gives its room back.
func TestXattrs(t *testing.T) {
	rnd := rand.New(rand.NewSource(int64(replay.Seed(t))))
	d := disk.NewMem(4000 * disk.BlockSize)
	mkfs(t, d, fs.MkfsOptions{Zeroed: true, Inodes: 64})
	v := open(t, d, fs.Options{Deferred: true})
	files := map[string]*attributed{"": {handle: v.Root(), list: map[string]string{}, names: 1}}
	var gone []fs.Handle
	lose := func(name string) {
		f := files[name]
		delete(files, name)
		if f == nil {
			return
		}
		if f.names--; f.names == 0 {
			gone = append(gone, f.handle)
		}
	}
	for round := range 6 {
		for range 250 {
			name, other := fmt.Sprint("f", rnd.Intn(8)), fmt.Sprint("f", rnd.Intn(8))
			f := files[name]
			switch op := rnd.Intn(12); {
			case f == nil:
				var n fs.Node
				var err error
				if op%4 == 0 {
					n, err = v.Mkdir(root, v.Root(), []byte(name), nil)
				} else {
					n, err = v.Create(root, v.Root(), []byte(name), fs.Guarded, nil, 0)
				}
				if err != nil {
					t.Fatal(err)
				}
				files[name] = &attributed{n.Handle, map[string]string{}, 1}
			case op == 0:
				a, err := v.Getattr(f.handle)
				if err == nil && a.Type == fs.Directory {
					_, err = v.Rmdir(root, v.Root(), []byte(name))
				} else if err == nil {
					_, err = v.Remove(root, v.Root(), []byte(name))
				}
				if err != nil {
					t.Fatal(err)
				}
				lose(name)
			case op == 1 && name != other && files[other] != nil && files[other] != f:
				if _, _, err := v.Rename(root, v.Root(), []byte(name), v.Root(), []byte(other)); err == nil {
					lose(other)
					files[other] = f
					delete(files, name)
				} else if err != fs.ErrIsDir && err != fs.ErrNotDir {
					t.Fatal(err)
				}
			case op == 2 && files[other] == nil:
				if _, _, err := v.Link(root, f.handle, v.Root(), []byte(other)); err == nil {
					f.names++
					files[other] = f
				}
			case op == 3:
				files[""].change(t, v, rnd)
			default:
				f.change(t, v, rnd)
			}
			for name, f := range files {
				if got, want := seen(t, v, f.handle), described(f.list); got != want {
					t.Fatalf("%q has %s, want %s", name, got, want)
				}
			}
		}
		for _, h := range gone {
			if _, err := v.GetXattr(h, []byte("user.a")); err != fs.ErrStale {
				t.Fatalf("of a file that is gone: %v", err)
			}
			if err := v.SetXattr(h, []byte("user.a"), nil, false, false); err != fs.ErrStale {
				t.Fatalf("of a file that is gone: %v", err)
			}
		}
		with := map[*attributed]bool{}
		for _, f := range files {
			if len(f.list) > 0 {
				with[f] = true
			}
		}
		closeFS(t, v)
		r, err := check.Volume(d, check.Options{Data: true})
		if err != nil || !r.Clean() || r.Xattrs != uint64(len(with)) || r.Leftovers != 0 {
			t.Fatalf("round %d: of %d files: %d, %d left, %v, %v", round, len(with), r.Xattrs, r.Leftovers, r.Problems, err)
		}
		v = open(t, d, fs.Options{Deferred: true})
	}
	closeFS(t, v)
}

// Names that cannot be are refused, and those of the longest kind are not; nothing of it is for inode 2.
func TestXattrNames(t *testing.T) {
	v := newVolume(t, fs.Options{})
	for name, want := range map[string]error{
		"": fs.ErrInval, "user.\x00": fs.ErrInval, strings.Repeat("n", 256): fs.ErrInval,
		strings.Repeat("n", 255): nil, "/": nil,
	} {
		if err := v.SetXattr(v.Root(), []byte(name), []byte("value"), false, false); err != want {
			t.Errorf("%q: %v, want %v", name, err, want)
		}
	}
	for gen := range uint64(3) {
		if err := v.SetXattr(fs.Handle{Ino: 2, Gen: gen}, []byte("user.a"), nil, false, false); err != fs.ErrStale {
			t.Errorf("inode 2: %v", err)
		}
	}
	if err := v.SetXattr(v.Root(), []byte("user.a"), make([]byte, 1<<20), false, false); err != fs.ErrNoSpc {
		t.Errorf("a large value: %v", err)
	}
}

// On a full volume values become others that are not longer, and go; a file that has none gets none.
func TestXattrsFull(t *testing.T) {
	v := newVolume(t, fs.Options{})
	var hs [3]fs.Handle
	for i := range hs {
		n, err := v.Create(root, v.Root(), fmt.Append(nil, i), fs.Guarded, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		hs[i] = n.Handle
	}
	set := func(h fs.Handle, value string) error {
		return v.SetXattr(h, []byte("user.a"), []byte(value), false, false)
	}
	if err := set(hs[0], "0123456789"); err != nil {
		t.Fatal(err)
	}
	fillUp(t, v, hs[1])
	if err := set(hs[2], "x"); err != fs.ErrNoSpc {
		t.Errorf("a first attribute: %v", err)
	}
	for _, value := range []string{"9876543210", "short", ""} {
		if err := set(hs[0], value); err != nil || seen(t, v, hs[0]) != described(map[string]string{"user.a": value}) {
			t.Errorf("%q: %v, %s", value, err, seen(t, v, hs[0]))
		}
	}
	if err := v.RemoveXattr(hs[0], []byte("user.a")); err != nil {
		t.Error(err)
	}
	if err := set(hs[2], "x"); err != nil { // in the block that was given back
		t.Error(err)
	}
}

// A crash leaves the attributes of all files as they were after one of the calls, not before the last that a Sync came
// after; and nothing but blocks of files that were removed just then.
func TestXattrsCrash(t *testing.T) {
	rnd := rand.New(rand.NewSource(int64(replay.Seed(t))))
	sim := disk.NewSim(4000 * disk.BlockSize)
	mkfs(t, sim, fs.MkfsOptions{Zeroed: true, Inodes: 64})
	sim.Record()
	v := open(t, sim, fs.Options{Deferred: true})
	type step struct {
		state        string
		begun, acked uint64
		synced       bool
	}
	names := []string{"a", "b", "c"}
	all := func(v *fs.FS) (s string) {
		for _, name := range names {
			if n, err := v.Lookup(root, v.Root(), []byte(name)); err == nil {
				s += name + ": " + seen(t, v, n.Handle) + "\n"
			} else if err != fs.ErrNoEnt {
				t.Fatal(err)
			}
		}
		return s
	}
	var steps []step
	note := func(op func() error, sync bool) {
		begun := sim.Ops()
		if err := op(); err != nil {
			t.Fatal(err)
		}
		steps = append(steps, step{all(v), begun, sim.Ops(), sync})
	}
	note(v.Sync, true)
	first := steps[0].acked
	files := map[string]*attributed{}
	for range 120 {
		name := names[rnd.Intn(len(names))]
		switch f := files[name]; {
		case f == nil:
			note(func() error {
				n, err := v.Create(root, v.Root(), []byte(name), fs.Guarded, nil, 0)
				files[name] = &attributed{n.Handle, map[string]string{}, 1}
				return err
			}, false)
		case rnd.Intn(10) == 0:
			delete(files, name)
			note(func() error { _, err := v.Remove(root, v.Root(), []byte(name)); return err }, false)
		case rnd.Intn(6) == 0:
			note(v.Sync, true)
		default:
			note(func() error { f.change(t, v, rnd); return nil }, false)
		}
	}
	closeFS(t, v)
	images := 0
	for ops := first; ops <= sim.Ops(); ops += 1 + uint64(rnd.Intn(3)) {
		lo, hi := 0, 0
		for i, s := range steps {
			if s.acked <= ops && s.synced {
				lo = i
			}
			if s.begun <= ops {
				hi = i
			}
		}
		for image := range sim.At(ops).Crashes(3, rnd.Uint64(), true) {
			images++
			w := open(t, image, fs.Options{})
			state := all(w)
			if !slices.ContainsFunc(steps[lo:hi+1], func(s step) bool { return s.state == state }) {
				t.Fatalf("a crash after %d device operations leaves\n%s,\nwhich none of the steps %d to %d left",
					ops, state, lo, hi)
			}
			closeFS(t, w)
			mustCheck(t, image)
		}
	}
	t.Logf("%d images", images)
}

// Capabilities end with whatever changes a file's contents or owner, whoever does it, and with nothing else; who is
// refused ends none.
func TestCapabilities(t *testing.T) {
	v := newVolume(t, fs.Options{})
	owner, other := &fs.Cred{UID: 7, GID: 7}, &fs.Cred{UID: 8, GID: 8}
	n, err := v.Create(root, v.Root(), []byte("f"), fs.Guarded,
		&fs.SetAttr{UID: some(uint32(7)), GID: some(uint32(7)), Mode: some(uint32(0o644))}, 0)
	if err != nil {
		t.Fatal(err)
	}
	h := n.Handle
	setattr := func(c *fs.Cred, s *fs.SetAttr, guard *fs.Time) error { _, err := v.Setattr(c, h, s, guard); return err }
	for _, c := range []struct {
		what  string
		do    func() error
		fails bool
		ends  bool
	}{
		{"write", func() error { _, _, _, err := v.Write(owner, h, 0, []byte("x"), fs.FileSync); return err }, false, true},
		{"unstable write by root",
			func() error { _, _, _, err := v.Write(root, h, 0, []byte("x"), fs.Unstable); return err }, false, true},
		{"refused write",
			func() error { _, _, _, err := v.Write(other, h, 0, []byte("x"), fs.FileSync); return err }, true, false},
		{"cut", func() error { return setattr(owner, &fs.SetAttr{Size: some(uint64(0))}, nil) }, false, true},
		{"refused cut", func() error { return setattr(other, &fs.SetAttr{Size: some(uint64(0))}, nil) }, true, false},
		{"cut with a guard", func() error {
			a, err := v.Getattr(h)
			if err != nil {
				return err
			}
			return setattr(owner, &fs.SetAttr{Size: some(uint64(9))}, &a.Ctime)
		}, false, true},
		{"cut with another guard",
			func() error { return setattr(owner, &fs.SetAttr{Size: some(uint64(9))}, &fs.Time{}) }, true, false},
		{"chown", func() error { return setattr(root, &fs.SetAttr{UID: some(uint32(7))}, nil) }, false, true},
		{"chgrp", func() error { return setattr(root, &fs.SetAttr{GID: some(uint32(7))}, nil) }, false, true},
		{"refused chown", func() error { return setattr(owner, &fs.SetAttr{UID: some(uint32(8))}, nil) }, true, false},
		{"chmod", func() error { return setattr(owner, &fs.SetAttr{Mode: some(uint32(0o755))}, nil) }, false, false},
		{"times", func() error {
			return setattr(owner, &fs.SetAttr{AtimeHow: fs.ServerTime, MtimeHow: fs.ServerTime}, nil)
		}, false, false},
		{"read", func() error { _, _, _, err := v.Read(owner, h, 0, 10); return err }, false, false},
		{"create over it", func() error {
			_, err := v.Create(owner, v.Root(), []byte("f"), fs.Unchecked, &fs.SetAttr{Size: some(uint64(0))}, 0)
			return err
		}, false, true},
		{"room set aside", func() error { return v.Allocate(owner, h, 0, 9000) }, false, true},
		{"hole", func() error { return v.PunchHole(owner, h, 0, 4096) }, false, true},
		{"zeros", func() error { return v.ZeroRange(owner, h, 0, 10) }, false, true},
		{"link", func() error { _, _, err := v.Link(root, h, v.Root(), []byte("g")); return err }, false, false},
		{"rename", func() error { _, _, err := v.Rename(root, v.Root(), []byte("g"), v.Root(), []byte("h")); return err },
			false, false},
	} {
		if err := v.SetXattr(h, []byte("security.capability"), []byte("cap"), false, false); err != nil {
			t.Fatal(err)
		}
		if err := v.SetXattr(h, []byte("user.a"), []byte("stays"), false, false); err != nil {
			t.Fatal(err)
		}
		if err := c.do(); (err != nil) != c.fails {
			t.Errorf("%s: %v", c.what, err)
		}
		want := map[string]string{"user.a": "stays"}
		if !c.ends {
			want["security.capability"] = "cap"
		}
		if got := seen(t, v, h); got != described(want) {
			t.Errorf("%s: %s", c.what, got)
		}
	}
}

// No crash leaves capabilities to new contents.
func TestCapabilitiesCrash(t *testing.T) {
	rnd := rand.New(rand.NewSource(int64(replay.Seed(t))))
	sim := disk.NewSim(4000 * disk.BlockSize)
	mkfs(t, sim, fs.MkfsOptions{Zeroed: true, Inodes: 64})
	v := open(t, sim, fs.Options{})
	n, err := v.Create(root, v.Root(), []byte("f"), fs.Guarded, nil, 0)
	if err == nil {
		_, _, _, err = v.Write(root, n.Handle, 0, []byte("old"), fs.FileSync)
	}
	if err == nil {
		err = v.SetXattr(n.Handle, []byte("security.capability"), []byte("cap"), false, false)
	}
	if err != nil {
		t.Fatal(err)
	}
	closeFS(t, v)
	sim.Record()
	first := sim.Ops()
	v = open(t, sim, fs.Options{})
	if _, _, _, err := v.Write(root, n.Handle, 0, []byte("new"), fs.FileSync); err != nil {
		t.Fatal(err)
	}
	closeFS(t, v)
	seenNew := false
	for ops := first; ops <= sim.Ops(); ops++ {
		for image := range sim.At(ops).Crashes(4, rnd.Uint64(), true) {
			w := open(t, image, fs.Options{ReadOnly: true})
			data, _, _, err := w.Read(root, n.Handle, 0, 10)
			if err != nil {
				t.Fatal(err)
			}
			_, err = w.GetXattr(n.Handle, []byte("security.capability"))
			if isNew := bytes.Equal(data, []byte("new")); isNew && err != fs.ErrNoEnt {
				t.Fatalf("after %d device operations the new contents have the capabilities of the old: %v", ops, err)
			} else if isNew {
				seenNew = true
			}
			closeFS(t, w)
		}
	}
	if !seenNew {
		t.Error("no image has the new contents")
	}
}

// Capabilities that are set while others write are there only if the last write came before.
func TestCapabilitiesConcurrent(t *testing.T) {
	v := newVolume(t, fs.Options{Deferred: true})
	n, err := v.Create(root, v.Root(), []byte("f"), fs.Guarded, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	left := 0
	for range 300 {
		var all sync.WaitGroup
		all.Go(func() {
			if err := v.SetXattr(n.Handle, []byte("security.capability"), []byte("cap"), false, false); err != nil {
				t.Error(err)
			}
		})
		all.Go(func() {
			if _, _, _, err := v.Write(root, n.Handle, 0, []byte("x"), fs.Unstable); err != nil {
				t.Error(err)
			}
		})
		all.Wait()
		a, err := v.Getattr(n.Handle)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(seen(t, v, n.Handle), "security.capability") {
			if left++; a.Mtime == a.Ctime { // a write was the last change
				t.Fatal("a write came last, and the file has capabilities")
			}
		}
	}
	t.Logf("%d of 300 times the capabilities came last", left)
}

// Files that are let go, by their last close or when the volume is opened, take their attributes with them.
func TestXattrsOfKept(t *testing.T) {
	d := disk.NewMem(4000 * disk.BlockSize)
	mkfs(t, d, fs.MkfsOptions{Zeroed: true, Inodes: 64})
	v := open(t, d, fs.Options{Deferred: true})
	var hs [4]fs.Handle
	for i := range hs {
		n, err := v.Tmpfile(root, v.Root(), nil)
		if hs[i] = n.Handle; err == nil {
			err = v.SetXattr(n.Handle, []byte("user.a"), []byte("x"), false, false)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, h := range hs[:2] {
		if err := v.LetGo(h); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []uint64{2, 0} {
		closeFS(t, v)
		r, err := check.Volume(d, check.Options{Data: true})
		if err != nil || !r.Clean() || r.Xattrs != want || r.Leftovers != 0 {
			t.Fatalf("%d files, %d left, %v, %v", r.Xattrs, r.Leftovers, r.Problems, err)
		}
		v = open(t, d, fs.Options{})
	}
	closeFS(t, v)
}
