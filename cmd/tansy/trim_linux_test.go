package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"tansy/disk"
	tansyfs "tansy/fs"
	"tansy/test/kit/hosttest"
)

// removedFile makes a volume in which a file of size bytes was written and removed, by a server that gives nothing
// back.
func removedFile(t *testing.T, img string, size uint64) {
	t.Helper()
	if code := run([]string{"mkfs", img, "--size", "64M"}); code != exitOK {
		t.Fatal(code)
	}
	d, err := disk.OpenFile(img, disk.FileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	v, err := tansyfs.Open(d, tansyfs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	root := &tansyfs.Cred{}
	n, err := v.Create(root, v.Root(), []byte("f"), tansyfs.Guarded, &tansyfs.SetAttr{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	data := make([]byte, tansyfs.MaxIO)
	for i := range data {
		data[i] = byte(i%251 + 1)
	}
	for off := uint64(0); off < size; off += tansyfs.MaxIO {
		if _, _, _, err := v.Write(root, n.Handle, off, data, tansyfs.FileSync); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := v.Remove(root, v.Root(), []byte("f")); err != nil {
		t.Fatal(err)
	}
}

func room(t *testing.T, path string) int64 {
	t.Helper()
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return st.Sys().(*syscall.Stat_t).Blocks * 512
}

// tansy trim gives back what removed files have left in an image, in a device as well, and leaves a sound volume.
func TestTrim(t *testing.T) {
	img := filepath.Join(t.TempDir(), "v.img")
	const size = 16 << 20
	removedFile(t, img, size)
	before := room(t, img)
	if code := run([]string{"trim", img, "-q"}); code != exitOK {
		t.Fatal(code)
	}
	if after := room(t, img); after > before-size*3/4 {
		t.Errorf("%d bytes before, %d after", before, after)
	}
	if code := run([]string{"check", img, "--data", "-q"}); code != exitOK {
		t.Error(code)
	}
	if code := run([]string{"trim", img + ".not"}); code != exitFailure {
		t.Error(code)
	}
}

func TestTrimDevice(t *testing.T) {
	img := filepath.Join(t.TempDir(), "v.img")
	const size = 16 << 20
	removedFile(t, img, size)
	before := room(t, img)
	dev := hosttest.Loop(t, img)
	if code := run([]string{"trim", dev, "-q"}); code != exitOK {
		t.Fatal(code)
	}
	if after := room(t, img); after > before-size*3/4 {
		t.Errorf("%d bytes before, %d after", before, after)
	}
	if code := run([]string{"check", dev, "--data", "-q"}); code != exitOK {
		t.Error(code)
	}
}

// Whose room goes back: that of a sparse image, unless that is not wanted; that of a device, if it is; that of
// a preallocated image never.
func TestDiscardMode(t *testing.T) {
	dir := t.TempDir()
	sparse, thick := filepath.Join(dir, "sparse.img"), filepath.Join(dir, "thick.img")
	for _, args := range [][]string{{"mkfs", sparse, "--size", "64M"}, {"mkfs", thick, "--size", "64M", "--preallocate"}} {
		if code := run(args); code != exitOK {
			t.Fatal(args, code)
		}
	}
	if code := run([]string{"trim", thick}); code != exitFailure {
		t.Error(code)
	}
	under := filepath.Join(dir, "device.img")
	if err := os.WriteFile(under, make([]byte, 8<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path          string
		auto, on, off bool
	}{{sparse, true, true, false}, {thick, false, false, false}, {hosttest.Loop(t, under), false, true, false}} {
		d, err := disk.OpenFile(c.path, disk.FileOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		for mode, want := range map[string]bool{"auto": c.auto, "on": c.on, "off": c.off} {
			var m discardMode
			if err := m.Set(mode); err != nil || m.String() != mode || m.of(d) != want {
				t.Errorf("%s, %s: %v, %v", c.path, mode, m.of(d), err)
			}
		}
	}
	var m discardMode
	if m.Set("yes") == nil {
		t.Error("any value is taken")
	}
}
