//go:build linux

// Package mounttest mounts volumes for tests, by a tansy process of their own: a test that waits for the kernel must
// not be what the kernel waits for.
package mounttest

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// TransportVariable is the variable of the environment with what --transport is of all mounts of the tests that can
// have it: uring, or read. Without it, it is auto.
const TransportVariable = "TANSY_TEST_TRANSPORT"

// withTransport are the arguments of a command that mounts, with that. A block device's own file system (blkdev) and
// one with locks have no uring, and a test that says which it wants has that.
func withTransport(args []string) []string {
	by, all := os.Getenv(TransportVariable), strings.Join(args, " ")
	switch {
	case by == "" || strings.Contains(all, "blkdev") || strings.Contains(all, "--locks") ||
		strings.Contains(all, "transport"):
	case args[0] == "mount":
		return append(args, "--transport", by)
	case strings.Contains(all, "--mount "):
		return append(args, "--mount-options", "transport="+by)
	}
	return args
}

// Rings skips a test where requests cannot come by io_uring.
func Rings(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can mount here")
	}
	const parameter = "/sys/module/fuse/parameters/enable_uring"
	if on, err := os.ReadFile(parameter); err != nil || strings.TrimSpace(string(on)) != "Y" {
		t.Skipf("%s is %q, not Y (%v)", parameter, on, err)
	}
}

// Build returns the program, or skips the test where nothing can be mounted.
func Build(t *testing.T) (bin string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can mount here")
	}
	if f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0); err != nil {
		t.Skipf("there is no FUSE: %v", err)
	} else {
		f.Close()
	}
	program, err := built()
	if err != nil {
		t.Fatal(err)
	}
	bin = filepath.Join(t.TempDir(), "tansy")
	// A process that another test starts meanwhile would have this file open for writing until it executes another
	// program: until then nobody could execute this one.
	syscall.ForkLock.RLock()
	err = os.WriteFile(bin, program, 0o755)
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
	return bin
}

// built is the program, which is built once for all tests of a package: to link it takes longer than most of them.
var built = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "tansy")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	bin := filepath.Join(dir, "tansy")
	if out, err := exec.Command("go", "build", "-o", bin, "tansy/cmd/tansy").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build: %w\n%s", err, out)
	}
	return os.ReadFile(bin)
})

// Run runs the program and returns what it says. It must do what it was asked for.
func Run(t *testing.T, bin string, args ...string) string {
	t.Helper()
	out, err := exec.Command(bin, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("tansy %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// Volume makes a volume.
func Volume(t *testing.T, bin, size string) (image string) {
	t.Helper()
	image = filepath.Join(t.TempDir(), "v.img")
	Run(t, bin, "mkfs", image, "--size", size)
	return image
}

// A Log is what a process says on standard error.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// A Mount is a volume that is mounted, or served, by a process: until the end of the test if nothing else is said.
type Mount struct {
	Dir  string
	Addr string // where the volume is served, too, if it is
	Cmd  *exec.Cmd
	Log  Log

	ended bool
}

// New mounts a volume, by `tansy mount` with more flags.
func New(t *testing.T, bin, image string, flags ...string) *Mount {
	t.Helper()
	return On(t, bin, image, t.TempDir(), nil, flags...)
}

// On is New on a directory, by another user if who is not nil.
func On(t *testing.T, bin, image, dir string, who *syscall.Credential, flags ...string) *Mount {
	t.Helper()
	return run(t, bin, dir, who, append([]string{"mount", image, dir}, flags...))
}

// Serve mounts a volume that is served as well, by `tansy serve --mount` with more flags.
func Serve(t *testing.T, bin, image, dir string, who *syscall.Credential, flags ...string) *Mount {
	t.Helper()
	return run(t, bin, dir, who,
		append([]string{"serve", "--volume", image, "--listen", "127.0.0.1:0", "--mount", dir}, flags...))
}

// By has a volume mounted on a directory by another process than one of tansy, which says the same when it is.
func By(t *testing.T, cmd *exec.Cmd, dir string) *Mount {
	t.Helper()
	return runs(t, cmd, dir)
}

// run runs a process that mounts on dir, until the end of the test.
func run(t *testing.T, bin, dir string, who *syscall.Credential, args []string) *Mount {
	t.Helper()
	return runs(t, command(bin, who, args), dir)
}

func runs(t *testing.T, cmd *exec.Cmd, dir string) *Mount {
	t.Helper()
	m := &Mount{Dir: dir}
	t.Cleanup(func() {
		syscall.Unmount(dir, syscall.MNT_DETACH)
		m.Kill()
	})
	if err := m.start(cmd); err != nil {
		if text := strings.ToLower(m.Log.String()); strings.Contains(text, "operation not permitted") || strings.Contains(text, "/dev/fuse: permission denied") {
			t.Skipf("this machine does not let who asks mount: %s", &m.Log)
		}
		t.Fatal(err)
	}
	return m
}

// Start is for volumes that may be beyond mounting. Who calls it ends the mount.
func Start(bin, image, dir string, flags ...string) (*Mount, error) {
	m := &Mount{Dir: dir}
	return m, m.start(command(bin, nil, append([]string{"mount", image, dir}, flags...)))
}

// StartServer serves a volume, which is mounted nowhere. Who calls it ends the server.
func StartServer(bin, image, addr string, flags ...string) (*Mount, error) {
	m := new(Mount)
	return m, m.start(command(bin, nil, append([]string{"serve", "--volume", image, "--listen", addr}, flags...)))
}

// command is that of tansy, by another user if who is not nil.
func command(bin string, who *syscall.Credential, args []string) *exec.Cmd {
	cmd := exec.Command(bin, withTransport(args)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: who}
	return cmd
}

// start returns when the file system can be used if it is mounted, and the volume is served if it is to be.
func (m *Mount) start(cmd *exec.Cmd) error {
	m.Cmd = cmd
	m.Cmd.Stderr = &m.Log
	m.ended = true
	out, err := m.Cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := m.Cmd.Start(); err != nil {
		return err
	}
	r := bufio.NewReader(out)
	if m.Dir != "" {
		if line, err := r.ReadString('\n'); err != nil || !strings.Contains(line, " is mounted on ") {
			m.Cmd.Wait()
			return fmt.Errorf("%q, %w\n%s", line, err, &m.Log)
		}
	}
	m.ended = false
	if len(cmd.Args) > 1 && cmd.Args[1] == "serve" {
		line, err := r.ReadString('\n')
		addr, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
		if !ok {
			return fmt.Errorf("%q, %w\n%s", line, err, &m.Log)
		}
		m.Addr = addr
	}
	go io.Copy(io.Discard, r)
	return nil
}

// Kill ends the process with SIGKILL, and leaves a mount without a server.
func (m *Mount) Kill() {
	if !m.ended {
		m.Cmd.Process.Kill()
		m.Cmd.Wait()
		m.ended = true
	}
}

// Wait returns the exit code of the process.
func (m *Mount) Wait() int {
	m.Cmd.Wait()
	m.ended = true
	return m.Cmd.ProcessState.ExitCode()
}

// Unmount unmounts and waits until the volume is closed, which must go well, and be sound then.
func (m *Mount) Unmount(t *testing.T, bin, image string) {
	t.Helper()
	Run(t, bin, "umount", m.Dir)
	if code := m.Wait(); code != 0 {
		t.Errorf("exit code %d\n%s", code, &m.Log)
	}
	Run(t, bin, "check", image, "--data")
}
