package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tansy/disk"
	tansyfs "tansy/fs"
	"tansy/test/kit/hosttest"
	"tansy/test/kit/nfsclient"
)

// total is how many bytes a volume has for data, as clients see it.
func total(t *testing.T, c *nfsclient.Client) uint64 {
	t.Helper()
	s, _, err := c.Fsstat(c.Root())
	if err != nil {
		t.Fatal(err)
	}
	return s.TotalBytes
}

// fillUp writes files until there is no room.
func fillUp(t *testing.T, c *nfsclient.Client, prefix string) (bytes uint64) {
	t.Helper()
	for i := 0; ; i++ {
		name := []byte(prefix + string(rune('a'+i)))
		n, err := c.Create(&tansyfs.Cred{}, c.Root(), name, tansyfs.Unchecked, &tansyfs.SetAttr{}, 0)
		for off := uint64(0); err == nil && off < 64<<20; off += 1 << 20 {
			if _, _, _, err = c.Write(&tansyfs.Cred{}, n.Handle, off, make([]byte, 1<<20), tansyfs.FileSync); err == nil {
				bytes += 1 << 20
			}
		}
		if err == tansyfs.ErrNoSpc {
			return bytes
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// A server has an image grow that is full, and a device, while clients use it: they see more at once, and all of it is
// right, also after the server was killed.
func TestGrowServed(t *testing.T) {
	t.Parallel()
	for kind, x := range map[string]struct {
		of    func(*testing.T, ...string) growing
		flags []string
	}{
		"image":       {growingImage, []string{"--size", "80M"}},
		"lengthened":  {growingImage, nil},
		"loop device": {growingLoop, nil},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			g := x.of(t, "--max-size", "1T")
			p := startServe(t, "--volume", g.name(), "--status", "127.0.0.1:0")
			c, err := nfsclient.Mount(p.addr)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			before := total(t, c)
			fillUp(t, c, "before-")
			if x.flags == nil {
				g.size(64 << 20)
			}
			code, said := tool(t, append([]string{"grow", p.status}, x.flags...)...)
			if code != exitOK || !strings.Contains(said, "has 80M now") || !strings.Contains(said, "before 16M") {
				t.Fatalf("exit code %d\n%s", code, said)
			}
			p.says(t, "the volume has grown")
			if now := total(t, c); now < before+60<<20 {
				t.Errorf("%d bytes, before %d", now, before)
			}
			if more := fillUp(t, c, "after-"); more < 50<<20 {
				t.Errorf("%d bytes more can be written", more)
			}
			at := strings.TrimPrefix(strings.Trim(p.status, "/"), "http://")
			code, said = tool(t, append([]string{"grow", at}, x.flags...)...)
			if code != exitOK || !strings.Contains(said, "has 80M already") {
				t.Errorf("again: exit code %d\n%s", code, said)
			}
			p.cmd.Process.Kill()
			p.cmd.Wait()
			p = startServe(t, "--volume", g.name())
			p.stop(t)
			if code, said := tool(t, "check", g.name(), "--data"); code != exitOK || strings.Contains(said, larger) {
				t.Errorf("check: exit code %d\n%s", code, said)
			}
		})
	}
}

// What a server is asked for in vain says why: of several volumes one has to be named, one of one size stays, and what
// is wrong is told as such.
func TestGrowServedInVain(t *testing.T) {
	t.Parallel()
	a, b := newImage(t, "--max-size", "1G"), newImage(t, "--max-size", "16M")
	p := startServe(t, "--volume", a+":/a", "--volume", b+":/b", "--status", "127.0.0.1:0")
	for _, x := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{p.status}, exitUsage, "give --volume and one of /a, /b"},
		{[]string{p.status, "--volume", "/c"}, exitUsage, `no volume "/c"`},
		{[]string{p.status, "--volume", "/b"}, exitFailure, "mkfs --max-size"},
		{[]string{p.status, "--volume", "/b", "--size", "1G"}, exitFailure, "mkfs --max-size"},
		{[]string{p.status, "--volume", "/a"}, exitOK, "has 16M already"},
		{[]string{p.status, "--volume", "/a", "--size", "8M"}, exitUsage, "never becomes smaller"},
		{[]string{p.status, "--volume", "/a", "--size", "2G"}, exitUsage, "no larger than 1G"},
		{[]string{p.status, "--volume", "/a", "--size", "64000001"}, exitUsage, "no multiple of 4096"},
		{[]string{p.status, "--volume", "/a", "--inodes", "2000000000"}, exitUsage, "more than the 65536"},
		{[]string{p.status, "--volume", "/a", "--size", "512M", "--inodes", "2000000000"}, exitUsage, "more than the 65536"},
		{[]string{p.status, "--volume", a, "--size", "64M"}, exitOK, "has 64M now"},
		{[]string{p.addr}, exitUsage, ""},
		{[]string{"127.0.0.1:1"}, exitUsage, "--status"},
		{[]string{a}, exitOK, "has 64M already"},
		{[]string{a, "--volume", "/a"}, exitUsage, "--volume is for a server"},
	} {
		code, said := tool(t, append([]string{"grow"}, x.args...)...)
		if code != x.code || !strings.Contains(said, x.says) {
			t.Errorf("%q: exit code %d, want %d and %q\n%s", x.args, code, x.code, x.says, said)
		}
	}
	if st, err := os.Stat(a); err != nil || st.Size() != 64<<20 {
		t.Errorf("what was refused made the image longer: %v", err)
	}
	if st, err := os.Stat(b); err != nil || st.Size() != volumeBytes {
		t.Errorf("the image of a volume of one size was made longer: %v", err)
	}
	if now := total(t, mustMountPath(t, p, "/a")); now < 55<<20 {
		t.Errorf("/a has %d bytes", now)
	}
}

// With --grow a server uses what its device became larger by, also where only a new start tells: of an NBD server, and
// of Ceph.
func TestServeGrow(t *testing.T) {
	t.Parallel()
	for kind, of := range map[string]func(*testing.T, ...string) growing{
		"image": growingImage, "NBD": growingExport, "Ceph": growingCeph,
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			g := of(t, "--max-size", "1T")
			used(t, "a", append(leaseFor(kind), "--volume", g.name())...)
			g.size(64 << 20)
			p := startServe(t, append(leaseFor(kind), "--volume", g.name(), "--grow", "--status", "127.0.0.1:0")...)
			p.says(t, "the volume has grown")
			if now := total(t, mustMountPath(t, p, "/")); now < 70<<20 {
				t.Errorf("%d bytes", now)
			}
			if kind != "image" {
				code, said := tool(t, "grow", p.status)
				if code != exitFailure || !strings.Contains(said, "start the server again, with --grow") {
					t.Errorf("exit code %d\n%s", code, said)
				}
			}
			p.stop(t)
			if strings.Contains(p.stderr.String(), larger) {
				t.Error(p.stderr.String())
			}
			used(t, "b", append(leaseFor(kind), "--volume", g.name(), "--grow")...)
			if code, said := tool(t, "check", g.name(), "--data"); code != exitOK {
				t.Errorf("check: exit code %d\n%s", code, said)
			}
		})
	}
	if code, said := tool(t, "serve", "--volume", newImage(t), "--grow", "--read-only"); code != exitUsage {
		t.Errorf("--read-only: exit code %d\n%s", code, said)
	}
}

// A volume for which nobody said how large it may become can grow to 16 TiB: one that serve makes, with --size or
// without, and one of mkfs.
func TestGrowUnsized(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := newServe("--status", "127.0.0.1:0")
	p.cmd.Dir = dir
	p.start(t)
	if code, said := tool(t, "grow", p.status, "--size", "12G"); code != exitOK || !strings.Contains(said, "before 10G") {
		t.Errorf("exit code %d\n%s", code, said)
	}
	code, said := tool(t, "grow", p.status, "--size", "16T")
	if code != exitUsage || !strings.Contains(said, "no larger") {
		t.Errorf("16T: exit code %d\n%s", code, said)
	}
	p.stop(t)
	if code, said := tool(t, "check", filepath.Join(dir, "tansy.img"), "--data"); code != exitOK {
		t.Errorf("check: exit code %d\n%s", code, said)
	}
	sized := filepath.Join(dir, "sized.img")
	used(t, "a", "--volume", sized, "--size", "64M")
	for _, path := range []string{sized, newImage(t)} {
		if code, said := tool(t, "grow", path, "--size", "1T"); code != exitOK || !strings.Contains(said, "has 1T now") {
			t.Errorf("%s: exit code %d\n%s", path, code, said)
		}
	}
}

// leaseFor are flags that have a server on Ceph start soon.
func leaseFor(kind string) []string {
	if kind == "Ceph" {
		return []string{"--lease", "1s"}
	}
	return nil
}

// A preallocated image keeps all its room when it is made longer while it is served.
func TestGrowServedPreallocated(t *testing.T) {
	t.Parallel()
	path := newImage(t, "--max-size", "1T", "--preallocate")
	before := room(t, path)
	p := startServe(t, "--volume", path, "--status", "127.0.0.1:0")
	if code, said := tool(t, "grow", p.status, "--size", "48M"); code != exitOK {
		t.Errorf("exit code %d\n%s", code, said)
	}
	p.stop(t)
	if after := room(t, path); after < before+32<<20 {
		t.Errorf("%d bytes of the host before, %d after", before, after)
	}
}

// A preallocated image that was longer than its volume when the server started has all its room, too, once the volume
// has grown; and one that the host has no room for stays as long as it was.
func TestGrowServedLongerPreallocated(t *testing.T) {
	t.Parallel()
	path := newImage(t, "--max-size", "8T", "--preallocate")
	before := room(t, path)
	resize(t, path)(16 << 20)
	p := startServe(t, "--volume", path, "--status", "127.0.0.1:0")
	if code, said := tool(t, "grow", p.status); code != exitOK || !strings.Contains(said, "has 32M now") {
		t.Errorf("exit code %d\n%s", code, said)
	}
	if after := room(t, path); after < before+16<<20 {
		t.Errorf("%d bytes of the host before, %d after", before, after)
	}
	if free, err := disk.HostFree(path); err == nil && free < 8<<40 {
		code, said := tool(t, "grow", p.status, "--size", "8T")
		if st, err := os.Stat(path); code != exitFailure || err != nil || st.Size() != 32<<20 {
			t.Errorf("more than the host has: exit code %d, %v\n%s", code, err, said)
		}
	}
	p.stop(t)
}

// It is the image that is open that becomes longer, whatever its path leads to by now.
func TestGrowServedRenamed(t *testing.T) {
	t.Parallel()
	for _, other := range []bool{false, true} {
		path := newImage(t, "--max-size", "1T")
		p := startServe(t, "--volume", path, "--status", "127.0.0.1:0")
		if err := os.Rename(path, path+".moved"); err != nil {
			t.Fatal(err)
		}
		if other {
			if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 128<<20)); err != nil {
				t.Fatal(err)
			}
		}
		code, said := tool(t, "grow", p.status, "--size", "64M")
		if code != exitOK || !strings.Contains(said, "has 64M now") {
			t.Errorf("another file at its path %v: exit code %d\n%s", other, code, said)
		}
		p.cmd.Process.Kill()
		p.cmd.Wait()
	}
}

// A name is that of a server if it is an address, and no file.
func TestIsServer(t *testing.T) {
	t.Chdir(t.TempDir())
	hosttest.Run(t, "touch", "host:1")
	for name, want := range map[string]bool{
		"127.0.0.1": true, "127.0.0.1:9049": true, "[::1]:9049": true, "::1": true, "localhost": true, "9049": true,
		"host:9049": true, "http://host/": true, "https://host:1": true, "host:nfs": true,
		"data.img": false, "host": false, "./9049": false, "/dev/sdb": false, "host:1": false, "host:no-port": false,
		"nbd://host/export": false, "rbd:pool/image": false, "": false, "dir/host:9049": false,
	} {
		if isServer(name) != want {
			t.Errorf("%q: %v", name, !want)
		}
	}
}
