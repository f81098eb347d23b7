// Package hosttest makes what tests of images need from the machine: small file systems
// that can be filled up, and loop devices. All of it goes away with the test. Without the
// right to make it (root) the test is skipped.
package hosttest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Apart is the beginning of a shell script in a mount namespace of its own: it keeps no volume there that other tests
// have mounted, and could not close else. The volume on the directory $KEEP stays, if there is one.
const Apart = `grep -E ' fuse(blk)?\.tansy' /proc/mounts | while read -r _ dir _; do
	[ "$dir" = "${KEEP-}" ] || umount -l "$dir"
done; `

// Run runs a command that needs root, and returns what it prints. If it fails, the test is
// skipped.
func Run(t testing.TB, name string, args ...string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root:", name)
	}
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skip(err)
	}
	out, err := exec.Command(path, args...).CombinedOutput()
	if err != nil {
		t.Skipf("%s %v: %v: %s", name, args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// must runs a command that undoes something.
func must(t testing.TB, name string, args ...string) {
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Errorf("%s %v: %v: %s", name, args, err, out)
	}
}

// Kinds are the file systems that Mount makes.
var Kinds = []string{"tmpfs", "ext4"}

// Mount makes a file system of a kind, of about size bytes, and returns where it is.
func Mount(t testing.TB, kind string, size int64) string {
	t.Helper()
	top := t.TempDir()
	dir := filepath.Join(top, "host")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root: mount")
	}
	source, data := "none", "size="+strconv.FormatInt(size, 10)
	if kind == "ext4" {
		image := filepath.Join(top, "ext4.img")
		if err := os.WriteFile(image, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(image, size); err != nil {
			t.Fatal(err)
		}
		Run(t, "mkfs.ext4", "-q", image)
		source, data = Loop(t, image), ""
	}
	if err := unix.Mount(source, dir, kind, 0, data); err != nil {
		t.Skipf("mount %s: %v", kind, err)
	}
	t.Cleanup(func() { unmount(t, dir) })
	return dir
}

// unmount waits for processes that other tests are starting: until such a one is another program, it has all files open
// that this one has had open.
func unmount(t testing.TB, dir string) {
	err := unix.Unmount(dir, 0)
	for begun := time.Now(); err == unix.EBUSY && time.Since(begun) < time.Minute; err = unix.Unmount(dir, 0) {
		time.Sleep(10 * time.Millisecond)
	}
	if err != nil {
		t.Errorf("unmount %s: %v", dir, err)
	}
}

// Bind shows the file at from at to, too.
func Bind(t testing.TB, from, to string) {
	t.Helper()
	if err := os.WriteFile(to, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(from, to, "", unix.MS_BIND, ""); err != nil {
		t.Skipf("bind mount: %v", err)
	}
	t.Cleanup(func() { unmount(t, to) })
}

// Loop attaches a loop device to a file and returns its node. Flags are more of losetup's.
func Loop(t testing.TB, file string, flags ...string) string {
	t.Helper()
	dev := Run(t, "losetup", append(flags, "-f", "--show", file)...)
	t.Cleanup(func() { must(t, "losetup", "-d", dev) })
	return dev
}

// Fill takes all that is left of the file system that dir is on, but for spare bytes, and
// returns the file that has it.
func Fill(t testing.TB, dir string, spare int64) string {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "ballast"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	zeros := make([]byte, 64<<10)
	for len(zeros) >= 512 {
		var st unix.Statfs_t
		if err := unix.Fstatfs(int(f.Fd()), &st); err != nil {
			t.Fatal(err)
		}
		if int64(st.Bfree)*st.Frsize-int64(len(zeros)) < spare {
			zeros = zeros[:len(zeros)/2]
			continue
		}
		if _, err := f.Write(zeros); err != nil {
			zeros = zeros[:len(zeros)/2]
		}
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	return f.Name()
}
