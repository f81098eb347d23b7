package server_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"

	"tansy/fs"
	"tansy/fs/model"
	"tansy/nfs/exports"
	"tansy/nfs/mount3"
	"tansy/nfs/nfs3"
	"tansy/nfs/oncrpc"
	"tansy/nfs/server"
	"tansy/test/kit/nfsclient"
)

// hosts is a listener on which connections come from any address one likes.
type hosts struct {
	conns chan net.Conn
	done  chan struct{}
}

func (l *hosts) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}
func (l *hosts) Close() error   { return nil }
func (l *hosts) Addr() net.Addr { return &net.TCPAddr{} }

type fromAddr struct {
	net.Conn
	peer net.Addr
}

func (c fromAddr) RemoteAddr() net.Addr { return c.peer }

// dial connects from an address, "host:port".
func (l *hosts) dial(t testing.TB, peer string) net.Conn {
	addr, err := net.ResolveTCPAddr("tcp", peer)
	if err != nil {
		t.Fatal(err)
	}
	here, there := net.Pipe()
	l.conns <- fromAddr{there, addr}
	t.Cleanup(func() { here.Close() })
	return here
}

// mount mounts a directory from an address.
func (l *hosts) mount(t testing.TB, peer, dir string) (*nfsclient.Client, error) {
	return nfsclient.MountDir(l.dial(t, peer), dir)
}

func (l *hosts) mustMount(t testing.TB, peer, dir string) *nfsclient.Client {
	t.Helper()
	c, err := l.mount(t, peer, dir)
	if err != nil {
		t.Fatalf("%s mounts %s: %v", peer, dir, err)
	}
	return c
}

func parse(t testing.TB, file string) *exports.Table {
	t.Helper()
	e, _, err := exports.Parse([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	return exports.NewTable(e, nil)
}

// startExports serves a model with these directories and files (paths that end in no
// slash) by the rules of a file.
func startExports(t testing.TB, file string, paths ...string) (*hosts, *exports.Policy, map[string]fs.Handle) {
	m, at := planted(t, paths...)
	policy := exports.NewPolicy(parse(t, file))
	l, _ := startOn(t, server.Volume{FS: m, ID: [8]byte{1, 2, 3}, Key: [16]byte{4, 5, 6}, Exports: policy})
	return l, policy, at
}

// planted is a model with these directories and files, and the handle of each.
func planted(t testing.TB, paths ...string) (*model.Model, map[string]fs.Handle) {
	m := model.New(model.Options{RootMode: 0o777})
	at := map[string]fs.Handle{"": m.Root()}
	for _, p := range paths {
		dir := strings.HasSuffix(p, "/")
		p = strings.TrimSuffix(p, "/")
		i := strings.LastIndex(p, "/")
		var n fs.Node
		var err error
		if dir {
			n, err = m.Mkdir(root, at[p[:i]], []byte(p[i+1:]), mode(0o777))
		} else {
			n, err = m.Create(root, at[p[:i]], []byte(p[i+1:]), fs.Guarded, mode(0o666), 0)
		}
		if err != nil {
			t.Fatal(p, err)
		}
		at[p] = n.Handle
	}
	return m, at
}

// startOn serves volumes to hosts.
func startOn(t testing.TB, volumes ...server.Volume) (*hosts, *server.Server) {
	s := server.New(server.Config{Volumes: volumes, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	l := &hosts{make(chan net.Conn), make(chan struct{})}
	served := make(chan error)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		close(l.done)
		s.Shutdown(context.Background())
		<-served
	})
	return l, s
}

// find looks names up, so that c knows the handles.
func find(t testing.TB, c *nfsclient.Client, names ...string) fs.Handle {
	t.Helper()
	at := c.Root()
	for _, name := range names {
		n, err := c.Lookup(root, at, []byte(name))
		if err != nil {
			t.Fatal(names, err)
		}
		at = n.Handle
	}
	return at
}

func is(t testing.TB, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

const office = `
/      10.0.0.1(rw,no_root_squash)
/a     10.0.0.1(ro) 10.0.0.2(rw,no_root_squash,insecure) 10.0.0.3(ro,insecure) 10.0.0.4(rw,all_squash,anonuid=77,insecure) 10.0.0.6(rw,insecure)
/gone  10.0.0.2(insecure)
/a/f   10.0.0.2(insecure)
`

var officeFiles = []string{"/a/", "/a/b/", "/a/b/d/", "/a/f", "/c/", "/c/g"}

// Who may mount what, by address and port.
func TestExportsMount(t *testing.T) {
	l, _, at := startExports(t, office, officeFiles...)
	for _, x := range []struct {
		peer, dir string
		at        string
		want      error
	}{
		{"10.0.0.1:700", "/", "", nil},
		{"10.0.0.1:700", "/c", "/c", nil},
		{"10.0.0.1:700", "/a/b", "/a/b", nil},
		{"10.0.0.1:1023", "/a/b/../../c", "/c", nil},
		{"10.0.0.1:1024", "/", "", fs.ErrAcces},
		{"10.0.0.2:4000", "/", "", fs.ErrAcces},
		{"10.0.0.2:4000", "/c", "", fs.ErrAcces},
		{"10.0.0.2:4000", "/a", "/a", nil},
		{"10.0.0.2:4000", "//a/./b/", "/a/b", nil},
		{"10.0.0.2:4000", "/a/b/..", "/a", nil},
		{"10.0.0.2:4000", "/a/..", "", fs.ErrAcces},
		{"10.0.0.2:4000", "/c/../a", "/a", nil},
		{"10.0.0.2:4000", "/nothing/../a", "/a", nil}, // what is there outside is not told
		{"10.0.0.2:4000", "/a/x", "", fs.ErrNoEnt},
		{"10.0.0.2:4000", "/gone", "", fs.ErrNoEnt},
		{"10.0.0.2:4000", "/a/f", "", fs.ErrNotDir},
		{"10.0.0.5:700", "/", "", fs.ErrAcces},
		{"10.0.0.5:700", "/a", "", fs.ErrAcces},
		{"[::1]:700", "/a", "", fs.ErrAcces},
	} {
		c, err := l.mount(t, x.peer, x.dir)
		is(t, x.peer+" mounts "+x.dir, err, x.want)
		if err == nil && c.Root() != at[x.at] {
			t.Errorf("%s mounts %s: %v, want that of %q", x.peer, x.dir, c.Root(), x.at)
		}
	}
}

// A handle is worth what the export it names grants to who uses it, each time.
func TestExportsHandles(t *testing.T) {
	l, policy, at := startExports(t, office, officeFiles...)
	all := l.mustMount(t, "10.0.0.1:700", "/")
	two := l.mustMount(t, "10.0.0.2:4000", "/a")
	getattr := func(peer string, h []byte) error {
		c := nfsclient.NewConn(l.dial(t, peer))
		d, err := c.Call(nfs3.Program, nfs3.Version, nfs3.ProcGetattr, root, func(e *oncrpc.Encoder) { e.Opaque(h) })
		if err != nil {
			t.Fatal(err)
		}
		if stat := d.Uint32(); stat != 0 {
			return fs.Errno(stat)
		}
		return nil
	}
	top, a := all.Raw(at[""]), two.Raw(at["/a"])
	is(t, "the root by who may", getattr("10.0.0.1:700", top), nil)
	is(t, "the root from a high port", getattr("10.0.0.1:1024", top), fs.ErrPerm)
	is(t, "the root by another", getattr("10.0.0.2:700", top), fs.ErrAcces)
	is(t, "/a by who may", getattr("10.0.0.2:4000", a), nil)
	is(t, "/a by a third, by the third's rule", getattr("10.0.0.3:4000", a), nil)
	is(t, "/a by the first, from a high port", getattr("10.0.0.1:4000", a), fs.ErrPerm)
	is(t, "/a by a stranger", getattr("10.0.0.5:700", a), fs.ErrAcces)

	// The export is not the peer's to choose.
	is(t, "a handle of /a as one of the root", getattr("10.0.0.1:700", append(append([]byte(nil), top[:8]...), a[8:]...)),
		fs.ErrBadHandle)
	is(t, "a handle of the root as one of /a", getattr("10.0.0.2:700", append(append([]byte(nil), a[:8]...), top[8:]...)),
		fs.ErrBadHandle)
	is(t, "a handle of nothing", getattr("10.0.0.2:700", make([]byte, 32)), fs.ErrStale)
	is(t, "a short handle", getattr("10.0.0.2:700", a[:31]), fs.ErrBadHandle)

	// Two handles of a call are of one export.
	f := find(t, all, "a", "f")
	both := func(proc uint32, first []byte, name string, second []byte) error {
		d, err := all.Call(nfs3.Program, nfs3.Version, proc, root, func(e *oncrpc.Encoder) {
			e.Opaque(first)
			if name != "" {
				e.Opaque([]byte(name))
			}
			e.Opaque(second)
			e.Opaque([]byte("new"))
		})
		if err != nil {
			t.Fatal(err)
		}
		if stat := d.Uint32(); stat != 0 {
			return fs.Errno(stat)
		}
		return nil
	}
	is(t, "RENAME to another export", both(nfs3.ProcRename, top, "c", a), fs.ErrXDev)
	is(t, "LINK to another export", both(nfs3.ProcLink, all.Raw(f), "", a), fs.ErrXDev)
	is(t, "LINK", both(nfs3.ProcLink, all.Raw(f), "", top), nil)

	// Rules count from the moment they are there.
	policy.Set(parse(t, "/ 10.0.0.1(rw,insecure)\n/a 10.0.0.1(rw)"))
	is(t, "the root from a high port, now allowed", getattr("10.0.0.1:1024", top), nil)
	is(t, "/a, taken away", getattr("10.0.0.2:4000", a), fs.ErrAcces)
	policy.Set(parse(t, "/ 10.0.0.1(rw)"))
	is(t, "an export that is gone", getattr("10.0.0.2:4000", a), fs.ErrStale)
	policy.Set(parse(t, office))
	is(t, "an export that is back", getattr("10.0.0.2:4000", a), nil)

	plain := mount(t, start(t, model.New(model.Options{})))
	if string(plain.Raw(plain.Root())) != string(top) {
		t.Error("handles of the root's export are not those of a server without exports")
	}
}

// In an export that is ro nothing changes, whoever asks, and reading goes on.
func TestExportsReadOnly(t *testing.T) {
	l, policy, at := startExports(t, office, officeFiles...)
	rw, ro := l.mustMount(t, "10.0.0.2:4000", "/a"), l.mustMount(t, "10.0.0.3:4000", "/a")
	dir, f := at["/a"], find(t, rw, "f")
	_, _, _, err := rw.Write(root, f, 0, []byte("text"), fs.Unstable)
	is(t, "WRITE", err, nil)
	find(t, ro, "f")
	before, err := ro.Getattr(dir)
	is(t, "GETATTR", err, nil)
	name := []byte("new")
	for what, do := range map[string]func() error{
		"SETATTR": func() error { _, err := ro.Setattr(root, f, mode(0o600), nil); return err },
		"WRITE":   func() error { _, _, _, err := ro.Write(root, f, 0, name, fs.FileSync); return err },
		"CREATE":  func() error { _, err := ro.Create(root, dir, name, fs.Unchecked, mode(0o600), 0); return err },
		"MKDIR":   func() error { _, err := ro.Mkdir(root, dir, name, mode(0o700)); return err },
		"SYMLINK": func() error { _, err := ro.Symlink(root, dir, name, mode(0o777), name); return err },
		"MKNOD":   func() error { _, err := ro.Mknod(root, dir, name, fs.FIFO, mode(0o600), 0, 0); return err },
		"REMOVE":  func() error { _, err := ro.Remove(root, dir, []byte("f")); return err },
		"RMDIR":   func() error { _, err := ro.Rmdir(root, dir, []byte("b")); return err },
		"RENAME":  func() error { _, _, err := ro.Rename(root, dir, []byte("f"), dir, name); return err },
		"LINK":    func() error { _, _, err := ro.Link(root, f, dir, name); return err },
	} {
		is(t, what, do(), fs.ErrROFS)
	}
	if after, err := ro.Getattr(dir); err != nil || after != before {
		t.Errorf("%+v became %+v (%v)", before, after, err)
	}
	if data, _, _, err := ro.Read(root, f, 0, 100); err != nil || string(data) != "text" {
		t.Errorf("READ: %q, %v", data, err)
	}
	_, err = ro.Commit(f, 0, 0)
	is(t, "COMMIT", err, nil)
	const all = 0x3f
	if got, _, err := ro.Access(&fs.Cred{UID: 5}, dir, all); err != nil || got != nfs3.AccessRead|nfs3.AccessLookup {
		t.Errorf("ACCESS: %#x, %v", got, err)
	}
	policy.Set(parse(t, "/a 10.0.0.3(rw,insecure)"))
	_, err = ro.Mkdir(root, dir, name, mode(0o700))
	is(t, "MKDIR, as soon as it is rw", err, nil)
}

// Users are who the rule makes of them.
func TestExportsSquash(t *testing.T) {
	l, _, at := startExports(t, office, officeFiles...)
	for _, x := range []struct {
		peer     string
		cred     *fs.Cred
		uid, gid uint32
	}{
		{"10.0.0.2:4000", root, 0, 0},
		{"10.0.0.2:4000", nil, exports.Anonymous, exports.Anonymous},
		{"10.0.0.4:4000", root, 77, exports.Anonymous},
		{"10.0.0.4:4000", &fs.Cred{UID: 5, GID: 6}, 77, exports.Anonymous},
		{"10.0.0.6:4000", root, exports.Anonymous, exports.Anonymous},
		{"10.0.0.6:4000", &fs.Cred{UID: 5, GID: 0}, 5, exports.Anonymous},
		{"10.0.0.6:4000", &fs.Cred{UID: 5, GID: 6}, 5, 6},
		{"10.0.0.2:4000", &fs.Cred{UID: fs.NoID, GID: 6}, exports.Anonymous, 6},
		{"10.0.0.6:4000", &fs.Cred{UID: 5, GID: fs.NoID}, 5, exports.Anonymous},
	} {
		c := l.mustMount(t, x.peer, "/a")
		n, err := c.Mkdir(x.cred, at["/a"], []byte("made"), mode(0o777))
		if err != nil {
			t.Fatalf("%s, %v: %v", x.peer, x.cred, err)
		}
		if n.Attr.UID != x.uid || n.Attr.GID != x.gid {
			t.Errorf("%s, %v: made by %d:%d, want %d:%d", x.peer, x.cred, n.Attr.UID, n.Attr.GID, x.uid, x.gid)
		}
		if _, err := l.mustMount(t, "10.0.0.2:4000", "/a").Rmdir(root, at["/a"], []byte("made")); err != nil {
			t.Fatal(err)
		}
	}
}

// With groups of the server those that the client says do not count, and squashing is as ever.
func TestExportsGroups(t *testing.T) {
	m := model.New(model.Options{RootMode: 0o777})
	for gid := range uint32(20) {
		mode, name := uint32(0o070), []byte{'a' + byte(gid)}
		if _, err := m.Mkdir(root, m.Root(), name, &fs.SetAttr{Mode: &mode, GID: &gid}); err != nil {
			t.Fatal(err)
		}
	}
	groups := func(uid uint32) (list []uint32) {
		for gid := range uid {
			list = append(list, gid)
		}
		return list
	}
	for rule, rootGroup := range map[string]bool{"no_root_squash": true, "root_squash,anongid=50": false} {
		addr, _ := startServer(t, server.Config{Volumes: []server.Volume{{FS: m, Exports: exports.NewPolicy(parse(t, "/ *(rw,insecure,"+rule+")"))}}, Groups: groups})
		c := mount(t, addr)
		for gid := range 20 {
			dir := find(t, c, string(rune('a'+gid)))
			for _, x := range []struct {
				cred *fs.Cred
				want bool
			}{
				{&fs.Cred{UID: 18, GID: 100}, gid < 18 && (gid > 0 || rootGroup)},
				{&fs.Cred{UID: 3, GID: 19, GIDs: []uint32{10, 11, 12}}, gid < 3 && (gid > 0 || rootGroup) || gid == 19},
			} {
				_, err := c.Lookup(x.cred, dir, []byte("x"))
				if got := err == fs.ErrNoEnt; got != x.want {
					t.Errorf("%s: group %d by %+v: %v", rule, gid, x.cred, err)
				}
			}
		}
	}
}

// From a directory that is exported no call leads out of it.
func TestExportsConfined(t *testing.T) {
	l, _, at := startExports(t, office, officeFiles...)
	all, in := l.mustMount(t, "10.0.0.1:700", "/"), l.mustMount(t, "10.0.0.2:4000", "/a")
	find(t, all, "a")
	up := func(c *nfsclient.Client, h fs.Handle) fs.Handle {
		t.Helper()
		n, err := c.Lookup(root, h, []byte(".."))
		is(t, "LOOKUP ..", err, nil)
		return n.Handle
	}
	b, d := find(t, in, "b"), find(t, in, "b", "d")
	if up(in, d) != at["/a/b"] || up(in, b) != at["/a"] || up(in, at["/a"]) != at["/a"] {
		t.Error(".. of an exported directory is not what it should be")
	}
	if up(all, at["/a"]) != at[""] {
		t.Error(".. in the export of the root is not what it should be")
	}
	for c, want := range map[*nfsclient.Client]bool{in: false, all: true} {
		list, err := c.Readdir(root, at["/a"], 0, 0, true, fs.Limit{Bytes: 8192})
		is(t, "READDIRPLUS", err, nil)
		for _, e := range list.Entries {
			if got := e.Attr != nil; got != (want || string(e.Name) != "..") {
				t.Errorf("READDIRPLUS tells of %s: %v", e.Name, got)
			}
		}
	}
	// A directory that is taken out stays what it is for those who have it, but does not lead on.
	_, _, err := all.Rename(root, at["/a"], []byte("b"), at[""], []byte("moved"))
	is(t, "RENAME", err, nil)
	_, err = in.Lookup(root, d, []byte(".."))
	is(t, "LOOKUP .. outside", err, fs.ErrStale)
	_, err = in.Lookup(root, b, []byte(".."))
	is(t, "LOOKUP .. outside", err, fs.ErrStale)
	_, err = in.Lookup(root, b, []byte("d"))
	is(t, "LOOKUP d", err, nil)
	_, _, err = all.Rename(root, at[""], []byte("a"), at[""], []byte("z"))
	is(t, "RENAME", err, nil)
	_, err = in.Lookup(root, at["/a"], []byte(".."))
	is(t, "LOOKUP .. in an export that is gone", err, fs.ErrStale)
}

// EXPORT lists exports and clients as they stand in the file; everyone is no client.
func TestExportsList(t *testing.T) {
	l, policy, _ := startExports(t, "/b 10.0.0.0/8(rw) *.Example.org *\n/ *(ro)\n")
	list := func() string {
		d, err := nfsclient.NewConn(l.dial(t, "10.0.0.1:4000")).Call(mount3.Program, mount3.Version,
			mount3.ProcExport, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		for d.Bool() {
			b.Write(d.Opaque(1024))
			for d.Bool() {
				b.WriteString(" " + string(d.Opaque(255)))
			}
			b.WriteString("\n")
		}
		if !d.Ok() || len(d.Rest()) > 0 {
			t.Errorf("malformed: % x", d.Rest())
		}
		return b.String()
	}
	if got, want := list(), "/b 10.0.0.0/8 *.Example.org *\n/\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	policy.Set(parse(t, "/c host"))
	if got, want := list(), "/c host\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
