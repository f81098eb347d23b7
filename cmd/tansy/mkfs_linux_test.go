package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"tansy/disk"
	tansyfs "tansy/fs"
	"tansy/test/kit/nbdtest"
)

// interrupting is a device at one of whose writes the writer gets a signal. What it writes then is not kept, and takes
// its time until the signal is taken.
type interrupting struct {
	disk.Disk
	mu            sync.Mutex // of what follows
	writes, after int
	by            syscall.Signal
	pid           chan int
	said          error
}

func (d *interrupting) WriteAt(a uint64, bufs [][]byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.writes++
	if d.writes < d.after {
		return d.Disk.WriteAt(a, bufs)
	}
	if d.writes == d.after {
		pid := <-d.pid
		d.said = syscall.Kill(pid, d.by)
		for d.said == nil && pending(pid) {
		}
	}
	return nil
}

// pending tells whether a signal waits for a process to take it.
func pending(pid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, mask, _ := strings.Cut(string(status), "ShdPnd:\t")
	mask, _, ok := strings.Cut(mask, "\n")
	return err == nil && ok && strings.Trim(mask, "0") != ""
}

// A signal ends mkfs, which says what is left.
func TestMkfsInterrupted(t *testing.T) {
	for _, by := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		if signal.Ignored(by) { // as under nohup: whoever this process starts ignores it, too
			t.Logf("%v is not tried", by)
			continue
		}
		d := &interrupting{Disk: disk.NewMem(1 << 30), after: 2, by: by, pid: make(chan int, 1)}
		var s nbdtest.Server
		name := s.Start(t, d)
		c := exec.Command(os.Args[0], "-test.run=^TestHelperTansy$")
		c.Env = append(os.Environ(), "TANSY_ARGS=mkfs\n"+name+"\n--force\n--inodes\n2000000")
		var said strings.Builder
		c.Stdout, c.Stderr = &said, &said
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		d.pid <- c.Process.Pid
		c.Wait()
		d.mu.Lock()
		if code := c.ProcessState.ExitCode(); code != 128+int(by) || d.said != nil ||
			!strings.Contains(said.String(), "holds no volume, and what it held is lost: make the volume again") {
			t.Errorf("%v: exit code %d, %v\n%s", by, code, d.said, &said)
		}
		d.mu.Unlock()
		if code, said := tool(t, "check", name); code != exitUsage {
			t.Errorf("check: exit code %d: %s", code, said)
		}
	}
}

// A signal that ends mkfs on a new image leaves nothing of it. The process waits with its warning that the host lacks
// room until there is room in the pipe for it, which is when the signal has been taken.
func TestMkfsInterruptedImage(t *testing.T) {
	if signal.Ignored(syscall.SIGINT) {
		t.Skip("SIGINT is ignored by whom this process starts")
	}
	dir := t.TempDir()
	if free, err := disk.HostFree(dir); err != nil || free >= 8<<40 {
		t.Skipf("%d bytes are free, %v", free, err)
	}
	said, errs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer said.Close()
	defer errs.Close()
	size, err := unix.FcntlInt(errs.Fd(), unix.F_SETPIPE_SZ, os.Getpagesize())
	if err != nil {
		t.Skip(err)
	}
	if _, err := errs.Write(make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "v.img")
	c := exec.Command(os.Args[0], "-test.run=^TestHelperTansy$")
	c.Env = append(os.Environ(), "TANSY_ARGS=mkfs\n"+path+"\n--size\n8T\n--inodes\n1000")
	c.Stderr = errs
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	errs.Close()
	pid := c.Process.Pid
	for !writing(t, pid, 2) {
	}
	if err := c.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	for pending(pid) {
	}
	text, _ := io.ReadAll(said)
	c.Wait()
	want := "interrupted: " + path + " is not made, and nothing of it is left\n"
	if code := c.ProcessState.ExitCode(); code != 128+int(syscall.SIGINT) || !strings.HasSuffix(string(text), want) {
		t.Errorf("exit code %d\n%s", code, bytes.Trim(text, "\x00"))
	}
	if there, err := os.ReadDir(dir); err != nil || len(there) > 0 {
		t.Errorf("left: %v, %v", there, err)
	}
}

// writing tells whether a thread of a process waits until it has written to a descriptor.
func writing(t *testing.T, pid, fd int) bool {
	t.Helper()
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/syscall", pid))
	if len(threads) == 0 {
		t.Fatal("the process has ended, or cannot be looked at")
	}
	return slices.ContainsFunc(threads, func(name string) bool {
		call, err := os.ReadFile(name)
		if err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, syscall.ESRCH) {
			t.Skip(err)
		}
		return strings.HasPrefix(string(call), fmt.Sprintf("%d %#x ", unix.SYS_WRITE, fd))
	})
}

// What cannot be removed of an image is said to be left, and what mkfs has not written to is as it was.
func TestMkfsLeaves(t *testing.T) {
	path := filepath.Join(t.TempDir(), "v.img")
	o := tansyfs.MkfsOptions{Stop: func() error { // in the place of the file comes what is not removed
		err := errors.Join(os.Remove(path+unfinished), os.MkdirAll(path+unfinished+"/d", 0o700))
		return cmp.Or(err, error(interrupted{syscall.SIGINT}))
	}}
	err := image{size: 64 << 20, warn: func(error) {}}.make(path, o)
	const why = "v.img.unfinished is left, as it cannot be removed (directory not empty)"
	if by := new(interrupted); !errors.As(err, by) || !strings.HasSuffix(err.Error(), why) {
		t.Error(err)
	}
	for want, said := range map[string]string{
		path + " is not made, but " + path[:len(path)-len("v.img")] + why + ": remove that": left(path, true, true, err),
		path + " is not made, and nothing of it is left":                                    left(path, true, true, nil),
		"/dev/x is as it was": left("/dev/x", false, false, nil),
	} {
		if said != want {
			t.Errorf("%s, want %s", said, want)
		}
	}
}
