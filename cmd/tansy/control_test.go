package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tansy/disk"
	tansyfs "tansy/fs"
	"tansy/test/kit/nfsclient"
)

// changing has a client overwrite and remove files until stop is called.
func changing(t *testing.T, addr string) (stop func()) {
	t.Helper()
	c, err := nfsclient.Mount(addr)
	if err != nil {
		t.Fatal(err)
	}
	quit, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		defer c.Close()
		for i := byte(0); ; i++ {
			select {
			case <-quit:
				ended <- nil
				return
			default:
			}
			name := []byte{'f', 'a' + i%5}
			n, err := c.Create(&tansyfs.Cred{}, c.Root(), name, tansyfs.Unchecked, &tansyfs.SetAttr{}, 0)
			if err == nil {
				_, _, _, err = c.Write(&tansyfs.Cred{}, n.Handle, 0, bytes.Repeat([]byte{i}, 300_000), tansyfs.FileSync)
			}
			if err == nil && i%3 == 0 {
				_, err = c.Remove(&tansyfs.Cred{}, c.Root(), name)
			}
			if err != nil {
				ended <- err
				return
			}
		}
	}()
	return func() {
		close(quit)
		if err := <-ended; err != nil {
			t.Errorf("a client, meanwhile: %v", err)
		}
	}
}

// A volume that is served is checked beside its clients, and grows, by the name of its image; also when a server that
// was killed has left its socket there. By one without a socket that is refused.
func TestServedByName(t *testing.T) {
	t.Parallel()
	img := newImage(t, "--max-size", "1G")
	for range 2 {
		p := startServe(t, "--volume", img)
		stop := changing(t, p.addr)
		for range 3 {
			code, said := tool(t, "check", img, "--data")
			if code != exitOK || !strings.Contains(said, "clean") || !strings.Contains(said, "is in use: what follows") {
				t.Errorf("check: exit code %d\n%s", code, said)
			}
		}
		p.says(t, "a moment of the volume ends")
		stop()
		p.cmd.Process.Kill()
		p.cmd.Wait()
	}
	p := startServe(t, "--volume", img)
	if code, said := tool(t, "grow", img, "--size", "32M"); code != exitOK || !strings.Contains(said, "has 32M now") {
		t.Errorf("grow: exit code %d\n%s", code, said)
	}
	if code, said := tool(t, "grow", img, "--size", "8M"); code != exitUsage || !strings.Contains(said, "smaller") {
		t.Errorf("grow to less: exit code %d\n%s", code, said)
	}
	socket, ok := socketOf(img)
	p.stop(t)
	if _, err := os.Lstat(socket); !ok || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket %q is left: %v", socket, err)
	}
	p = startServe(t, "--volume", img, "--control", "none")
	for _, args := range [][]string{{"check", img}, {"grow", img}} {
		if code, said := tool(t, args...); code == exitOK || !strings.Contains(said, "in use by another server") {
			t.Errorf("%v without a socket: exit code %d\n%s", args, code, said)
		}
	}
	p.stop(t)
}

// A copy of an image that is served, in use by somebody else, is not taken for the image: they have one UUID.
func TestServedCopy(t *testing.T) {
	t.Parallel()
	img := newImage(t)
	copied := img + ".copy"
	b, err := os.ReadFile(img)
	if err == nil {
		err = os.WriteFile(copied, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	d, err := disk.OpenFile(copied, disk.FileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	relative, err := filepath.Rel(here, img)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{img, relative} {
		p := startServe(t, "--volume", name)
		for _, args := range [][]string{{"check", copied}, {"grow", copied}, {"grow", copied, "--size", "1G"}} {
			code, said := tool(t, args...)
			if code == exitOK || !strings.Contains(said, "another image of the same volume") {
				t.Errorf("%s is served: %v: exit code %d\n%s", name, args, code, said)
			}
		}
		p.stop(t)
	}
}

// A folder for sockets that is not good enough is refused if it was asked for, and else warned of.
func TestControlFolder(t *testing.T) {
	t.Parallel()
	img := newImage(t)
	open := filepath.Join(t.TempDir(), "open")
	if err := os.Mkdir(open, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		flags []string
		code  int
		says  string
	}{
		{[]string{"--control", open}, exitFailure, "--control: " + open},
		{[]string{"--moment-spill", "0"}, exitUsage, "--moment-spill 0 is too little"},
	} {
		code, said := tool(t, append([]string{"serve", "--volume", img, "--listen", "127.0.0.1:0"}, c.flags...)...)
		if code != c.code || !strings.Contains(said, c.says) {
			t.Errorf("%v: exit code %d\n%s", c.flags, code, said)
		}
	}
	p := newServe("--volume", img)
	p.cmd.Env = append(p.cmd.Env, "RUNTIME_DIRECTORY="+open)
	p.start(t)
	p.says(t, "cannot reach the volume while it is in use")
	p.stop(t)
}

// A volume that is served is backed up beside its clients, in a chain, and each backup is a volume with what was
// acknowledged before.
func TestBackupServed(t *testing.T) {
	t.Parallel()
	img, to := newImage(t), filepath.Join(t.TempDir(), "backups")
	p := startServe(t, "--volume", img)
	c, err := nfsclient.Mount(p.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	stop := changing(t, p.addr)
	var files []string // in their order; those of one second have other names
	for i := range 3 {
		name := []byte{'k', 'a' + byte(i)}
		if _, err := c.Create(&tansyfs.Cred{}, c.Root(), name, tansyfs.Guarded, &tansyfs.SetAttr{}, 0); err != nil {
			t.Fatal(err)
		}
		if code, said := tool(t, "backup", img, to); code != exitOK || !strings.Contains(said, "is in use: what follows") {
			t.Fatalf("backup: exit code %d\n%s", code, said)
		}
		all, err := filepath.Glob(to + "/*")
		all = slices.DeleteFunc(all, func(f string) bool { return slices.Contains(files, f) })
		if err != nil || len(all) != 1 {
			t.Fatalf("backup %d is %q: %v", i, all, err)
		}
		files = append(files, all...)
	}
	stop()
	p.stop(t)
	for i, file := range files {
		image := filepath.Join(t.TempDir(), "restored.img")
		if code, said := tool(t, "restore", file, image); code != exitOK {
			t.Fatalf("restore: exit code %d\n%s", code, said)
		}
		if code, said := tool(t, "check", image, "--data"); code != exitOK {
			t.Errorf("check: exit code %d\n%s", code, said)
		}
		q := startServe(t, "--volume", image, "--control", "none")
		r, err := nfsclient.Mount(q.addr)
		if err != nil {
			t.Fatal(err)
		}
		for k := range 3 {
			_, err := r.Lookup(&tansyfs.Cred{}, r.Root(), []byte{'k', 'a' + byte(k)})
			if there := err == nil; there != (k <= i) {
				t.Errorf("backup %d: file %d: %v", i, k, err)
			}
		}
		r.Close()
		q.stop(t)
	}
}
