//go:build linux

package mount

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"tansy/test/kit/mounttest"
)

// holder starts a process with a mount namespace of its own, which keeps what is mounted now.
func holder(t *testing.T) *exec.Cmd {
	t.Helper()
	c := exec.Command("unshare", "-m", "--propagation", "private", "sh", "-c", "echo ready; read x")
	in, err := c.StdinPipe()
	must(t, err)
	out, err := c.StdoutPipe()
	must(t, err)
	if err := c.Start(); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() {
		in.Close()
		c.Wait()
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Skipf("no mount namespace: %q, %v", line, err)
	}
	return c
}

// What another mount namespace holds is said, and does not keep the process from its end.
func TestHeldElsewhere(t *testing.T) {
	bin := mounttest.Build(t)
	for _, umount := range []bool{true, false} {
		image := mounttest.Volume(t, bin, "64M")
		m := mounttest.New(t, bin, image)
		by := fmt.Sprintf("process %d (sh), mounted on %s", holder(t).Process.Pid, m.Dir)
		must(t, os.WriteFile(filepath.Join(m.Dir, "f"), []byte("data"), 0o644))
		if umount {
			fails(t, by, bin, "umount", m.Dir)
			fails(t, "no volume is mounted", bin, "umount", m.Dir)
		}
		must(t, m.Cmd.Process.Signal(syscall.SIGTERM))
		for !strings.Contains(m.Log.String(), by) {
			if m.Cmd.Process.Signal(syscall.Signal(0)) != nil {
				t.Fatalf("it does not say who\n%s", &m.Log)
			}
		}
		must(t, m.Cmd.Process.Signal(syscall.SIGTERM)) // at once, not in a while
		if code := m.Wait(); code != 0 || !strings.Contains(m.Log.String(), "all that was done is durable") {
			t.Errorf("exit code %d\n%s", code, &m.Log)
		}
		m = mounttest.New(t, bin, image)
		content(t, filepath.Join(m.Dir, "f"), "data")
		m.Unmount(t, bin, image)
	}
}

// One that is served, too, is taken away, and who has it further is said.
func TestServedHeldElsewhere(t *testing.T) {
	bin := mounttest.Build(t)
	m, _, _, _ := served(t, bin)
	by := fmt.Sprintf("process %d (sh), mounted on %s", holder(t).Process.Pid, m.Dir)
	fails(t, by, bin, "umount", m.Dir)
}
