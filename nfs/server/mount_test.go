package server_test

import (
	"fmt"
	"testing"

	"tansy/disk"
	"tansy/fs"
	"tansy/fs/model"
	"tansy/nfs/mount3"
	"tansy/nfs/oncrpc"
	"tansy/nfs/server"
)

// TestMountSubdirectory: what MNT of a directory gives is the handle that LOOKUP gives,
// and whoever may not search the way there gets none. Both in the model and in a volume.
func TestMountSubdirectory(t *testing.T) {
	d := disk.NewMem(4096 * disk.BlockSize)
	if err := fs.Mkfs(d, fs.MkfsOptions{Zeroed: true}); err != nil {
		t.Fatal(err)
	}
	v, err := fs.Open(d, fs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	for name, fsys := range map[string]fs.FileSystem{"model": model.New(model.Options{}), "volume": v} {
		for _, squash := range []bool{false, true} {
			t.Run(fmt.Sprint(name, squash), func(t *testing.T) {
				testSubdirectory(t, fsys, squash)
			})
		}
	}
}

func testSubdirectory(t *testing.T, fsys fs.FileSystem, squash bool) {
	make := func(dir fs.Handle, name string, m uint32) fs.Handle {
		n, err := fsys.Mkdir(root, dir, []byte(name), mode(m))
		if err == fs.ErrExist {
			n, err = fsys.Lookup(root, dir, []byte(name))
		}
		if err != nil {
			t.Fatal(err)
		}
		return n.Handle
	}
	a := make(fsys.Root(), "a", 0o755)
	private := make(a, "private", 0o700)
	make(private, "d", 0o777)
	if _, err := fsys.Symlink(root, a, []byte("s"), &fs.SetAttr{}, []byte("/a")); err != nil && err != fs.ErrExist {
		t.Fatal(err)
	}
	if _, err := fsys.Create(root, a, []byte("f"), fs.Unchecked, mode(0o644), 0); err != nil {
		t.Fatal(err)
	}
	addr, _ := startServer(t, server.Config{Volumes: []server.Volume{{FS: fsys}}, RootSquash: squash})
	c := mount(t, addr)
	own := uint32(mount3.OK) // what user 0 gets in a directory of its own
	if squash {
		own = mount3.ErrAcces
	}
	for _, x := range []struct {
		cred *fs.Cred
		dir  string
		want uint32
		via  []string
	}{
		{root, "/", mount3.OK, nil},
		{root, "/a", mount3.OK, []string{"a"}},
		{root, "//a/./private/", mount3.OK, []string{"a", "private"}},
		{&fs.Cred{UID: 7}, "/a/private", mount3.OK, []string{"a", "private"}},
		{&fs.Cred{UID: 7}, "/a/private/d", mount3.ErrAcces, nil},
		{&fs.Cred{UID: 7}, "/a/private/nothing", mount3.ErrAcces, nil},
		{nil, "/a/private/d", mount3.ErrAcces, nil},
		{root, "/a/private/d", own, []string{"a", "private", "d"}},
		{root, "/a/private/..", own, []string{"a"}},
		{root, "/nothing", mount3.ErrNoEnt, nil},
		{root, "/a/f", mount3.ErrNotDir, nil},
		{root, "/a/f/..", mount3.ErrNotDir, nil},
		{root, "/a/s", mount3.ErrNotDir, nil},
		{root, "/a/s/private", mount3.ErrNotDir, nil},
	} {
		d, err := c.Call(mount3.Program, mount3.Version, mount3.ProcMnt, x.cred,
			func(e *oncrpc.Encoder) { e.Opaque([]byte(x.dir)) })
		if err != nil {
			t.Fatal(err)
		}
		if got := d.Uint32(); got != x.want {
			t.Errorf("MNT %s by %v: status %d, want %d", x.dir, x.cred, got, x.want)
			continue
		}
		if x.want != mount3.OK {
			continue
		}
		at := c.Root()
		for _, name := range x.via {
			n, err := c.Lookup(root, at, []byte(name))
			if err != nil {
				t.Fatal(err)
			}
			at = n.Handle
		}
		if got := string(d.Opaque(64)); got != string(c.Raw(at)) {
			t.Errorf("MNT %s: another handle than LOOKUP's", x.dir)
		}
	}
}
