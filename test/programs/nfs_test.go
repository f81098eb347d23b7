//go:build linux

package programs

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"tansy/test/kit/mounttest"
)

var served = flag.String("nfs", "", "the program tansy, whose volumes TestNFS mounts by the kernel's client")

// serve has a server of the volume.
func (c *campaign) serve(addr string) (*mounttest.Mount, error) {
	m, err := mounttest.StartServer(c.bin, c.volume(), addr, "--cache", "32M")
	if err != nil {
		err = fmt.Errorf("serve: %w", err)
	}
	return m, err
}

func (c *campaign) mountNFS() (*mounttest.Mount, error) {
	m, err := c.serve("127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(m.Addr)
	if err == nil {
		err = syscall.Mount(host+":/", c.dir, "nfs", 0, fmt.Sprintf("vers=3,proto=tcp,nolock,hard,addr=%[1]s,port=%[2]s,mountaddr=%[1]s,mountport=%[2]s,mountproto=tcp", host, port))
	}
	if err != nil {
		m.Kill()
		return nil, fmt.Errorf("mount of %s: %w\n%s", m.Addr, err, &m.Log)
	}
	return m, nil
}

// restartNFS has a crash of the server that its clients live through.
func (c *campaign) restartNFS(m *mounttest.Mount) (*mounttest.Mount, error) {
	m.Kill()
	c.crash(c.random)
	c.crashes++
	next, err := c.serve(m.Addr)
	if err != nil {
		return m, err
	}
	return next, nil
}

// endNFS ends a server at once, for good. A client whose server is gone waits for it, and no signal ends a process that
// has pages to be written: so another volume is served at the same address, for which all handles are stale, and the
// client gives up what it had to send.
func (c *campaign) endNFS(m *mounttest.Mount, wait func()) error {
	m.Kill()
	dir, err := os.MkdirTemp("", "other")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	other, err := mounttest.StartServer(c.bin, filepath.Join(dir, "image"), m.Addr, "--create", "--size", "64M",
		"--cache", "8M")
	if err != nil {
		return fmt.Errorf("another volume: %w", err)
	}
	defer other.Kill()
	wait()
	if err := c.left(); err != nil && !errors.Is(err, syscall.EINVAL) { // EINVAL: it is unmounted
		return fmt.Errorf("unmount after the crash: %w", err)
	}
	return nil
}

// left unmounts. What a program has started may need a moment to end, and for all that can be seen of it is gone before
// it has left its folder: nothing tells when, so that is asked again.
func (c *campaign) left() error {
	for patience := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if err := syscall.Unmount(c.dir, 0); !errors.Is(err, syscall.EBUSY) || time.Now().After(patience) {
			return err
		}
	}
}

func (c *campaign) unmountNFS(m *mounttest.Mount) error {
	if err := c.left(); err != nil {
		return fmt.Errorf("unmount: %w", err)
	}
	if err := m.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	if code := m.Wait(); code != 0 {
		return fmt.Errorf("the server ended with status %d\n%s", code, &m.Log)
	}
	return nil
}

// What programs have reported over NFS is there when the server has crashed, whether the client lives through that or
// not. In the guest of test/linux.
func TestNFS(t *testing.T) {
	if *served == "" {
		t.Skip("no server is given by -nfs")
	}
	t.Logf("-seed %d", *seed)
	for name, prepared := range programs {
		t.Run(name, func(t *testing.T) {
			newProgram := prepared(t, *seed)
			for kind, newStorage := range kinds {
				t.Run(kind, func(t *testing.T) {
					s := newStorage(t)
					if c, ok := s.(*cutting); ok && name == "tar" {
						c.most *= 10 // or no tree is ever whole: each name in it is made durable by itself
					}
					start(t, *served, newProgram(), s, true).run(t)
				})
			}
		})
	}
}
