package model

import (
	"testing"
	"time"

	"tansy/fs"
)

var (
	root  = &fs.Cred{}
	alice = &fs.Cred{UID: 1000, GID: 1000}
	bob   = &fs.Cred{UID: 1001, GID: 1001}
)

func want(t *testing.T, what string, err error, errno fs.Errno) {
	t.Helper()
	if errno == 0 && err != nil || errno != 0 && err != errno {
		t.Errorf("%s: got %v, want %v", what, err, errno)
	}
}

func mode(m uint32) *fs.SetAttr { return &fs.SetAttr{Mode: &m} }

func TestRenameCases(t *testing.T) {
	m := New(Options{})
	r := m.Root()
	mk := func(d fs.Handle, name string) fs.Handle {
		n, err := m.Mkdir(root, d, []byte(name), mode(0o755))
		want(t, "mkdir "+name, err, 0)
		return n.Handle
	}
	a := mk(r, "a")
	b := mk(a, "b")
	c := mk(r, "c")
	f, err := m.Create(root, r, []byte("f"), fs.Guarded, mode(0o644), 0)
	want(t, "create", err, 0)
	_, _, err = m.Link(root, f.Handle, r, []byte("g"))
	want(t, "link", err, 0)

	for _, x := range []struct {
		from     fs.Handle
		name     string
		to       fs.Handle
		newName  string
		expected fs.Errno
	}{
		{r, "a", b, "x", fs.ErrInval},
		{r, "a", a, "x", fs.ErrInval},
		{r, "nope", r, "x", fs.ErrNoEnt},
		{r, "f", r, "a", fs.ErrIsDir},
		{r, "a", r, "f", fs.ErrNotDir},
		{r, "c", r, "a", fs.ErrNotEmpty},
		{r, "f", r, "g", 0},
		{r, "f", f.Handle, "g", fs.ErrNotDir},
		{r, ".", r, "g", fs.ErrInval},
		{a, "b", r, "c", 0},
	} {
		_, _, err := m.Rename(root, x.from, []byte(x.name), x.to, []byte(x.newName))
		want(t, x.name+" -> "+x.newName, err, x.expected)
	}
	_, err = m.Getattr(c)
	want(t, "replaced directory", err, fs.ErrStale)
	if n, err := m.Lookup(root, b, []byte("..")); err != nil || n.Handle != r {
		t.Errorf("parent of the moved directory: %v %v", n.Handle, err)
	}
	if at, _ := m.Getattr(r); at.Nlink != 4 {
		t.Errorf("root has %d links, want 4", at.Nlink)
	}
	if at, _ := m.Getattr(f.Handle); at.Nlink != 2 {
		t.Errorf("file has %d links, want 2", at.Nlink)
	}
}

func TestPermissions(t *testing.T) {
	m := New(Options{RootMode: 0o1777})
	r := m.Root()
	f, err := m.Create(alice, r, []byte("f"), fs.Guarded, mode(0o4000), 0)
	want(t, "create", err, 0)
	_, _, _, err = m.Write(alice, f.Handle, 0, []byte("x"), fs.FileSync)
	want(t, "the owner writes whatever the mode is", err, 0)
	if a, _ := m.Getattr(f.Handle); a.Mode != 0 {
		t.Errorf("mode after a write is %o", a.Mode)
	}
	_, _, _, err = m.Write(bob, f.Handle, 0, []byte("x"), fs.FileSync)
	want(t, "write by another", err, fs.ErrAcces)
	_, err = m.Remove(bob, r, []byte("f"))
	want(t, "sticky", err, fs.ErrAcces)
	_, err = m.Setattr(bob, f.Handle, mode(0o777), nil)
	want(t, "chmod by another", err, fs.ErrPerm)
	uid := uint32(1001)
	_, err = m.Setattr(alice, f.Handle, &fs.SetAttr{UID: &uid}, nil)
	want(t, "giving away", err, fs.ErrPerm)
	_, err = m.Setattr(alice, f.Handle, mode(0o777), &fs.Time{Sec: 1})
	want(t, "guard", err, fs.ErrNotSync)
	_, err = m.Remove(alice, r, []byte("f"))
	want(t, "remove", err, 0)
	_, err = m.Getattr(f.Handle)
	want(t, "removed", err, fs.ErrStale)
	g, _ := m.Create(alice, r, []byte("g"), fs.Guarded, mode(0o644), 0)
	if g.Handle.Ino != f.Handle.Ino || g.Handle.Gen == f.Handle.Gen {
		t.Errorf("number used again: %v after %v", g.Handle, f.Handle)
	}
}

func TestExclusive(t *testing.T) {
	m := New(Options{})
	one, err := m.Create(root, m.Root(), []byte("x"), fs.Exclusive, &fs.SetAttr{}, 7)
	want(t, "first", err, 0)
	two, err := m.Create(root, m.Root(), []byte("x"), fs.Exclusive, &fs.SetAttr{}, 7)
	want(t, "again", err, 0)
	if one.Handle != two.Handle {
		t.Error("another file")
	}
	_, err = m.Create(root, m.Root(), []byte("x"), fs.Exclusive, &fs.SetAttr{}, 8)
	want(t, "other verifier", err, fs.ErrExist)
}

func TestHolesAndTruncation(t *testing.T) {
	m := New(Options{Clock: func() time.Time { return time.Unix(5, 6) }, Capacity: 3 * fs.BlockSize})
	n, _ := m.Create(root, m.Root(), []byte("x"), fs.Guarded, mode(0o644), 0)
	_, _, _, err := m.Write(root, n.Handle, 10000, []byte("abc"), fs.FileSync)
	want(t, "write", err, 0)
	two := uint64(10001)
	_, err = m.Setattr(root, n.Handle, &fs.SetAttr{Size: &two}, nil)
	want(t, "truncate", err, 0)
	big := uint64(20000)
	_, err = m.Setattr(root, n.Handle, &fs.SetAttr{Size: &big}, nil)
	want(t, "extend", err, 0)
	b, eof, a, err := m.Read(root, n.Handle, 9999, 5)
	if string(b) != "\x00a\x00\x00\x00" || eof || err != nil || a.Used != fs.BlockSize || a.Mtime != (fs.Time{Sec: 5, Nsec: 9}) {
		t.Errorf("read %q %v %v %+v", b, eof, err, a)
	}
	_, _, _, err = m.Write(root, n.Handle, 0, make([]byte, 4*fs.BlockSize), fs.FileSync)
	want(t, "full", err, fs.ErrNoSpc)
	_, _, _, err = m.Write(root, n.Handle, fs.MaxSize, []byte("x"), fs.FileSync)
	want(t, "too big", err, fs.ErrFBig)
}

func TestListing(t *testing.T) {
	m := New(Options{})
	r := m.Root()
	for i := 0; i < 100; i++ {
		_, err := m.Mknod(root, r, []byte{byte(i + 128)}, fs.FIFO, mode(0o644), 0, 0)
		want(t, "mknod", err, 0)
	}
	size := func(n int) int { return 24 + n }
	seen := map[string]int{}
	for cookie, eof := uint64(0), false; !eof; {
		l, err := m.Readdir(root, r, cookie, 0, true, fs.Limit{Bytes: 200, Size: size})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range l.Entries {
			seen[string(e.Name)]++
			cookie = e.Cookie
		}
		// What was returned may go without disturbing the rest.
		m.Remove(root, r, l.Entries[len(l.Entries)-1].Name)
		eof = l.EOF
	}
	if len(seen) != 102 {
		t.Errorf("%d names", len(seen))
	}
	for name, n := range seen {
		if n != 1 {
			t.Errorf("%q %d times", name, n)
		}
	}
	_, err := m.Readdir(root, r, 0, 0, false, fs.Limit{Bytes: 20, Size: size})
	want(t, "too small", err, fs.ErrTooSmall)
	_, err = m.Readdir(root, r, 1, 9, false, fs.Limit{Bytes: 200, Size: size})
	want(t, "verifier", err, fs.ErrBadCookie)
}
