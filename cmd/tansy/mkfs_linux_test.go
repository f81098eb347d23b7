package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"tansy/disk"
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

// An image of which mkfs was interrupted is not there, and one that it was to replace is as it was before the first
// write.
func TestMkfsInterruptedImage(t *testing.T) {
	dir := t.TempDir()
	said := left(filepath.Join(dir, "v.img"), true, true)
	if !strings.HasSuffix(said, "v.img is not made, and nothing of it is left") {
		t.Error(said)
	}
	if said := left("/dev/x", false, false); said != "/dev/x is as it was" {
		t.Error(said)
	}
}
