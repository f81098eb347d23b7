package rbd

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"tansy/disk"
	"tansy/test/kit/rbdtest"
)

func TestHelperNbdkit(t *testing.T) { rbdtest.Helper(t) }

func TestNames(t *testing.T) {
	for name, want := range map[string]string{
		"rbd:p/i":         "image=i pool=p",
		"rbd:p%3Fq/i%26j": "image=i&j pool=p?q",
		"rbd:p/i?id=u&conf=/c.conf&keyring=/k%20": "conf=/c.conf id=u image=i keyring=/k  pool=p",
	} {
		got, err := parse(name)
		if err != nil || strings.Join(got.parameters(), " ") != want {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	for _, name := range []string{
		"rbd:", "rbd:p", "rbd:p/", "rbd:/i", "rbd:p/n/i", "rbd:p/i@s", "rbd:p%2Fn/i", "rbd:p/i?x=1", "rbd:p/i?id=",
		"rbd:p/i?id=a&id=b", "rbd:p/i?%zz", "rbd:p%/i",
	} {
		if got, err := parse(name); err == nil {
			t.Errorf("%s: %v", name, got)
		}
	}
	if got, err := parse("rbd:p/i?conf=c.conf"); err != nil || !filepath.IsAbs(got.conf) {
		t.Errorf("%v, %v", got, err)
	}
}

func TestDevice(t *testing.T) {
	dir := rbdtest.Install(t, "TestHelperNbdkit")
	name := rbdtest.Image(t, dir, "i", 1<<20)
	open := func(o Options) (*Device, error) { return Open(context.Background(), name, o) }
	d, err := open(Options{})
	if err != nil {
		t.Fatal(err)
	}
	block, got := bytes.Repeat([]byte("x"), disk.BlockSize), make([]byte, disk.BlockSize)
	if err := errors.Join(d.WriteAt(7, [][]byte{block}), d.Barrier(), d.ReadAt(7, [][]byte{got}), d.Check()); err != nil || !bytes.Equal(got, block) {
		t.Error(err)
	}
	if d.Size() != 256 || d.Path() != name {
		t.Error(d.Size(), d.Path())
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || slices.ContainsFunc(left, func(e os.DirEntry) bool { return e.Name() == filepath.Base(d.helper.dir) }) {
		t.Error("the files of the helper are still there", err)
	}
	var e *disk.Error
	if err := d.ReadAt(256, [][]byte{got}); !errors.As(err, &e) || e.Path != name {
		t.Errorf("behind the end: %v", err)
	}
	if _, err := open(Options{}); err == nil || !strings.Contains(err.Error(), "in use by client.1") {
		t.Errorf("a second one: %v", err)
	}

	// Who may wait waits, until the first gives the lock back; or until it is to stop.
	ctx, stop := context.WithCancel(context.Background())
	if _, err := Open(ctx, name, Options{Wait: true, Waiting: func(string) { stop() }}); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped while it waited: %v", err)
	}
	waiting := make(chan string, 1)
	opened := make(chan *Device)
	go func() {
		second, err := open(Options{Wait: true, Waiting: func(owner string) { waiting <- owner }})
		if err != nil {
			t.Error(err)
		}
		opened <- second
	}()
	if owner := <-waiting; owner != "client.1" {
		t.Error(owner)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	select {
	case <-d.helper.ended:
	default:
		t.Fatal("the helper goes on")
	}
	second := <-opened
	if err := second.ReadAt(7, [][]byte{got}); err != nil || !bytes.Equal(got, block) {
		t.Error(err)
	}

	// It can be taken from one that lives.
	third, err := open(Options{Take: true})
	if err != nil {
		t.Fatal(err)
	}
	<-second.helper.ended
	if err := second.ReadAt(7, [][]byte{got}); err == nil {
		t.Error("an owner whose lock was taken goes on")
	}
	rbdtest.Signal(t, dir, "i", syscall.SIGUSR1)
	for err = nil; err == nil; {
		err = third.ReadAt(7, [][]byte{got})
	}
	if !errors.Is(err, syscall.ESHUTDOWN) {
		t.Errorf("behind a fence: %v", err)
	}
	second.Close()
	third.Close()
}

func TestMissing(t *testing.T) {
	dir := rbdtest.Install(t, "TestHelperNbdkit")
	if _, err := Open(context.Background(), "rbd:pool/none", Options{}); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("no image: %v", err)
	}
	nbdkit := filepath.Join(dir, "bin", "nbdkit")
	script := "#!/bin/sh\necho 'nbdkit: error: cannot open plugin /x/nbdkit-python-plugin.so' >&2\nexit 1\n"
	if err := os.WriteFile(nbdkit, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(context.Background(), "rbd:pool/i", Options{}); err == nil || !strings.Contains(err.Error(), "nbdkit-plugin-python") {
		t.Errorf("no plugin: %v", err)
	}
	t.Setenv(choice, "/x/helper.so")
	if _, err := Open(context.Background(), "rbd:pool/i", Options{}); err == nil || !strings.Contains(err.Error(), "librbd1") {
		t.Errorf("a plugin in C that cannot be loaded: %v", err)
	}
	t.Setenv("PATH", dir)
	if _, err := Open(context.Background(), "rbd:pool/i", Options{}); err == nil || !strings.Contains(err.Error(), "nbdkit-plugin-python") {
		t.Errorf("no nbdkit: %v", err)
	}
}

// TestCompiled: a helper in C is taken if it is there in just this version, and if nobody wants another one.
func TestCompiled(t *testing.T) {
	dir := t.TempDir()
	defer func(was []string) { folders = was }(folders)
	folders = []string{filepath.Join(dir, "none"), dir}
	sum := sha256.Sum256(source)
	file := filepath.Join(dir, fmt.Sprintf("rbd-%x.so", sum[:8]))
	for _, x := range []struct {
		there        string
		choice, want string
	}{
		{"", "", ""},
		{"rbd-0123456789abcdef.so", "", ""},
		{filepath.Base(file), "", file},
		{filepath.Base(file), "python", ""},
		{filepath.Base(file), "/other.so", "/other.so"},
	} {
		if x.there != "" {
			if err := os.WriteFile(filepath.Join(dir, x.there), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		t.Setenv(choice, x.choice)
		if got := compiled(); got != x.want {
			t.Errorf("%+v: %q", x, got)
		}
	}
}

// TestBuildHelper: the script gives the helper in C the name by which it is found.
func TestBuildHelper(t *testing.T) {
	dir := t.TempDir()
	out, err := exec.Command("plugin/build", dir).CombinedOutput()
	if err != nil {
		if _, none := os.Stat("/usr/include/nbdkit-plugin.h"); none != nil {
			t.Skip("it needs gcc, and Debian's nbdkit-plugin-dev, librbd-dev, librados-dev")
		}
		t.Fatalf("%v\n%s", err, out)
	}
	defer func(was []string) { folders = was }(folders)
	folders = []string{dir}
	t.Setenv(choice, "")
	if got := compiled(); got == "" || got != strings.TrimSpace(string(out)) {
		t.Errorf("%q, and %q is found", out, got)
	}
}
