package fs

import (
	"testing"

	"tansy/disk"
	"tansy/internal/gen/fs/format/inodeformat"
)

// The owner and group that a caller wants for a new file count if the caller is
// root. From others they are ignored: macOS sends the directory's group with each.
func TestNewFileIDs(t *testing.T) {
	v := newFS(t)
	d := mkdirMode(t, v, v.Root(), "d", 0o777)
	shared := mkdirMode(t, v, v.Root(), "shared", 0o2777)
	_, err := v.Setattr(root, shared, &SetAttr{GID: ptr(uint32(27))}, nil)
	want(t, err, 0)
	foreign := func() *SetAttr { return &SetAttr{Mode: ptr(uint32(0o4755)), UID: ptr(uint32(5)), GID: ptr(uint32(50))} }
	for proc, makes := range map[string]func(c *Cred, d Handle, name []byte) (Node, error){
		"CREATE": func(c *Cred, d Handle, name []byte) (Node, error) { return v.Create(c, d, name, Guarded, foreign(), 0) },
		"MKDIR":  func(c *Cred, d Handle, name []byte) (Node, error) { return v.Mkdir(c, d, name, foreign()) },
		"SYMLINK": func(c *Cred, d Handle, name []byte) (Node, error) {
			return v.Symlink(c, d, name, foreign(), []byte("t"))
		},
		"MKNOD": func(c *Cred, d Handle, name []byte) (Node, error) { return v.Mknod(c, d, name, FIFO, foreign(), 0, 0) },
	} {
		for _, x := range []struct {
			c        *Cred
			d        Handle
			uid, gid uint32
		}{
			{alice, d, 1000, 1000}, // in group 50, too
			{bob, d, 1001, 1001},
			{bob, shared, 1001, 27},
			{root, d, 5, 50},
			{root, shared, 5, 50},
		} {
			n, err := makes(x.c, x.d, []byte(proc))
			want(t, err, 0)
			if n.Attr.UID != x.uid || n.Attr.GID != x.gid {
				t.Errorf("%s by %d: %d:%d instead of %d:%d", proc, x.c.UID, n.Attr.UID, n.Attr.GID, x.uid, x.gid)
			}
			// what is ignored takes no setuid bit away
			if proc == "CREATE" && x.c != root && n.Attr.Mode != 0o4755 {
				t.Errorf("%s by %d: mode %o", proc, x.c.UID, n.Attr.Mode)
			}
			if proc == "MKDIR" {
				_, err = v.Rmdir(root, x.d, []byte(proc))
			} else {
				_, err = v.Remove(root, x.d, []byte(proc))
			}
			want(t, err, 0)
		}
	}
}

// A name that is taken is EXIST for who may search the directory and not write
// it; who may not search it learns nothing.
func TestTakenName(t *testing.T) {
	v := newFS(t)
	f := create(t, v, root, v.Root(), "f")
	for m, taken := range map[uint32]Errno{0o755: ErrExist, 0o700: ErrAcces, 0o722: ErrAcces} {
		d := mkdirMode(t, v, v.Root(), "d", m)
		create(t, v, root, d, "x")
		for name, st := range map[string]Errno{"x": taken, "y": ErrAcces} {
			n := []byte(name)
			_, err := v.Create(bob, d, n, Guarded, &SetAttr{}, 0)
			want(t, err, st)
			_, err = v.Mkdir(bob, d, n, &SetAttr{})
			want(t, err, st)
			_, err = v.Symlink(bob, d, n, &SetAttr{}, []byte("t"))
			want(t, err, st)
			_, err = v.Mknod(bob, d, n, FIFO, &SetAttr{}, 0, 0)
			want(t, err, st)
			_, _, err = v.Link(bob, f, d, n)
			want(t, err, st)
		}
		_, err := v.Remove(root, d, []byte("x"))
		want(t, err, 0)
		_, err = v.Rmdir(root, v.Root(), []byte("d"))
		want(t, err, 0)
	}
}

// An owner or group of 2^32-1 sets nothing, of what is made and of what is there, whoever asks.
func TestNobodysIDs(t *testing.T) {
	v := newFS(t)
	ids := func(uid, gid uint32) *SetAttr { return &SetAttr{UID: ptr(uid), GID: ptr(gid)} }
	for proc, makes := range map[string]func(name []byte, s *SetAttr) (Node, error){
		"CREATE":  func(name []byte, s *SetAttr) (Node, error) { return v.Create(root, v.Root(), name, Guarded, s, 0) },
		"MKDIR":   func(name []byte, s *SetAttr) (Node, error) { return v.Mkdir(root, v.Root(), name, s) },
		"SYMLINK": func(name []byte, s *SetAttr) (Node, error) { return v.Symlink(root, v.Root(), name, s, []byte("t")) },
		"MKNOD":   func(name []byte, s *SetAttr) (Node, error) { return v.Mknod(root, v.Root(), name, FIFO, s, 0, 0) },
		"TMPFILE": func(name []byte, s *SetAttr) (Node, error) { return v.Tmpfile(root, v.Root(), s) },
	} {
		for name, x := range map[string]struct {
			s        *SetAttr
			uid, gid uint32
		}{"both": {ids(NoID, NoID), 0, 0}, "owner": {ids(NoID, 7), 0, 7}, "group": {ids(7, NoID), 7, 0}} {
			n, err := makes([]byte(proc+name), x.s)
			want(t, err, 0)
			if n.Attr.UID != x.uid || n.Attr.GID != x.gid {
				t.Errorf("%s, %s: %d:%d instead of %d:%d", proc, name, n.Attr.UID, n.Attr.GID, x.uid, x.gid)
			}
		}
	}
	f := create(t, v, alice, mkdirMode(t, v, v.Root(), "d", 0o777), "f")
	before, err := v.Getattr(f)
	want(t, err, 0)
	for _, c := range []*Cred{root, alice, bob} { // nothing to set is no change, and everybody may do that
		_, err = v.Setattr(c, f, ids(NoID, NoID), nil)
		want(t, err, 0)
	}
	if a, err := v.Getattr(f); err != nil || a != before {
		t.Errorf("SETATTR of nothing: %+v, %v, was %+v", a, err, before)
	}
	w, err := v.Setattr(root, f, ids(NoID, 7), nil)
	want(t, err, 0)
	if w.After.UID != alice.UID || w.After.GID != 7 {
		t.Errorf("SETATTR of the group: %d:%d", w.After.UID, w.After.GID)
	}
	for _, o := range []MkfsOptions{{RootUID: NoID}, {RootGID: NoID}} {
		if err := Mkfs(disk.NewMem(6000*disk.BlockSize), o); err == nil {
			t.Errorf("a root directory of %d:%d", o.RootUID, o.RootGID)
		}
	}
}

// Volumes of old may have files that are owned by 2^32-1. They are shown as 65534's, who is not the owner, and root can
// do all with them.
func TestNobodysFiles(t *testing.T) {
	v := newFS(t)
	f := create(t, v, root, v.Root(), "f")
	var c call
	want(t, v.run(&c, procRemove, func(tx *txn) {
		ip := v.dirs.Fs.GetInode(tx, f.Ino, true)
		inodeformat.SetUid(ip, NoID)
		inodeformat.SetGid(ip, NoID)
		v.dirs.PutInode(tx, f.Ino, ip)
		c.Result = 0
	}), 0)
	is := func(what string, a Attr, err error) {
		t.Helper()
		if err != nil || a.UID != 65534 || a.GID != 65534 {
			t.Errorf("%s: owner %d:%d, %v", what, a.UID, a.GID, err)
		}
	}
	a, err := v.Getattr(f)
	is("GETATTR", a, err)
	l, err := v.Readdir(root, v.Root(), 2, 0, true, Limit{Bytes: 4096, Size: func(int) int { return 1 }})
	want(t, err, 0)
	is("READDIRPLUS", *l.Entries[0].Attr, nil)
	_, err = v.Setattr(&Cred{UID: 65534, GID: 65534}, f, mode(0o777), nil)
	want(t, err, ErrPerm)
	w, err := v.Setattr(root, f, mode(0o600), nil)
	is("SETATTR of the mode", *w.After, err)
	w, err = v.Setattr(root, f, &SetAttr{UID: ptr(uint32(65534)), GID: ptr(uint32(65534))}, nil)
	is("SETATTR of the owner", *w.After, err)
	_, err = v.Setattr(&Cred{UID: 65534, GID: 65534}, f, mode(0o777), nil)
	want(t, err, 0)
}

// What one face would take and another could not show is refused: devices with numbers that Linux has not, and targets
// of links that would end at a zero byte.
func TestUnshowable(t *testing.T) {
	v := newFS(t)
	for _, x := range []struct {
		t            Type
		major, minor uint32
		st           Errno
	}{
		{Char, 4095, 1<<20 - 1, 0}, {Block, 4095, 1<<20 - 1, 0}, {Char, 4096, 0, ErrInval}, {Block, 4096, 1, ErrInval},
		{Char, 0, 1 << 20, ErrInval}, {Block, 1<<32 - 1, 1<<32 - 1, ErrInval},
		{FIFO, 4096, 1 << 20, 0}, {Socket, 4096, 1 << 20, 0}, // what is no device has no number
	} {
		n, err := v.Mknod(root, v.Root(), []byte("n"), x.t, &SetAttr{}, x.major, x.minor)
		want(t, err, x.st)
		if err != nil {
			continue
		}
		if x.t == FIFO || x.t == Socket {
			x.major, x.minor = 0, 0
		}
		if n.Attr.Major != x.major || n.Attr.Minor != x.minor {
			t.Errorf("type %d: %d:%d instead of %d:%d", x.t, n.Attr.Major, n.Attr.Minor, x.major, x.minor)
		}
		_, err = v.Remove(root, v.Root(), []byte("n"))
		want(t, err, 0)
	}
	for _, target := range []string{"\x00", "a\x00", "\x00a", "a\x00b"} {
		_, err := v.Symlink(root, v.Root(), []byte("l"), &SetAttr{}, []byte(target))
		want(t, err, ErrInval)
		_, err = v.Lookup(root, v.Root(), []byte("l"))
		want(t, err, ErrNoEnt)
	}
}
