package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"tansy/disk"
	tansyfs "tansy/fs"
)

// What a maker that was killed left behind is in nobody's way; a maker that is alive is
// not disturbed.
func TestUnfinishedImage(t *testing.T) {
	dir := t.TempDir()
	img := filepath.Join(dir, "v.img")
	d, err := disk.CreateFile(img+unfinished, 8<<20)
	if err != nil {
		t.Fatal(err)
	}
	i := image{size: 6 << 20, warn: func(error) {}}
	if err := i.make(img, tansyfs.MkfsOptions{}); err == nil || !strings.Contains(err.Error(), "another run") {
		t.Errorf("beside a maker: %v", err)
	}
	if err := d.Check(); err != nil {
		t.Errorf("the other's image: %v", err)
	}
	if err := d.Close(); err != nil { // as its death does
		t.Fatal(err)
	}
	p := startServe(t, "--volume", img, "--size", "6M")
	p.stop(t)
	if left, _ := os.ReadDir(dir); len(left) != 1 || left[0].Name() != "v.img" {
		t.Errorf("in the folder: %v", left)
	}
	if st, err := os.Stat(img); err != nil || st.Size() != 6<<20 {
		t.Error(st, err)
	}
}

// Of several makers at once, with something left behind in their way, one makes the
// volume, and none of the others spoils it.
func TestMakersAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	img := filepath.Join(dir, "v.img")
	for range 20 {
		if err := os.WriteFile(img+unfinished, []byte("left behind"), 0o600); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		errs := make([]error, 4)
		for n := range errs {
			wg.Go(func() {
				i := image{size: 6 << 20, warn: func(error) {}}
				errs[n] = i.make(img, tansyfs.MkfsOptions{})
			})
		}
		wg.Wait()
		made := 0
		for _, err := range errs {
			if err == nil {
				made++
			}
		}
		if made != 1 {
			t.Fatalf("%d of them made the volume: %v", made, errs)
		}
		if code := run([]string{"check", img}); code != exitOK {
			t.Fatalf("check: exit code %d", code)
		}
		left, err := os.ReadDir(dir)
		if err != nil || len(left) != 1 {
			t.Fatalf("in the folder: %v, %v", left, err)
		}
		if err := os.Remove(img); err != nil {
			t.Fatal(err)
		}
	}
}

// A size that no file of the file system can have is told as that.
func TestTooLong(t *testing.T) {
	err := tooLong(&os.PathError{Op: "create", Path: "v.img", Err: syscall.EFBIG}, 100<<40)
	want := "create v.img: file too large: the file system there holds no file of 100T: give a smaller --size"
	if !errors.Is(err, syscall.EFBIG) || err.Error() != want {
		t.Errorf("%v; want %s", err, want)
	}
	if err := tooLong(syscall.ENOSPC, 1); err != syscall.ENOSPC {
		t.Error(err)
	}
}
