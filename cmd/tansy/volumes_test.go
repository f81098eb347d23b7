package main

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	tansyfs "tansy/fs"
	"tansy/nfs/mount3"
	"tansy/nfs/oncrpc"
	"tansy/test/kit/nfsclient"
)

// What can be given for --volume, and what it means.
func TestVolumeFlag(t *testing.T) {
	for text, want := range map[string]place{
		"v.img":                        {"v.img", "/"},
		"/srv/v.img":                   {"/srv/v.img", "/"},
		"/srv/a.img:/a":                {"/srv/a.img", "/a"},
		"a.img:/a//b/":                 {"a.img", "/a/b"},
		"a.img:/":                      {"a.img", "/"},
		"/dev/disk/by-path/pci-0:00.1": {"/dev/disk/by-path/pci-0:00.1", "/"},
		"odd:/name:/x":                 {"odd:/name", "/x"},
		"backup-12:30":                 {"backup-12:30", "/"},
		"/dev/by-path/usb-0:scsi":      {"/dev/by-path/usb-0:scsi", "/"},
		"a.img:a":                      {},
		"/srv/a.img:a_1":               {},
		"":                             {},
		":/a":                          {},
		"a.img:/a/../b":                {},
	} {
		l := volumeList{list: []place{{"default", "/"}}}
		err := l.Set(text)
		if (err != nil) != (want == place{}) || err == nil && (len(l.list) != 1 || l.list[0] != want) {
			t.Errorf("%q: %v, %v", text, l.list, err)
		}
	}
	for _, x := range []struct {
		volumes []string
		ok      bool
	}{
		{nil, true},
		{[]string{"a.img"}, true},
		{[]string{"a.img:/a", "b.img:/b", "c.img:/srv/c"}, true},
		{[]string{"a.img", "b.img"}, false},
		{[]string{"a.img:/a", "b.img"}, false},
		{[]string{"a.img:/a", "b.img:/a/b"}, false},
		{[]string{"a.img:/a", "b.img:/ab"}, true},
		{[]string{"a.img:/a", "a.img:/b"}, false},
	} {
		l := volumeList{list: []place{{"default", "/"}}}
		for _, v := range x.volumes {
			if err := l.Set(v); err != nil {
				t.Fatal(err)
			}
		}
		if wrong := l.wrong(); (wrong == "") != x.ok {
			t.Errorf("%v: %q", x.volumes, wrong)
		}
	}
}

// mountPath mounts a path of a server.
func mountPath(t *testing.T, p *process, dir string) (*nfsclient.Client, error) {
	t.Helper()
	nc, err := net.Dial("tcp", p.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	return nfsclient.MountDir(nc, dir)
}

func mustMountPath(t *testing.T, p *process, dir string) *nfsclient.Client {
	t.Helper()
	c, err := mountPath(t, p, dir)
	if err != nil {
		t.Fatal(dir, err)
	}
	return c
}

// exported is what `showmount -e` shows.
func exported(t *testing.T, p *process) (all []string) {
	t.Helper()
	c, err := nfsclient.Dial(p.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	d, err := c.Call(mount3.Program, mount3.Version, mount3.ProcExport, &tansyfs.Cred{}, func(*oncrpc.Encoder) {})
	if err != nil {
		t.Fatal(err)
	}
	for d.Bool() {
		line := string(d.Opaque(1024))
		for d.Bool() {
			line += " " + string(d.Opaque(255))
		}
		all = append(all, line)
	}
	return all
}

// Two volumes with different rules, which outlast a restart, as do their handles; and those of a volume
// that was the only one before.
func TestServeVolumes(t *testing.T) {
	t.Parallel()
	dir, cred := t.TempDir(), &tansyfs.Cred{}
	a, b, rules := filepath.Join(dir, "a.img"), filepath.Join(dir, "b.img"), filepath.Join(dir, "exports")
	alone := startServe(t, "--volume", a, "--size", "8M", "--mode", "777")
	c := mustMountPath(t, alone, "/")
	n, err := c.Create(cred, c.Root(), []byte("f"), tansyfs.Guarded, &tansyfs.SetAttr{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	alone.stop(t)

	writeFile(t, rules, "/a *(rw,insecure)\n/srv/b *(ro,insecure)\n/srv/b/sub 127.0.0.1(rw,insecure)\n")
	both := []string{"--cache", "64M", "--volume", a + ":/a", "--volume", b + ":/srv/b", "--size", "8M", "--mode", "777", "--exports", rules, "--status", "127.0.0.1:0"}
	p := startServe(t, both...)
	if got := strings.Join(exported(t, p), "; "); got != "/a; /srv/b; /srv/b/sub 127.0.0.1" {
		t.Errorf("exported: %s", got)
	}
	inA, inB := mustMountPath(t, p, "/a"), mustMountPath(t, p, "/srv/b")
	inA.Learn(c)
	if _, err := inA.Getattr(n.Handle); err != nil {
		t.Errorf("a handle of the time when the volume was alone: %v", err)
	}
	if _, err := inA.Mkdir(cred, inA.Root(), []byte("d"), &tansyfs.SetAttr{}); err != nil {
		t.Error(err)
	}
	if _, err := inB.Mkdir(cred, inB.Root(), []byte("d"), &tansyfs.SetAttr{}); err != tansyfs.ErrROFS {
		t.Errorf("MKDIR where nothing may be changed: %v", err)
	}
	if _, err := mountPath(t, p, "/"); !errors.Is(err, tansyfs.ErrAcces) {
		t.Errorf("MNT of what is no volume: %v", err)
	}
	metrics := get(t, p.status+"metrics")
	for _, want := range []string{`tansy_healthy{volume="/a"} 1`, `tansy_healthy{volume="/srv/b"} 1`, `tansy_cache_size_bytes{volume="/a"} 2.5362432e+07`} {
		if !strings.Contains(metrics, "\n"+want+"\n") {
			t.Errorf("no %s", want)
		}
	}
	p.stop(t)

	again := startServe(t, both...)
	inA2, inB2 := mustMountPath(t, again, "/a"), mustMountPath(t, again, "/srv/b")
	inA2.Learn(inA)
	inB2.Learn(inB)
	if _, err := inA2.Lookup(cred, inA.Root(), []byte("d")); err != nil {
		t.Error("a handle of before the restart:", err)
	}
	if _, err := inB2.Getattr(inB.Root()); err != nil {
		t.Error("a handle of before the restart:", err)
	}
	again.stop(t)
}

// unready waits until a server says that not all is well, and what.
func unready(t *testing.T, p *process) string {
	t.Helper()
	for {
		r, err := http.Get(p.status + "readyz")
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r.Body)
		r.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if r.StatusCode != http.StatusOK {
			return string(text)
		}
	}
}

// A volume that is taken away, or that another server opens, does not stop the other one.
func TestServeVolumeLost(t *testing.T) {
	t.Parallel()
	for what, harm := range map[string]func(img string) error{"deleted": os.Remove, "opened by another host": openBehind} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			dir, cred := t.TempDir(), &tansyfs.Cred{}
			a, b := filepath.Join(dir, "a.img"), filepath.Join(dir, "b.img")
			p := startServe(t, "--volume", a+":/a", "--volume", b+":/b", "--size", "8M", "--status", "127.0.0.1:0")
			inA, inB := mustMountPath(t, p, "/a"), mustMountPath(t, p, "/b")
			if err := harm(a); err != nil {
				t.Fatal(err)
			}
			if text := unready(t, p); !strings.HasPrefix(text, "/a: ") || strings.Contains(text, "/b: ") {
				t.Errorf("readyz: %q", text)
			}
			p.says(t, "not served any more")
			if _, err := inA.Getattr(inA.Root()); err != tansyfs.ErrIO {
				t.Errorf("GETATTR in the volume that is gone: %v", err)
			}
			if _, err := inB.Create(cred, inB.Root(), []byte("f"), tansyfs.Guarded, &tansyfs.SetAttr{}, 0); err != nil {
				t.Errorf("CREATE in the other volume: %v", err)
			}
			if err := os.Remove(b); err != nil {
				t.Fatal(err)
			}
			if code := p.wait(t); code != exitLost {
				t.Errorf("exit code %d, want %d", code, exitLost)
			}
		})
	}
}

// Volumes that cannot be opened do not keep the others from being served, unless there are none.
func TestServeVolumeDamaged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, b, copied := filepath.Join(dir, "a.img"), filepath.Join(dir, "b.img"), filepath.Join(dir, "copy.img")
	if code := run([]string{"mkfs", a, "--size", "8M"}); code != exitOK {
		t.Fatal(code)
	}
	writeFile(t, b, strings.Repeat("no volume", 1<<20))
	image, err := os.ReadFile(a)
	if err := errors.Join(err, os.WriteFile(copied, image, 0o600)); err != nil {
		t.Fatal(err)
	}
	p := startServe(t, "--volume", a+":/a", "--volume", b+":/b", "--volume", copied+":/c", "--status", "127.0.0.1:0")
	if text := unready(t, p); !strings.Contains(text, "/b: ") || !strings.Contains(text, "/c: "+copied+" has the identity of "+a) {
		t.Errorf("readyz: %q", text)
	}
	mustMountPath(t, p, "/a")
	for _, dir := range []string{"/b", "/c"} {
		if _, err := mountPath(t, p, dir); !errors.Is(err, tansyfs.ErrIO) {
			t.Errorf("MNT %s: %v", dir, err)
		}
	}
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := p.wait(t); code != exitFailure {
		t.Errorf("exit code %d, want %d, as not all was well", code, exitFailure)
	}
	if code := run([]string{"serve", "--volume", b + ":/b", "--volume", filepath.Join(dir, "none", "x") + ":/c", "--listen", "127.0.0.1:0"}); code != exitFailure {
		t.Errorf("no volume can be opened: exit code %d", code)
	}
}
