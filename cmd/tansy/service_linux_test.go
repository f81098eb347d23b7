package main

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"tansy/test/kit/nfsclient"
)

// A service manager hears when the server serves, that it lives, and that it stops.
func TestServiceManager(t *testing.T) {
	dir, err := os.MkdirTemp("", "n")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	m, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "s"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	m.SetReadDeadline(time.Now().Add(20 * time.Second))
	next := func() string {
		b := make([]byte, 1000)
		n, err := m.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		return string(b[:n])
	}
	p := newServe("--volume", filepath.Join(dir, "v.img"), "--size", "8M")
	p.cmd.Env = append(p.cmd.Env, "NOTIFY_SOCKET="+filepath.Join(dir, "s"), "WATCHDOG_USEC=100000")
	p.start(t)
	if got := next(); got != "STATUS=opening the volume" {
		t.Errorf("first %q", got)
	}
	for heard := map[string]bool{}; !heard["READY=1"] || !heard["WATCHDOG=1"]; {
		first, _, _ := strings.Cut(next(), "\n")
		heard[first] = true
		if first == "STOPPING=1" {
			t.Fatal(first)
		}
	}
	p.cmd.Process.Signal(syscall.SIGTERM)
	for !strings.HasPrefix(next(), "STOPPING=1") {
	}
	if code := p.wait(t); code != exitOK {
		t.Errorf("exit code %d\n%s", code, &p.stderr)
	}
}

// With sockets from a service manager the server serves on them, and not on --listen. One that is
// called status is for the status.
func TestSocketActivation(t *testing.T) {
	var files []*os.File
	var addrs []string
	for range 3 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		f, err := l.(*net.TCPListener).File()
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		addrs = append(addrs, l.Addr().String())
		l.Close()
		files = append(files, f)
	}
	p := newServe("--volume", filepath.Join(t.TempDir(), "v.img"), "--size", "8M")
	p.cmd.ExtraFiles = files
	p.cmd.Env = append(p.cmd.Env, "LISTEN_PID=self", "LISTEN_FDS=3", "LISTEN_FDNAMES=nfs:status:")
	p.start(t)
	if p.addr != addrs[0] {
		t.Errorf("serves on %s, want %s", p.addr, addrs[0])
	}
	for _, addr := range []string{addrs[0], addrs[2]} {
		c, err := nfsclient.Mount(addr)
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
	if got := get(t, "http://"+addrs[1]+"/readyz"); got != "ok\n" {
		t.Errorf("%q", got)
	}
	p.stop(t)
	if !strings.Contains(p.stderr.String(), "--listen means nothing") { // it is among the arguments
		t.Errorf("no warning in\n%s", &p.stderr)
	}
}

// What cannot be listened on is an error, and not served on.
func TestSocketActivationBad(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	p := newServe("--volume", filepath.Join(t.TempDir(), "v.img"), "--size", "8M")
	p.cmd.ExtraFiles = []*os.File{r}
	p.cmd.Env = append(p.cmd.Env, "LISTEN_PID=self", "LISTEN_FDS=1")
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if code := p.wait(t); code != exitFailure || !strings.Contains(p.stderr.String(), "socket 1 from the service manager") {
		t.Errorf("exit code %d\n%s", code, &p.stderr)
	}
}
