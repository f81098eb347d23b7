//go:build linux

package mount

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"tansy/test/kit/mounttest"
)

// ringsOf is how many rings a process has.
func ringsOf(t *testing.T, pid int) (n int) {
	t.Helper()
	all, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	must(t, err)
	for _, fd := range all {
		if to, _ := os.Readlink(fd); strings.Contains(to, "io_uring") {
			n++
		}
	}
	return n
}

// uring are the flags of a mount that fails if requests cannot come by io_uring.
var uring = []string{"--transport", "uring", "-v"}

// What is mounted has rings as its flags want, and that is said.
func TestTransport(t *testing.T) {
	mounttest.Rings(t)
	bin := mounttest.Build(t)
	t.Setenv(mounttest.TransportVariable, "")
	image := mounttest.Volume(t, bin, "64M")
	for _, c := range []struct {
		flags []string
		rings bool
		says  string
	}{
		{[]string{"-v"}, true, "by io_uring"},
		{uring, true, "by io_uring"},
		{[]string{"-v", "-o", "transport=uring"}, true, "by io_uring"},
		{[]string{"-v", "--transport", "read"}, false, ""},
		{[]string{"-v", "-o", "transport=read"}, false, ""},
	} {
		m := mounttest.New(t, bin, image, c.flags...)
		n := ringsOf(t, m.Cmd.Process.Pid)
		if m.Unmount(t, bin, image); n > 0 != c.rings || !strings.Contains(m.Log.String(), c.says) {
			t.Errorf("%v: %d rings\n%s", c.flags, n, &m.Log)
		}
	}
	m := mounttest.Serve(t, bin, image, t.TempDir(), nil, "--mount-options", "transport=uring")
	n := ringsOf(t, m.Cmd.Process.Pid)
	if stop(t, m, bin, image); n == 0 || !strings.Contains(m.Log.String(), "mounted, by io_uring") {
		t.Errorf("served: %d rings\n%s", n, &m.Log)
	}
}

// What asks for io_uring where it cannot be fails, with the reason, and has mounted nothing.
func TestTransportRefused(t *testing.T) {
	bin := mounttest.Build(t)
	image, dir := mounttest.Volume(t, bin, "64M"), t.TempDir()
	t.Cleanup(func() { exec.Command(bin, "umount", dir).Run() }) // of what was mounted all the same
	fails(t, "give auto, uring, or read", bin, "mount", image, dir, "--background", "--transport", "fast")
	fails(t, "locks that programs wait for", bin, "serve", "--volume", image, "--listen", "127.0.0.1:0", "--mount", dir,
		"--locks", "--portmapper=false", "--mount-options", "transport=uring")
	device := loop(t, image)
	fails(t, "leave blkdev or uring out", bin, "mount", device, dir, "--background", "-o", "blkdev,transport=uring")
	fails(t, "no volume is mounted there", bin, "umount", dir)
	mounttest.Run(t, bin, "check", image)
}

// Where rings cannot be made, everything is read as ever, and nothing of them is left.
func TestNoRoomForRings(t *testing.T) {
	mounttest.Rings(t)
	bin := mounttest.Build(t)
	t.Setenv(mounttest.TransportVariable, "")
	image, dir := mounttest.Volume(t, bin, "64M"), t.TempDir()
	few := func(args ...string) *exec.Cmd {
		return exec.Command("prlimit", append([]string{"--nofile=24:24", bin, "mount", image, dir, "-v"}, args...)...)
	}
	out, err := few("--transport", "uring").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "io_uring_setup") {
		t.Errorf("%v\n%s", err, out)
	}
	m := mounttest.By(t, few(), dir)
	n := ringsOf(t, m.Cmd.Process.Pid)
	must(t, os.WriteFile(filepath.Join(dir, "f"), []byte("data"), 0o600))
	if m.Unmount(t, bin, image); n > 0 || !strings.Contains(m.Log.String(), "too many open files") {
		t.Errorf("%d rings\n%s", n, &m.Log)
	}
}

// What programs do by rings is what they do otherwise: long and short reads and writes, by many at a time, from each
// processor, past the kernel's cache and through it; long listings and names; and it is all there in the next mount.
func TestRings(t *testing.T) {
	mounttest.Rings(t)
	bin := mounttest.Build(t)
	image := mounttest.Volume(t, bin, "256M")
	m := mounttest.New(t, bin, image, uring...)
	script := `
cd "$1"
for i in 1 2 3 4 5 6 7 8; do
	(mkdir d$i; seq $i 200000 >d$i/numbers; cp d$i/numbers d$i/copy; cmp d$i/numbers d$i/copy
	dd if=d$i/copy of=d$i/again bs=1M iflag=direct oflag=direct,sync conv=notrunc status=none; cmp d$i/copy d$i/again
	taskset -c $((i % $(nproc))) dd if=d$i/copy of=d$i/small bs=4k status=none; cmp d$i/copy d$i/small) &
	all="$all $!"
done
for p in $all; do wait $p; done
mkdir many; (cd many; seq 1 5000 | xargs touch)
[ $(ls many | wc -l) = 5000 ]
rm many/*; rmdir many
`
	if out, err := exec.Command("sh", "-e", "-c", script, "sh", m.Dir).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	f := filepath.Join(m.Dir, "d1/numbers")
	long := bytes.Repeat([]byte("0123456789"), 400)
	must(t, unix.Setxattr(f, "user.long", long, 0))
	b := make([]byte, 65536)
	if n, err := unix.Getxattr(f, "user.long", b); err != nil || !bytes.Equal(b[:n], long) {
		t.Errorf("%d, %v", n, err)
	}
	name := filepath.Join(m.Dir, strings.Repeat("n", 255))
	must(t, os.Symlink(strings.Repeat("t", 4000), name))
	if to, err := os.Readlink(name); err != nil || len(to) != 4000 {
		t.Errorf("%d, %v", len(to), err)
	}
	m.Unmount(t, bin, image)
	for range 5 { // again and again, at once
		m = mounttest.New(t, bin, image, uring...)
		same := exec.Command("sh", "-e", "-c", "cd \"$1\"; seq 8 200000 | cmp - d8/again", "sh", m.Dir)
		if out, err := same.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		m.Unmount(t, bin, image)
	}
}

// More callers wait for the device than there are threads, and all come to their end.
func TestMoreWaitThanRings(t *testing.T) {
	mounttest.Rings(t)
	bin := mounttest.Build(t)
	image := mounttest.Volume(t, bin, "64M")
	m := mounttest.New(t, bin, image, uring...)
	callers := 3 * ringsOf(t, m.Cmd.Process.Pid)
	var all sync.WaitGroup
	for i := range callers {
		f := openWith(t, filepath.Join(m.Dir, fmt.Sprint(i)), "data")
		all.Go(func() {
			for range 5 {
				if _, err := f.WriteAt([]byte("more"), 2); err != nil {
					t.Error(err)
				}
				if err := f.Sync(); err != nil {
					t.Error(err)
				}
			}
			f.Close()
		})
	}
	all.Wait()
	m.Unmount(t, bin, image)
}

// A file system that goes out of sight is served on while a file is open, and its process ends with it.
func TestRingsLazyUnmount(t *testing.T) {
	mounttest.Rings(t)
	bin := mounttest.Build(t)
	image := mounttest.Volume(t, bin, "64M")
	m := mounttest.New(t, bin, image, uring...)
	f := openWith(t, filepath.Join(m.Dir, "f"), "data")
	must(t, syscall.Unmount(m.Dir, syscall.MNT_DETACH))
	_, err := f.WriteAt([]byte("more"), 4)
	must(t, err)
	must(t, f.Sync())
	b := make([]byte, 8)
	if _, err := f.ReadAt(b, 0); err != nil || string(b) != "datamore" {
		t.Errorf("%q, %v", b, err)
	}
	must(t, f.Close())
	if code := m.Wait(); code != 0 {
		t.Errorf("exit code %d\n%s", code, &m.Log)
	}
	mounttest.Run(t, bin, "check", image, "--data")
}

// A process that is killed while requests are on their way leaves nobody waiting, and nothing in the way of the next.
func TestRingsKilledInRequest(t *testing.T) {
	mounttest.Rings(t)
	bin := mounttest.Build(t)
	image := mounttest.Volume(t, bin, "64M")
	m := mounttest.New(t, bin, image, uring...)
	f := openWith(t, filepath.Join(m.Dir, "f"), "data")
	must(t, f.Sync())
	must(t, m.Cmd.Process.Signal(syscall.SIGSTOP)) // so that what is asked now is not answered
	ended := make(chan error)
	const callers = 8
	for range callers {
		go func() {
			_, err := unix.Pwrite(int(f.Fd()), []byte("more"), 4)
			ended <- err
		}()
	}
	for inRequest(t) < callers {
		runtime.Gosched()
	}
	m.Kill()
	for range callers {
		switch err := <-ended; err {
		case unix.ECANCELED, unix.ECONNABORTED, unix.ENOTCONN:
		default:
			t.Error(err)
		}
	}
	f.Close()
	mounttest.Run(t, bin, "umount", m.Dir)
	m = mounttest.New(t, bin, image, uring...)
	content(t, filepath.Join(m.Dir, "f"), "data")
	m.Unmount(t, bin, image)
}

// inRequest is how many threads of this process wait in pwrite(2).
func inRequest(t *testing.T) (n int) {
	t.Helper()
	all, err := filepath.Glob("/proc/self/task/*/syscall")
	must(t, err)
	for _, thread := range all {
		in, _ := os.ReadFile(thread) // it may have ended
		if strings.HasPrefix(string(in), fmt.Sprint(unix.SYS_PWRITE64, " ")) {
			n++
		}
	}
	return n
}

// Some of the tests of mounts are done by rings, too. With TANSY_TEST_TRANSPORT=uring all are.
func TestByRings(t *testing.T) {
	mounttest.Rings(t)
	if by := os.Getenv(mounttest.TransportVariable); by != "" {
		t.Skip("all are done by ", by)
	}
	t.Setenv(mounttest.TransportVariable, "uring")
	for name, test := range map[string]func(*testing.T){
		"Kill": TestKill, "Busy": TestBusy, "Mmap": TestMmap, "Append": TestAppend, "HeldElsewhere": TestHeldElsewhere,
		"OpenWithoutName": TestOpenWithoutName, "ServedSeenOnMount": TestServedSeenOnMount,
		"ServedMmap": TestServedMmap, "OrdinaryUser": TestOrdinaryUser, "LostAndMountedAgain": TestLostAndMountedAgain,
	} {
		t.Run(name, test)
	}
}
