package disk_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"tansy/disk"
)

// isLost checks that the volume is known to be lost, and that nothing is promised since.
func isLost(t *testing.T, d *disk.File) {
	t.Helper()
	for range 2 { // for good
		if err := d.Check(); !errors.Is(err, disk.ErrLost) {
			t.Fatalf("%v, want %v", err, disk.ErrLost)
		}
	}
	block := [][]byte{make([]byte, disk.BlockSize)}
	if err := d.WriteAt(0, block); !errors.Is(err, disk.ErrLost) {
		t.Errorf("a write: %v, want %v", err, disk.ErrLost)
	}
	if err := d.Barrier(); !errors.Is(err, disk.ErrLost) {
		t.Errorf("a barrier: %v, want %v", err, disk.ErrLost)
	}
}

func TestCheck(t *testing.T) {
	write := func(path string, size int) error { return os.WriteFile(path, make([]byte, size), 0o600) }
	const size = 16 * disk.BlockSize
	for _, c := range []struct {
		what string
		harm func(path string) error
		lost bool
	}{
		{"nothing", func(string) error { return nil }, false},
		{"another link", func(path string) error { return os.Link(path, path+".2") }, false},
		{"longer", func(path string) error { return os.Truncate(path, 2*size) }, false},
		{"not to be read", func(path string) error { return os.Chmod(path, 0) }, false},
		{"deleted", os.Remove, true},
		{"renamed", func(path string) error { return os.Rename(path, path+".2") }, true},
		{"deleted, with a link left", func(path string) error {
			return errors.Join(os.Link(path, path+".2"), os.Remove(path))
		}, true},
		{"replaced", func(path string) error {
			return errors.Join(write(path+".2", size), os.Rename(path+".2", path))
		}, true},
		{"replaced, with a link left", func(path string) error {
			return errors.Join(os.Link(path, path+".3"), write(path+".2", size), os.Rename(path+".2", path))
		}, true},
		{"cut", func(path string) error { return os.Truncate(path, size-1) }, true},
		{"the directory renamed",
			func(path string) error { return os.Rename(filepath.Dir(path), filepath.Dir(path)+".2") }, true},
	} {
		for _, readOnly := range []bool{false, true} {
			t.Run(c.what, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "in", "v.img")
				if err := errors.Join(os.Mkdir(filepath.Dir(path), 0o700), write(path, size)); err != nil {
					t.Fatal(err)
				}
				d, err := disk.OpenFile(path, disk.FileOptions{ReadOnly: readOnly})
				if err != nil {
					t.Fatal(err)
				}
				defer d.Close()
				if err := errors.Join(d.Check(), c.harm(path)); err != nil {
					t.Fatal(err)
				}
				switch {
				case !c.lost:
					if err := d.Check(); err != nil {
						t.Error(err)
					}
				case readOnly:
					if err := d.Check(); !errors.Is(err, disk.ErrLost) {
						t.Errorf("%v, want %v", err, disk.ErrLost)
					}
				default:
					isLost(t, d)
				}
			})
		}
	}
}

// A File that is closed is not lost.
func TestCheckClosed(t *testing.T) {
	d, err := disk.CreateFile(filepath.Join(t.TempDir(), "v.img"), disk.BlockSize)
	if err != nil {
		t.Fatal(err)
	}
	d.Close()
	if err := d.Check(); !errors.Is(err, os.ErrClosed) || errors.Is(err, disk.ErrLost) {
		t.Error(err)
	}
}

func BenchmarkCheck(b *testing.B) {
	d, err := disk.CreateFile(filepath.Join(b.TempDir(), "v.img"), disk.BlockSize)
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	for b.Loop() {
		if err := d.Check(); err != nil {
			b.Fatal(err)
		}
	}
}
