package disk_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"tansy/disk"
	"tansy/test/kit/hosttest"
)

// TestHelperHold is not a test: it is the other process of TestHolder, which has a volume until its input ends.
func TestHelperHold(t *testing.T) {
	path := os.Getenv("TANSY_HOLD")
	if path == "" {
		t.Skip("only as another process")
	}
	d, err := disk.OpenFile(path, disk.FileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println("open")
	os.Stdin.Read(make([]byte, 1))
	d.Close()
}

// hold has another process open the volume, until the test ends, and returns its number.
func hold(t *testing.T, path string) int {
	t.Helper()
	c := exec.Command(os.Args[0], "-test.run=^TestHelperHold$")
	c.Env = append(os.Environ(), "TANSY_HOLD="+path)
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		c.Wait()
	})
	if _, err := out.Read(make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	return c.Process.Pid
}

// Who has a volume is told, by the number and the command of the process.
func TestHolder(t *testing.T) {
	path := emptyImage(t)
	pid := hold(t, path)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, link} {
		for _, readOnly := range []bool{false, true} {
			_, err := disk.OpenFile(name, disk.FileOptions{ReadOnly: readOnly})
			want := fmt.Sprintf("in use by another server or tool: process %d (%s", pid, os.Args[0][:10])
			if !errors.Is(err, disk.ErrLocked) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s, read-only %v: %v, want ...%s", name, readOnly, err, want)
			}
		}
	}
	if err := disk.RemoveAbandoned(path); !errors.Is(err, disk.ErrLocked) || !strings.Contains(err.Error(), fmt.Sprint("process ", pid)) {
		t.Error(err)
	}
}

// A process that has the volume twice is told that it is itself.
func TestHolderItself(t *testing.T) {
	path := emptyImage(t)
	d, err := disk.OpenFile(path, disk.FileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	_, err = disk.OpenFile(path, disk.FileOptions{})
	if want := "in use by another server or tool: this process itself"; !errors.Is(err, disk.ErrLocked) || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("%v, want ...%s", err, want)
	}
}

// What a device is in use for is told, and who has it.
func TestBusyDevice(t *testing.T) {
	path := emptyImage(t)
	if err := os.Truncate(path, 32<<20); err != nil {
		t.Fatal(err)
	}
	dev := hosttest.Loop(t, path)
	if use := disk.UseOf(dev); use != "" {
		t.Errorf("%s is in use: %s", dev, use)
	}
	open := func() error {
		d, err := disk.OpenFile(dev, disk.FileOptions{})
		if err == nil {
			d.Close()
		}
		return err
	}
	t.Run("process", func(t *testing.T) {
		want := fmt.Sprintf("in use by another server or tool: process %d (", hold(t, dev))
		if err := open(); !errors.Is(err, disk.ErrLocked) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want ...%s", err, want)
		}
	})
	t.Run("mounted", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "a b")
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		hosttest.Run(t, "mkfs.ext4", "-q", dev)
		hosttest.Run(t, "mount", dev, dir)
		t.Cleanup(func() { hosttest.Run(t, "umount", dir) })
		if err, want := open(), "mounted on "+dir; !errors.Is(err, syscall.EBUSY) || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%v, want ...%s", err, want)
		}
		if use, want := disk.UseOf(dev), "mounted on "+dir; use != want {
			t.Errorf("%q, want %q", use, want)
		}
		if use := disk.UseOf(path); use != "" {
			t.Errorf("the file under it is in use: %s", use)
		}
	})
	t.Run("part", func(t *testing.T) {
		name := fmt.Sprintf("tansy-test-part-%d", os.Getpid())
		hosttest.Run(t, "dmsetup", "create", name, "--table", "0 16384 linear "+dev+" 0")
		t.Cleanup(func() { hosttest.Run(t, "dmsetup", "remove", name) })
		err, want := open(), "a part of /dev/mapper/"+name
		if !errors.Is(err, syscall.EBUSY) || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%v, want ...%s", err, want)
		}
	})
}
