package disk_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tansy/disk"
	"tansy/test/kit/hosttest"
)

// emptyImage makes an image file and returns its path.
func emptyImage(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "v.img")
	d, err := disk.CreateFile(path, 8<<20)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// Whoever opens one of two names of a volume keeps everybody else from writing to it by
// either.
func exclusive(t *testing.T, a, b string) {
	t.Helper()
	for _, names := range [][2]string{{a, b}, {b, a}} {
		d, err := disk.OpenFile(names[0], disk.FileOptions{Warn: func(err error) { t.Error(err) }})
		if err != nil {
			t.Fatal(err)
		}
		for _, readOnly := range []bool{false, true} {
			again, err := disk.OpenFile(names[1], disk.FileOptions{ReadOnly: readOnly})
			if !errors.Is(err, disk.ErrLocked) {
				t.Errorf("%s is open; %s, read-only %v: %v, want %v", names[0], names[1], readOnly, err, disk.ErrLocked)
			}
			if err == nil {
				again.Close()
			}
		}
		d.Close()
	}
}

func TestOneWriterByAnyName(t *testing.T) {
	path := emptyImage(t)
	dir := filepath.Dir(path)
	t.Run("hard link", func(t *testing.T) {
		link := filepath.Join(dir, "hard")
		if err := os.Link(path, link); err != nil {
			t.Fatal(err)
		}
		exclusive(t, path, link)
	})
	t.Run("symbolic link", func(t *testing.T) {
		link := filepath.Join(dir, "soft")
		if err := os.Symlink(path, link); err != nil {
			t.Fatal(err)
		}
		exclusive(t, path, link)
	})
	t.Run("bind mount", func(t *testing.T) {
		other := filepath.Join(dir, "bound")
		hosttest.Bind(t, path, other)
		exclusive(t, path, other)
	})
	t.Run("two loop devices", func(t *testing.T) {
		exclusive(t, hosttest.Loop(t, path), hosttest.Loop(t, path))
	})
	t.Run("loop device and its partition", func(t *testing.T) {
		image := emptyImage(t)
		dev, other := hosttest.Loop(t, image, "-P"), hosttest.Loop(t, image)
		hosttest.Run(t, "addpart", dev, "1", "2048", "8192")
		exclusive(t, dev+"p1", other)
	})
	t.Run("mapped device", func(t *testing.T) {
		dev, other := hosttest.Loop(t, path), hosttest.Loop(t, path)
		name := fmt.Sprintf("tansy-test-%d", os.Getpid())
		hosttest.Run(t, "dmsetup", "create", name, "--table", "0 16384 linear "+dev+" 0")
		t.Cleanup(func() { hosttest.Run(t, "dmsetup", "remove", name) })
		exclusive(t, "/dev/mapper/"+name, other)
	})
	t.Run("loop device on a loop device", func(t *testing.T) {
		exclusive(t, hosttest.Loop(t, hosttest.Loop(t, path)), hosttest.Loop(t, path))
	})
}

// TestHelperOpen is not a test: it is the other process of TestOtherNamespace.
func TestHelperOpen(t *testing.T) {
	path := os.Getenv("TANSY_OPEN")
	if path == "" {
		t.Skip("only as another process")
	}
	d, err := disk.OpenFile(path, disk.FileOptions{})
	if err == nil {
		d.Close()
		t.Fatal("opened")
	}
	if !errors.Is(err, disk.ErrLocked) {
		t.Fatal(err)
	}
}

// The lock holds against a process that sees other mounts, too.
func TestOtherNamespace(t *testing.T) {
	unshare, err := exec.LookPath("unshare")
	if err != nil || os.Geteuid() != 0 {
		t.Skip("needs root, and unshare")
	}
	path := emptyImage(t)
	d, err := disk.OpenFile(path, disk.FileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	c := exec.Command(unshare, "-m", "sh", "-c", hosttest.Apart+`exec "$0" -test.run=^TestHelperOpen\$`, os.Args[0])
	c.Env = append(os.Environ(), "TANSY_OPEN="+path)
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// A file with a loop device attached is not opened for writing, wherever the device is
// used; reading does no harm.
func TestFileUnderLoopDevice(t *testing.T) {
	path := emptyImage(t)
	dev := hosttest.Loop(t, path)
	link := filepath.Join(filepath.Dir(path), "link")
	if err := os.Link(path, link); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, link} {
		d, err := disk.OpenFile(name, disk.FileOptions{})
		if !errors.Is(err, disk.ErrLocked) || !strings.Contains(err.Error(), dev) {
			t.Errorf("%s: %v, want %v and %s", name, err, disk.ErrLocked, dev)
		}
		if err == nil {
			d.Close()
		}
	}
	for _, name := range []string{path, dev} {
		d, err := disk.OpenFile(name, disk.FileOptions{ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close() // both at once
	}
}

// Who has opened the file keeps the loop device that is attached later from being opened.
func TestLoopDeviceOverOpenFile(t *testing.T) {
	path := emptyImage(t)
	d, err := disk.OpenFile(path, disk.FileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	again, err := disk.OpenFile(hosttest.Loop(t, path), disk.FileOptions{})
	if !errors.Is(err, disk.ErrLocked) {
		t.Errorf("%v, want %v", err, disk.ErrLocked)
	}
	if err == nil {
		again.Close()
	}
}

// A loop device whose file has no name any more can be opened, with a warning.
func TestLoopDeviceWithoutFile(t *testing.T) {
	path := emptyImage(t)
	dev := hosttest.Loop(t, path)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	warned := 0
	d, err := disk.OpenFile(dev, disk.FileOptions{Warn: func(err error) {
		warned++
		if !strings.Contains(err.Error(), dev) {
			t.Error(err)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if warned != 1 {
		t.Errorf("%d warnings", warned)
	}
}

// A file under a served loop device that is cut or deleted is noticed.
func TestCheckUnderLoopDevice(t *testing.T) {
	for what, harm := range map[string]func(path, dev string) error{
		"cut":     func(path, _ string) error { return os.Truncate(path, 4096) },
		"deleted": func(path, _ string) error { return os.Remove(path) },
		"smaller": func(path, dev string) error { // for a moment, but the device stays so
			err := os.Truncate(path, 4096)
			e := exec.Command("losetup", "-c", dev).Run()
			return errors.Join(err, e, os.Truncate(path, 8<<20))
		},
	} {
		t.Run(what, func(t *testing.T) {
			path := emptyImage(t)
			dev := hosttest.Loop(t, path)
			d, err := disk.OpenFile(dev, disk.FileOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			if err := d.Check(); err != nil {
				t.Fatal(err)
			}
			if err := harm(path, dev); err != nil {
				t.Fatal(err)
			}
			isLost(t, d)
		})
	}
}
