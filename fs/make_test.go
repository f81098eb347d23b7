package fs

import "testing"

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
