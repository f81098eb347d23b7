package server_test

import (
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

// twoVolumes serves two models, in /a with rules that tell hosts apart, and in /srv/b, which
// everybody may read.
func twoVolumes(t *testing.T) (l *hosts, s *server.Server, a, b *model.Model) {
	a, _ = planted(t, "/sub/", "/sub/in a", "/x")
	b, _ = planted(t, "/sub/", "/sub/in b")
	rules := func(file string) *exports.Policy { return exports.NewPolicy(parse(t, file)) }
	l, s = startOn(t,
		server.Volume{Path: "/a", FS: a, ID: [8]byte{1}, Key: [16]byte{1},
			Exports: rules("/ 10.0.0.1(rw,insecure)\n/sub 10.0.0.2(rw,insecure)")},
		server.Volume{Path: "/srv/b", FS: b, ID: [8]byte{2}, Key: [16]byte{2}, Exports: rules("/ *(ro,insecure)")})
	return l, s, a, b
}

func TestVolumes(t *testing.T) {
	l, _, a, b := twoVolumes(t)
	inA, inB := l.mustMount(t, "10.0.0.1:900", "/a"), l.mustMount(t, "10.0.0.1:901", "/srv/b")
	find(t, inA, "sub", "in a")
	find(t, inB, "sub", "in b")
	for dir, want := range map[string]error{
		"/": fs.ErrAcces, "/srv": fs.ErrAcces, "/b": fs.ErrNoEnt, "/a/none": fs.ErrNoEnt, "/ab": fs.ErrNoEnt,
		"/srv/b/sub": nil, "/a/sub": nil, "/srv/b/x": fs.ErrNoEnt,
	} {
		_, err := l.mount(t, "10.0.0.1:902", dir)
		is(t, "MNT "+dir, err, want)
	}
	// Each volume has its own rules.
	_, err := l.mount(t, "10.0.0.2:900", "/a")
	is(t, "MNT /a by the other host", err, fs.ErrAcces)
	sub := l.mustMount(t, "10.0.0.2:900", "/a/sub")
	find(t, sub, "in a")
	_, err = inA.Create(root, inA.Root(), []byte("new"), fs.Guarded, mode(0o644), 0)
	is(t, "CREATE in a", err, nil)
	_, err = inB.Create(root, inB.Root(), []byte("new"), fs.Guarded, mode(0o644), 0)
	is(t, "CREATE in b", err, fs.ErrROFS)
	if _, err := a.Lookup(root, a.Root(), []byte("new")); err != nil {
		t.Error("the file is not in a:", err)
	}
	if _, err := b.Lookup(root, b.Root(), []byte("new")); err == nil {
		t.Error("a file of a is in b")
	}
}

// A second handle of another volume is NFS3ERR_XDEV, whichever the procedure, and nothing changes.
func TestVolumesApart(t *testing.T) {
	l, _, a, b := twoVolumes(t)
	inA, inB := l.mustMount(t, "10.0.0.1:900", "/a"), l.mustMount(t, "10.0.0.1:901", "/srv/b")
	file := find(t, inA, "x")
	for what, first := range map[uint32][]byte{nfs3.ProcRename: inA.Raw(inA.Root()), nfs3.ProcLink: inA.Raw(file)} {
		d, err := inA.Call(nfs3.Program, nfs3.Version, what, root, func(e *oncrpc.Encoder) {
			e.Opaque(first)
			if what == nfs3.ProcRename {
				e.Opaque([]byte("x"))
			}
			e.Opaque(inB.Raw(inB.Root()))
			e.Opaque([]byte("y"))
		})
		if err != nil || d.Uint32() != uint32(fs.ErrXDev) {
			t.Errorf("procedure %d from one volume to the other: %v", what, err)
		}
	}
	if _, err := a.Lookup(root, a.Root(), []byte("x")); err != nil {
		t.Error("x is gone:", err)
	}
	if _, err := b.Lookup(root, b.Root(), []byte("y")); err == nil {
		t.Error("y is there")
	}
	// The volumes have different numbers, so that clients tell their files apart.
	fsid := func(c *nfsclient.Client) uint64 {
		d, err := c.Call(nfs3.Program, nfs3.Version, nfs3.ProcGetattr, root,
			func(e *oncrpc.Encoder) { e.Opaque(c.Raw(c.Root())) })
		if err != nil || d.Uint32() != 0 {
			t.Fatal("GETATTR:", err)
		}
		d.Fixed(44)
		return d.Uint64()
	}
	if fsid(inA) == fsid(inB) {
		t.Error("both volumes have the same fsid")
	}
}

// What EXPORT says is what showmount -e shows.
func TestVolumesListed(t *testing.T) {
	l, _, _, _ := twoVolumes(t)
	c := nfsclient.NewConn(l.dial(t, "10.0.0.9:900"))
	defer c.Close()
	d, err := c.Call(mount3.Program, mount3.Version, mount3.ProcExport, root, func(*oncrpc.Encoder) {})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for d.Bool() {
		line := string(d.Opaque(1024))
		for d.Bool() {
			line += " " + string(d.Opaque(255))
		}
		got = append(got, line)
	}
	want := []string{"/a 10.0.0.1", "/a/sub 10.0.0.2", "/srv/b"}
	if !d.Ok() || len(got) != len(want) || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
		t.Errorf("EXPORT: %q, want %q", got, want)
	}
}

// A volume that failed takes no other with it, and its files are not forgotten by clients.
func TestVolumeFails(t *testing.T) {
	l, s, _, _ := twoVolumes(t)
	inA, inB := l.mustMount(t, "10.0.0.1:900", "/a"), l.mustMount(t, "10.0.0.1:901", "/srv/b")
	s.Fail(0)
	_, err := inA.Getattr(inA.Root())
	is(t, "GETATTR in the failed volume", err, fs.ErrIO)
	_, err = l.mount(t, "10.0.0.1:902", "/a")
	is(t, "MNT of the failed volume", err, fs.ErrIO)
	find(t, inB, "sub", "in b")
	l.mustMount(t, "10.0.0.1:903", "/srv/b")
}

// A volume that could not be opened is there, and its handles from before are not stale.
func TestVolumeMissing(t *testing.T) {
	a, _ := planted(t)
	b, _ := planted(t)
	old, _ := startOn(t, server.Volume{FS: a, ID: [8]byte{1}, Key: [16]byte{1}})
	before := old.mustMount(t, "10.0.0.1:900", "/")
	handle := before.Raw(before.Root())
	getattr := func(l *hosts) fs.Errno {
		c := nfsclient.NewConn(l.dial(t, "10.0.0.1:900"))
		defer c.Close()
		d, err := c.Call(nfs3.Program, nfs3.Version, nfs3.ProcGetattr, root, func(e *oncrpc.Encoder) { e.Opaque(handle) })
		if err != nil {
			t.Fatal(err)
		}
		return fs.Errno(d.Uint32())
	}
	second := server.Volume{Path: "/b", FS: b, ID: [8]byte{2}, Key: [16]byte{2}}
	l, _ := startOn(t, server.Volume{Path: "/a"}, second)
	if stat := getattr(l); stat != fs.ErrIO {
		t.Errorf("a handle of the missing volume: %v", stat)
	}
	_, err := l.mount(t, "10.0.0.1:900", "/a")
	is(t, "MNT of the missing volume", err, fs.ErrIO)
	l.mustMount(t, "10.0.0.1:900", "/b")

	l, _ = startOn(t, server.Volume{Path: "/a", FS: a, ID: [8]byte{1}, Key: [16]byte{1}}, second)
	if stat := getattr(l); stat != 0 {
		t.Errorf("a handle of the time when the volume was the only one: %v", stat)
	}
	l, _ = startOn(t, second)
	if stat := getattr(l); stat != fs.ErrStale {
		t.Errorf("a handle of a volume that is none of the server's: %v", stat)
	}
}
