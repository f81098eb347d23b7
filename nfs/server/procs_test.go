package server_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"tansy/fs"
	"tansy/fs/model"
	"tansy/nfs/mount3"
	"tansy/nfs/nfs3"
	"tansy/nfs/oncrpc"
	"tansy/nfs/server"
	"tansy/test/kit/nfsclient"
)

func wantErr(t *testing.T, what string, err, want error) {
	t.Helper()
	if err != want {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

var bob = &fs.Cred{UID: 1001, GID: 1001}

// TestProcedures calls each of the 22 procedures, once with success and once
// with every kind of error that the protocol's layer makes or passes on.
// TestRandom covers the combinations.
func TestProcedures(t *testing.T) {
	now := time.Unix(1000, 7)
	m := model.New(model.Options{Clock: func() time.Time { return now }})
	c := mount(t, start(t, m))
	r := c.Root()
	stamp := fs.Time{Sec: 1000, Nsec: 7}

	wantErr(t, "NULL", c.Null(), nil)

	a, err := c.Getattr(r)
	wantErr(t, "GETATTR", err, nil)
	if a.Type != fs.Directory || a.Mode != 0o755 || a.Nlink != 2 || a.Ctime != stamp || a.Ino != r.Ino {
		t.Errorf("root: %+v", a)
	}

	f, err := c.Create(root, r, []byte("file"), fs.Guarded, mode(0o640), 0)
	wantErr(t, "CREATE", err, nil)
	if f.Attr.Mode != 0o640 || f.Dir.Before == nil || f.Dir.After == nil {
		t.Errorf("CREATE: %+v", f)
	}
	_, err = c.Create(root, r, []byte("file"), fs.Guarded, mode(0o640), 0)
	wantErr(t, "guarded CREATE again", err, fs.ErrExist)
	again, err := c.Create(root, r, []byte("file"), fs.Unchecked, &fs.SetAttr{}, 0)
	wantErr(t, "unchecked CREATE again", err, nil)
	if again.Handle != f.Handle {
		t.Error("unchecked CREATE made another file")
	}
	x, err := c.Create(root, r, []byte("excl"), fs.Exclusive, nil, 42)
	wantErr(t, "exclusive CREATE", err, nil)
	x2, err := c.Create(root, r, []byte("excl"), fs.Exclusive, nil, 42)
	wantErr(t, "exclusive CREATE sent twice", err, nil)
	if x2.Handle != x.Handle {
		t.Error("exclusive CREATE made another file")
	}
	_, err = c.Create(root, r, []byte("excl"), fs.Exclusive, nil, 43)
	wantErr(t, "exclusive CREATE by another", err, fs.ErrExist)

	w, err := c.Setattr(root, f.Handle, mode(0o600), &stamp)
	wantErr(t, "SETATTR", err, nil)
	if w.Before == nil || w.Before.Ctime != stamp || w.After == nil || w.After.Mode != 0o600 {
		t.Errorf("SETATTR: %+v", w)
	}
	_, err = c.Setattr(root, f.Handle, mode(0o666), &fs.Time{Sec: 1})
	wantErr(t, "SETATTR with a guard", err, fs.ErrNotSync)
	w, err = c.Setattr(bob, f.Handle, mode(0o666), nil)
	wantErr(t, "failed SETATTR", err, fs.ErrPerm)
	if w.After == nil || w.After.Mode != 0o600 {
		t.Errorf("failed SETATTR: %+v", w)
	}

	n, err := c.Lookup(root, r, []byte("file"))
	wantErr(t, "LOOKUP", err, nil)
	if n.Handle != f.Handle || n.Attr.Mode != 0o600 || n.Parent.Type != fs.Directory {
		t.Errorf("LOOKUP: %+v", n)
	}
	n, err = c.Lookup(root, r, []byte("nothing"))
	wantErr(t, "LOOKUP", err, fs.ErrNoEnt)
	if n.Parent.Type != fs.Directory {
		t.Error("failed LOOKUP without the directory's attributes")
	}
	_, err = c.Lookup(root, f.Handle, []byte("x"))
	wantErr(t, "LOOKUP in a file", err, fs.ErrNotDir)

	granted, shown, err := c.Access(bob, f.Handle, 0xffffffff)
	wantErr(t, "ACCESS", err, nil)
	if granted != 0 || shown.Type == 0 {
		t.Errorf("ACCESS: %x", granted)
	}
	granted, _, _ = c.Access(root, f.Handle, 0xff)
	if granted != nfs3.AccessRead|nfs3.AccessModify|nfs3.AccessExtend {
		t.Errorf("ACCESS: %x", granted)
	}

	count, _, w, err := c.Write(root, f.Handle, 3, []byte("hello"), fs.FileSync)
	wantErr(t, "WRITE", err, nil)
	if count != 5 || w.Before.Size != 0 || w.After.Size != 8 || c.Verifier() != m.Verifier() {
		t.Errorf("WRITE: %d %+v", count, w)
	}
	_, _, w, err = c.Write(bob, f.Handle, 0, []byte("x"), fs.FileSync)
	wantErr(t, "WRITE", err, fs.ErrAcces)
	if w.After == nil {
		t.Error("failed WRITE without attributes")
	}
	data, eof, at, err := c.Read(root, f.Handle, 2, 100)
	wantErr(t, "READ", err, nil)
	if string(data) != "\x00hello" || !eof || at.Size != 8 {
		t.Errorf("READ: %q %v", data, eof)
	}
	data, eof, _, err = c.Read(root, f.Handle, 2, 3)
	if string(data) != "\x00he" || eof || err != nil {
		t.Errorf("READ: %q %v %v", data, eof, err)
	}
	_, _, at, err = c.Read(bob, f.Handle, 0, 10)
	wantErr(t, "READ", err, fs.ErrAcces)
	if at == nil {
		t.Error("failed READ without attributes")
	}
	w, err = c.Commit(f.Handle, 0, 0)
	wantErr(t, "COMMIT", err, nil)
	if w.After == nil || c.Verifier() != m.Verifier() {
		t.Errorf("COMMIT: %+v", w)
	}

	d, err := c.Mkdir(root, r, []byte("dir"), mode(0o700))
	wantErr(t, "MKDIR", err, nil)
	if d.Attr.Type != fs.Directory || d.Attr.Nlink != 2 {
		t.Errorf("MKDIR: %+v", d)
	}
	_, err = c.Mkdir(root, r, []byte("dir"), mode(0o700))
	wantErr(t, "MKDIR", err, fs.ErrExist)

	s, err := c.Symlink(root, r, []byte("sym"), &fs.SetAttr{}, []byte("to/file"))
	wantErr(t, "SYMLINK", err, nil)
	target, at, err := c.Readlink(root, s.Handle)
	wantErr(t, "READLINK", err, nil)
	if string(target) != "to/file" || at.Type != fs.Symlink || at.Size != 7 {
		t.Errorf("READLINK: %q %+v", target, at)
	}
	_, at, err = c.Readlink(root, f.Handle)
	wantErr(t, "READLINK", err, fs.ErrInval)
	if at == nil {
		t.Error("failed READLINK without attributes")
	}

	for _, typ := range []fs.Type{fs.Block, fs.Char, fs.Socket, fs.FIFO} {
		n, err := c.Mknod(root, d.Handle, []byte(fmt.Sprint(typ)), typ, mode(0o600), 8, 17)
		wantErr(t, "MKNOD", err, nil)
		device := typ == fs.Block || typ == fs.Char
		if n.Attr.Type != typ || (n.Attr.Major == 8 && n.Attr.Minor == 17) != device {
			t.Errorf("MKNOD: %+v", n.Attr)
		}
	}
	_, err = c.Mknod(root, d.Handle, []byte("x"), fs.Regular, nil, 0, 0)
	wantErr(t, "MKNOD", err, fs.ErrBadType)
	_, err = c.Mknod(root, d.Handle, []byte("x"), fs.Type(99), nil, 0, 0)
	wantErr(t, "MKNOD", err, fs.ErrBadType)

	at, w, err = c.Link(root, f.Handle, d.Handle, []byte("hard"))
	wantErr(t, "LINK", err, nil)
	if at.Nlink != 2 || w.Before == nil || w.After == nil {
		t.Errorf("LINK: %+v %+v", at, w)
	}
	at, w, err = c.Link(root, f.Handle, d.Handle, []byte("hard"))
	wantErr(t, "LINK", err, fs.ErrExist)
	if at == nil || w.After == nil {
		t.Error("failed LINK without attributes")
	}

	w, w2, err := c.Rename(root, d.Handle, []byte("hard"), r, []byte("renamed"))
	wantErr(t, "RENAME", err, nil)
	if w.After.Ino != d.Handle.Ino || w2.After.Ino != r.Ino || w.Before == nil || w2.Before == nil {
		t.Errorf("RENAME: %+v %+v", w, w2)
	}
	w, w2, err = c.Rename(root, r, []byte("dir"), d.Handle, []byte("x"))
	wantErr(t, "RENAME into itself", err, fs.ErrInval)
	if w.After == nil || w2.After == nil {
		t.Error("failed RENAME without attributes")
	}

	_, err = c.Remove(root, r, []byte("dir"))
	wantErr(t, "REMOVE of a directory", err, fs.ErrIsDir)
	_, err = c.Rmdir(root, r, []byte("dir"))
	wantErr(t, "RMDIR", err, fs.ErrNotEmpty)
	_, err = c.Rmdir(root, r, []byte("file"))
	wantErr(t, "RMDIR of a file", err, fs.ErrNotDir)
	w, err = c.Remove(root, r, []byte("renamed"))
	wantErr(t, "REMOVE", err, nil)
	if w.Before == nil || w.After == nil {
		t.Errorf("REMOVE: %+v", w)
	}
	_, err = c.Remove(root, r, []byte("renamed"))
	wantErr(t, "REMOVE", err, fs.ErrNoEnt)
	e, err := c.Mkdir(root, r, []byte("empty"), mode(0o755))
	wantErr(t, "MKDIR", err, nil)
	_, err = c.Rmdir(root, r, []byte("empty"))
	wantErr(t, "RMDIR", err, nil)
	_, err = c.Getattr(e.Handle)
	wantErr(t, "GETATTR of what was removed", err, fs.ErrStale)

	for _, plus := range []bool{false, true} {
		l, err := c.Readdir(root, d.Handle, 0, 0, plus, fs.Limit{Bytes: 8192})
		wantErr(t, "READDIR", err, nil)
		if len(l.Entries) != 6 || !l.EOF || l.Dir == nil {
			t.Errorf("READDIR: %+v", l)
		}
		for _, x := range l.Entries {
			if plus != (x.Attr != nil) || plus && x.Handle.Ino != x.Ino {
				t.Errorf("READDIR: %+v", x)
			}
		}
		l, err = c.Readdir(root, d.Handle, 0, 0, plus, fs.Limit{Bytes: 20})
		wantErr(t, "READDIR with room for 20 bytes", err, fs.ErrTooSmall)
		if l.Dir == nil {
			t.Error("failed READDIR without attributes")
		}
	}

	st, at, err := c.Fsstat(r)
	wantErr(t, "FSSTAT", err, nil)
	if st.TotalBytes != 1<<40 || st.FreeBytes != 1<<40-4096 || st.FreeFiles >= st.TotalFiles || at == nil {
		t.Errorf("FSSTAT: %+v", st)
	}
	i, at, err := c.Fsinfo(r)
	wantErr(t, "FSINFO", err, nil)
	if i.RtMax != 1<<20 || i.WtMax != 1<<20 || i.MaxFileSize != fs.MaxSize || i.TimeDelta != (fs.Time{Nsec: 1}) || i.Properties != 0x1b || at == nil {
		t.Errorf("FSINFO: %+v", i)
	}
	p, at, err := c.Pathconf(r)
	wantErr(t, "PATHCONF", err, nil)
	if p.NameMax != 255 || !p.NoTrunc || !p.CasePreserving || p.CaseInsensitive || !p.ChownRestricted || at == nil {
		t.Errorf("PATHCONF: %+v", p)
	}

	// Every procedure with the handle of a file that is gone.
	for proc := uint32(nfs3.ProcGetattr); proc <= nfs3.ProcCommit; proc++ {
		d, err := c.Call(nfs3.Program, nfs3.Version, proc, root,
			func(enc *oncrpc.Encoder) { arguments(enc, proc, c.Raw(e.Handle)) })
		if err != nil {
			t.Errorf("procedure %d: %v", proc, err)
		} else if stat := d.Uint32(); fs.Errno(stat) != fs.ErrStale {
			t.Errorf("procedure %d of a stale handle: %d", proc, stat)
		}
	}
}

// arguments encodes good arguments of a procedure, with handle where one goes.
func arguments(e *oncrpc.Encoder, proc uint32, handle []byte) {
	name := func() {
		e.Opaque(handle)
		e.Opaque([]byte("name"))
	}
	sattr := func() {
		for range 6 {
			e.Uint32(0)
		}
	}
	switch proc {
	case nfs3.ProcLookup, nfs3.ProcRemove, nfs3.ProcRmdir:
		name()
	case nfs3.ProcCreate:
		name()
		e.Uint32(uint32(fs.Guarded))
		sattr()
	case nfs3.ProcMkdir:
		name()
		sattr()
	case nfs3.ProcSymlink:
		name()
		sattr()
		e.Opaque([]byte("target"))
	case nfs3.ProcMknod:
		name()
		e.Uint32(uint32(fs.FIFO))
		sattr()
	case nfs3.ProcRename:
		name()
		name()
	case nfs3.ProcLink:
		e.Opaque(handle)
		name()
	default:
		e.Opaque(handle)
		switch proc {
		case nfs3.ProcSetattr:
			sattr()
			e.Bool(false)
		case nfs3.ProcAccess:
			e.Uint32(1)
		case nfs3.ProcRead, nfs3.ProcCommit:
			e.Uint64(0)
			e.Uint32(10)
		case nfs3.ProcWrite:
			e.Uint64(0)
			e.Uint32(4)
			e.Uint32(0)
			e.Opaque([]byte("data"))
		case nfs3.ProcReaddir:
			e.Uint64(0)
			e.Uint64(0)
			e.Uint32(4096)
		case nfs3.ProcReaddirplus:
			e.Uint64(0)
			e.Uint64(0)
			e.Uint32(4096)
			e.Uint32(4096)
		}
	}
}

// TestListing reads a large directory in pages; each name comes once, and no
// page is larger than was asked for.
func TestListing(t *testing.T) {
	m := model.New(model.Options{})
	c := mount(t, start(t, m))
	r := c.Root()
	const n = 3000
	for i := range n {
		name := bytes.Repeat([]byte{'n'}, 1+i%200)
		_, err := m.Mknod(root, r, fmt.Appendf(name, "%d", i), fs.FIFO, &fs.SetAttr{}, 0, 0)
		wantErr(t, "mknod", err, nil)
	}
	for _, count := range []uint32{512, 4096, 100 << 10, 1 << 20} {
		for _, proc := range []uint32{nfs3.ProcReaddir, nfs3.ProcReaddirplus} {
			seen := map[string]bool{}
			pages := 0
			for cookie, eof := uint64(0), false; !eof; pages++ {
				d, err := c.Call(nfs3.Program, nfs3.Version, proc, root, func(e *oncrpc.Encoder) {
					e.Opaque(c.Raw(r))
					e.Uint64(cookie)
					e.Uint64(0)
					e.Uint32(count)
					if proc == nfs3.ProcReaddirplus {
						e.Uint32(count)
					}
				})
				if err != nil {
					t.Fatal(err)
				}
				if stat := d.Uint32(); stat != 0 {
					t.Fatalf("status %d", stat)
				}
				if len(d.Rest()) > int(count) {
					t.Fatalf("asked for %d bytes and got %d", count, len(d.Rest()))
				}
				d.Fixed(4 + 84 + 8)
				for d.Bool() {
					d.Uint64()
					seen[string(d.Opaque(256))] = true
					cookie = d.Uint64()
					if proc == nfs3.ProcReaddirplus {
						d.Fixed(4 + 84)
						d.Fixed(8 + 32)
					}
				}
				eof = d.Bool()
				if !d.Ok() || len(d.Rest()) != 0 {
					t.Fatal("malformed listing")
				}
			}
			if len(seen) != n+2 {
				t.Errorf("%d names of %d in %d pages", len(seen), n+2, pages)
			}
		}
	}
	l, err := c.Readdir(root, r, 2, 77, false, fs.Limit{Bytes: 4096})
	wantErr(t, "READDIR with a strange verifier", err, fs.ErrBadCookie)
	_ = l
}

func TestMountProtocol(t *testing.T) {
	addr, _ := startServer(t, server.Config{Volumes: []server.Volume{{FS: model.New(model.Options{}), Path: "/vol"}}})
	c, err := nfsclient.Dial(addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	call := func(proc uint32, dir string) *oncrpc.Decoder {
		t.Helper()
		d, err := c.Call(mount3.Program, mount3.Version, proc, root, func(e *oncrpc.Encoder) {
			if dir != "" {
				e.Opaque([]byte(dir))
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	mounts := func() (n int) {
		for d := call(mount3.ProcDump, ""); d.Bool(); n++ {
			d.Opaque(100)
			if dir := d.Opaque(100); string(dir) != "/vol" {
				t.Errorf("DUMP: %q", dir)
			}
		}
		return n
	}
	if len(call(mount3.ProcNull, "").Rest()) != 0 {
		t.Error("NULL")
	}
	if stat := call(mount3.ProcMnt, "/other").Uint32(); stat != mount3.ErrNoEnt {
		t.Errorf("MNT of another path: %d", stat)
	}
	for _, dir := range []string{"/vol", "/vol/", "vol"} {
		d := call(mount3.ProcMnt, dir)
		stat, handle := d.Uint32(), d.Opaque(64)
		if stat != 0 || len(handle) != nfs3.HandleSize || d.Uint32() != 2 || d.Uint32() != 1 || d.Uint32() != 0 {
			t.Errorf("MNT %q: %d % x", dir, stat, handle)
		}
	}
	if n := mounts(); n != 1 {
		t.Errorf("%d mounts", n)
	}
	call(mount3.ProcUmnt, "/vol")
	if n := mounts(); n != 0 {
		t.Errorf("%d mounts after UMNT", n)
	}
	call(mount3.ProcMnt, "/vol")
	call(mount3.ProcUmntall, "")
	if n := mounts(); n != 0 {
		t.Errorf("%d mounts after UMNTALL", n)
	}
	d := call(mount3.ProcExport, "")
	if !d.Bool() || string(d.Opaque(100)) != "/vol" || d.Bool() || d.Bool() || !d.Ok() {
		t.Error("EXPORT")
	}
	_, err = c.Call(mount3.Program, mount3.Version, mount3.ProcMnt, root, func(e *oncrpc.Encoder) { e.Uint32(0xffffffff) })
	if e, ok := err.(*nfsclient.RPCError); !ok || e.Stat != uint32(oncrpc.GarbageArgs) {
		t.Errorf("MNT of a path of 2^32-1 bytes: %v", err)
	}
}
