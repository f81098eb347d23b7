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

	"tansy/test/kit/hosttest"
	"tansy/test/kit/mounttest"
)

// holder starts a process with a mount namespace of its own, which keeps the volume that is mounted on a directory.
func holder(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	c := exec.Command("unshare", "-m", "--propagation", "private", "sh", "-c", hosttest.Apart+"echo ready; read x")
	c.Env = append(os.Environ(), "KEEP="+dir)
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
		by := fmt.Sprintf("process %d (sh), mounted on %s", holder(t, m.Dir).Process.Pid, m.Dir)
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
	other := mounttest.Volume(t, bin, "64M")
	apart := mounttest.New(t, bin, other)
	by := fmt.Sprintf("process %d (sh), mounted on %s", holder(t, m.Dir).Process.Pid, m.Dir)
	fails(t, by, bin, "umount", m.Dir)
	apart.Unmount(t, bin, other) // of other tests, which may run now, nothing is held
}

// A process that was killed has no volume open, whoever has what it mounted.
func TestKilledHeldElsewhere(t *testing.T) {
	bin := mounttest.Build(t)
	image := mounttest.Volume(t, bin, "64M")
	m := mounttest.New(t, bin, image)
	holder(t, m.Dir)
	m.Kill()
	mounttest.Run(t, bin, "umount", m.Dir)
	mounttest.Run(t, bin, "check", image)
}

// What is mounted on a second directory of this machine, by a bind mount, is said at once.
func TestHeldHere(t *testing.T) {
	bin := mounttest.Build(t)
	m := mounttest.New(t, bin, mounttest.Volume(t, bin, "64M"))
	other := t.TempDir()
	hosttest.Run(t, "mount", "--bind", m.Dir, other)
	t.Cleanup(func() { exec.Command("umount", other).Run() })
	fails(t, "mounted on "+other+", too", bin, "umount", m.Dir)
	must(t, m.Cmd.Process.Signal(syscall.SIGTERM))
	for !strings.Contains(m.Log.String(), "mounted on "+other+", too") {
		if m.Cmd.Process.Signal(syscall.Signal(0)) != nil {
			t.Fatalf("it does not say where\n%s", &m.Log)
		}
	}
	hosttest.Run(t, "umount", other)
	if code := m.Wait(); code != 0 {
		t.Errorf("exit code %d\n%s", code, &m.Log)
	}
}

// Names that the kernel writes with octal digits, and links to directories, are found by umount, which then waits for
// the end.
func TestUmountNames(t *testing.T) {
	bin := mounttest.Build(t)
	for _, name := range []string{"h#ash.img", "sp ace.img", `back\\slash.img`, "tab\there.img"} {
		image := filepath.Join(t.TempDir(), name)
		mounttest.Run(t, bin, "mkfs", image, "--size", "64M")
		for _, by := range []func(dir string) string{
			func(dir string) string { return dir },
			func(string) string { return image },
			func(dir string) string {
				link := filepath.Join(t.TempDir(), "link")
				must(t, os.Symlink(dir, link))
				must(t, os.Symlink("link", link+"2"))
				return link + "2"
			},
		} {
			m := mounttest.New(t, bin, image, "--commit-interval", "1m")
			must(t, os.WriteFile(filepath.Join(m.Dir, "big"), make([]byte, 8<<20), 0o644))
			mounttest.Run(t, bin, "umount", by(m.Dir))
			mounttest.Run(t, bin, "check", image) // it is closed
			m.Wait()
		}
	}
}
