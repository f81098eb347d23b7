package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"tansy/disk"
	tansyfs "tansy/fs"
	"tansy/test/kit/nfsclient"
)

// rootOf returns the attributes of the root directory of a volume.
func rootOf(t *testing.T, img string) tansyfs.Attr {
	t.Helper()
	d, err := disk.OpenFile(img, disk.FileOptions{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	v, err := tansyfs.Open(d, tansyfs.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	a, err := v.Getattr(v.Root())
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func wantRoot(t *testing.T, a tansyfs.Attr, uid, gid, mode uint32) {
	t.Helper()
	if a.UID != uid || a.GID != gid || a.Mode != mode {
		t.Errorf("root directory %d:%d %04o, want %d:%d %04o", a.UID, a.GID, a.Mode, uid, gid, mode)
	}
}

// The root directory belongs to who makes the volume, or to whom the flags name.
func TestOwner(t *testing.T) {
	dir := t.TempDir()
	uid, gid := uint32(os.Geteuid()), uint32(os.Getegid())
	if uid == 0 {
		gid = 0
	}
	for _, x := range []struct {
		flags          []string
		uid, gid, mode uint32
	}{
		{nil, uid, gid, 0o755},
		{[]string{"--owner", "0:0"}, 0, 0, 0o755},
		{[]string{"--owner", "1000:1001", "--mode", "1777"}, 1000, 1001, 0o1777},
		{[]string{"--mode", "0700"}, uid, gid, 0o700},
		{[]string{"--owner", "4294967294:0"}, 1<<32 - 2, 0, 0o755},
	} {
		img := filepath.Join(dir, "v.img")
		if code := run(append([]string{"mkfs", img, "--size", "6M"}, x.flags...)); code != exitOK {
			t.Fatalf("%v: exit code %d", x.flags, code)
		}
		wantRoot(t, rootOf(t, img), x.uid, x.gid, x.mode)
		if err := os.Remove(img); err != nil {
			t.Fatal(err)
		}
	}
	for _, bad := range [][]string{
		{"--owner", ""}, {"--owner", "3999999999"}, {"--owner", "3999999999:"}, {"--owner", ":1000"}, {"--owner", "me:us"},
		{"--owner", "1:2:3"}, {"--owner", "root:us"},
		{"--owner", "-1:0"}, {"--owner", "4294967295:0"}, {"--owner", "0:4294967295"}, {"--owner", "4294967296:0"},
		{"--mode", ""}, {"--mode", "0"}, {"--mode", "800"}, {"--mode", "10000"}, {"--mode", "rwx"}, {"--mode", "0o755"},
	} {
		if code := run(append([]string{"mkfs", filepath.Join(dir, "bad.img"), "--size", "6M"}, bad...)); code != exitUsage {
			t.Errorf("%v: exit code %d", bad, code)
		}
	}
}

// serve makes a volume as mkfs does; one that exists keeps its root directory. With it
// --root-squash can be used at once.
func TestServeOwner(t *testing.T) {
	img := filepath.Join(t.TempDir(), "v.img")
	for _, flags := range [][]string{{"--owner", "1000:1001", "--mode", "0750"}, {"--owner", "7:8", "--mode", "0700"}} {
		p := startServe(t, append(flags, "--volume", img, "--size", "8M", "--root-squash")...)
		c, err := nfsclient.Mount(p.addr)
		if err != nil {
			t.Fatal(err)
		}
		a, err := c.Getattr(c.Root())
		if err != nil {
			t.Fatal(err)
		}
		wantRoot(t, a, 1000, 1001, 0o750)
		if _, err := c.Mkdir(&tansyfs.Cred{UID: 1000, GID: 1001}, c.Root(), []byte(flags[1]), &tansyfs.SetAttr{}); err != nil {
			t.Error(err)
		}
		if _, err := c.Mkdir(&tansyfs.Cred{}, c.Root(), []byte("root's"), &tansyfs.SetAttr{}); err != tansyfs.ErrAcces {
			t.Errorf("MKDIR by the squashed user 0: %v", err)
		}
		c.Close()
		p.stop(t)
	}
}

// A volume made by an ordinary user is that user's.
func TestOrdinaryUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to be another user; TestOwner makes a volume as this one")
	}
	dir := t.TempDir()
	for _, err := range []error{os.Chmod(filepath.Dir(dir), 0o755), os.Chown(dir, 1234, 1234)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	img := filepath.Join(dir, "v.img")
	cmd := exec.Command(os.Args[0], "-test.run=^TestHelperTansy$")
	cmd.Env = append(os.Environ(), "TANSY_ARGS=mkfs\n"+img+"\n--size\n6M", "TANSY_USER=1234")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	wantRoot(t, rootOf(t, img), 1234, 1234, 0o755)
}
