package fs

import (
	"testing"
	"time"
)

// Whatever the clock does, every change of a file or directory gives it a ctime that it never had, and a later one:
// a SETATTR guarded by any ctime from before is refused. What is set by the server's time has the same stamp.
func TestChangesAreLater(t *testing.T) {
	for _, c := range []struct {
		name string
		tick time.Duration // between calls
	}{
		{"stands still", 0}, {"goes back", -time.Hour}, {"goes on", time.Nanosecond},
		{"before 1970", -time.Hour * 24 * 365 * 60},
	} {
		t.Run(c.name, func(t *testing.T) {
			now := time.Unix(1_700_000_000, 999_999_990) // a second ends in between
			v := memFS(t, 3000, 200, Options{Clock: func() time.Time { return now }})
			changesAreLater(t, v, func() { now = now.Add(c.tick) })
		})
	}
}

func changesAreLater(t *testing.T, v *FS, tick func()) {
	f := create(t, v, root, v.Root(), "f")
	d, e := mkdir(t, v, root, v.Root(), "d"), mkdir(t, v, root, v.Root(), "e")
	mode, size := uint32(0o600), uint64(3)
	other := &Cred{UID: 7, GID: 7}
	chmod := func(h Handle) func() error {
		return func() error { _, err := v.Setattr(root, h, &SetAttr{Mode: &mode}, nil); return err }
	}
	write := func(data string) func() error {
		return func() error { _, _, _, err := v.Write(root, f, 0, []byte(data), Unstable); return err }
	}
	rename := func(a Handle, x string, b Handle, y string) func() error {
		return func() error { _, _, err := v.Rename(root, a, []byte(x), b, []byte(y)); return err }
	}
	remove := func(d Handle, name string) func() error {
		return func() error { _, err := v.Remove(root, d, []byte(name)); return err }
	}
	link := func(d Handle, name string) func() error {
		return func() error { _, _, err := v.Link(root, f, d, []byte(name)); return err }
	}
	calls := []struct {
		what    string
		changed []Handle
		modify  bool // mtime, too
		do      func() error
	}{
		{"WRITE", []Handle{f}, true, write("data")},
		{"WRITE of the same", []Handle{f}, true, write("data")},
		{"SETATTR mode", []Handle{f}, false, chmod(f)},
		{"SETATTR mode of a directory", []Handle{d}, false, chmod(d)},
		{"SETATTR size", []Handle{f}, true,
			func() error { _, err := v.Setattr(root, f, &SetAttr{Size: &size}, nil); return err }},
		{"SETATTR mtime", []Handle{f}, true,
			func() error { _, err := v.Setattr(root, f, &SetAttr{MtimeHow: ServerTime}, nil); return err }},
		{"CREATE that sets the size", []Handle{f}, true, func() error {
			_, err := v.Create(root, v.Root(), []byte("f"), Unchecked, &SetAttr{Size: &size}, 0)
			return err
		}},
		{"CREATE", []Handle{v.Root()}, true, func() error {
			_, err := v.Create(root, v.Root(), []byte("g"), Guarded, &SetAttr{}, 0)
			return err
		}},
		{"MKDIR", []Handle{d}, true, func() error { _, err := v.Mkdir(root, d, []byte("sub"), &SetAttr{}); return err }},
		{"SYMLINK", []Handle{d}, true,
			func() error { _, err := v.Symlink(root, d, []byte("l"), &SetAttr{}, []byte("x")); return err }},
		{"MKNOD", []Handle{d}, true,
			func() error { _, err := v.Mknod(root, d, []byte("p"), FIFO, &SetAttr{}, 0, 0); return err }},
		{"LINK to the file", []Handle{f}, false, link(d, "h")},
		{"LINK in the directory", []Handle{d}, true, link(d, "i")},
		{"RENAME of a file within a directory", []Handle{d}, true, rename(d, "h", d, "j")},
		{"RENAME of the file", []Handle{f}, false, rename(d, "j", d, "h")},
		{"RENAME to another directory", []Handle{d, e}, true, rename(d, "h", e, "h")},
		{"RENAME over a link", []Handle{d, e}, true, rename(d, "p", e, "h")},
		{"REMOVE", []Handle{d}, true, remove(d, "i")},
		{"REMOVE of a link", []Handle{f}, false, func() error { return errOr(link(d, "k")(), remove(d, "k")) }},
		{"RENAME over a link to the file", []Handle{f}, false,
			func() error { return errOr(link(d, "k")(), rename(d, "l", d, "k")) }},
		{"RENAME of a directory", []Handle{d, e}, true, rename(d, "sub", e, "sub")},
		{"RENAME over a directory", []Handle{e}, true, func() error {
			_, err := v.Mkdir(root, e, []byte("sub2"), &SetAttr{})
			return errOr(err, rename(e, "sub2", e, "sub"))
		}},
		{"RMDIR", []Handle{e}, true, func() error { _, err := v.Rmdir(root, e, []byte("sub")); return err }},
	}
	for _, c := range calls {
		var before []Attr
		for _, h := range c.changed {
			a, err := v.Getattr(h)
			want(t, err, 0)
			before = append(before, a)
		}
		tick()
		if err := c.do(); err != nil {
			t.Fatalf("%s: %v", c.what, err)
		}
		for i, h := range c.changed {
			was := before[i]
			a, err := v.Getattr(h)
			want(t, err, 0)
			if !a.Ctime.after(was.Ctime) {
				t.Errorf("%s: ctime %v, before it %v", c.what, a.Ctime, was.Ctime)
			}
			if c.modify && a.Mtime != a.Ctime || !c.modify && a.Mtime != was.Mtime {
				t.Errorf("%s: mtime %v, before it %v; ctime %v", c.what, a.Mtime, was.Mtime, a.Ctime)
			}
			_, err = v.Setattr(root, h, &SetAttr{Mode: &a.Mode}, &was.Ctime)
			want(t, err, ErrNotSync)
		}
	}
	tick()
	_, err := v.Setattr(other, f, &SetAttr{Mode: &mode}, nil)
	want(t, err, ErrPerm)
	a, err := v.Getattr(f)
	want(t, err, 0)
	_, err = v.Setattr(root, f, &SetAttr{Mode: &mode}, &a.Ctime) // what failed or only looked changed nothing
	want(t, err, 0)
}

func (t Time) after(u Time) bool { return t.Sec > u.Sec || t.Sec == u.Sec && t.Nsec > u.Nsec }

func errOr(err error, then func() error) error {
	if err != nil {
		return err
	}
	return then()
}

// A file that is made has the clock's time, also where the clock was ahead before: what is wrong does not spread.
func TestNewFileHasTheClocksTime(t *testing.T) {
	now := time.Unix(2_000_000_000, 0)
	v := memFS(t, 3000, 200, Options{Clock: func() time.Time { return now }})
	d := mkdir(t, v, root, v.Root(), "d")
	now = time.Unix(1_000_000_000, 3)
	a, err := v.Getattr(create(t, v, root, d, "f"))
	want(t, err, 0)
	if ts := (Time{1_000_000_000, 3}); a.Ctime != ts || a.Mtime != ts || a.Atime != ts {
		t.Errorf("the file: %+v", a)
	}
	b, err := v.Getattr(d)
	want(t, err, 0)
	if ts := (Time{2_000_000_000, 1}); b.Ctime != ts || b.Mtime != ts {
		t.Errorf("the directory: %+v", b)
	}
}

// Times begin with 1970; one before that would be the last of all as a number without sign.
func TestClockBefore1970(t *testing.T) {
	now := time.Unix(-5, 7)
	v := memFS(t, 3000, 200, Options{Clock: func() time.Time { return now }})
	f := create(t, v, root, v.Root(), "f")
	a, err := v.Getattr(f)
	want(t, err, 0)
	if a.Ctime != (Time{}) {
		t.Errorf("%+v", a)
	}
}
