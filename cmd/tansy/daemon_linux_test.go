package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	tansyfs "tansy/fs"
	"tansy/nfs/nfs3"
	"tansy/test/kit/nfsclient"
)

// startWithLog is startServe with a log that goes to w.
func startWithLog(t *testing.T, w *os.File, flags ...string) *process {
	t.Helper()
	p := newServe(flags...)
	p.cmd.Stderr = w
	p.start(t)
	return p
}

// makes a file and some lines of the log
func useVolume(t *testing.T, p *process) {
	t.Helper()
	c, err := nfsclient.Mount(p.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Create(&tansyfs.Cred{}, c.Root(), []byte("f"), tansyfs.Guarded, &tansyfs.SetAttr{}, 0); err != nil {
		t.Fatal(err)
	}
}

// terminate stops the server as a service manager does; it ends well, and has closed the volume.
func (p *process) terminate(t *testing.T, img string) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := p.wait(t); code != exitOK {
		t.Errorf("exit code %d (%v)\n%s", code, p.cmd.ProcessState, &p.stderr)
	}
	var out strings.Builder
	dump := exec.Command(os.Args[0], "-test.run=^TestHelperTansy$")
	dump.Env = append(os.Environ(), "TANSY_ARGS=dump\n"+img+"\nlog")
	dump.Stdout = &out
	if err := dump.Run(); err != nil || !strings.Contains("\n"+out.String(), emptyLog) {
		t.Errorf("the volume was not closed: %v\n%s", err, &out)
	}
}

// emptyLog is what `tansy dump VOLUME log` says of a volume that was closed.
const emptyLog = "\n0 blocks are newer in the log than at home\n"

// The reader of the log may go away.
func TestServeLogGone(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	img := filepath.Join(t.TempDir(), "v.img")
	p := startWithLog(t, w, "--volume", img, "--size", "8M")
	r.Close()
	useVolume(t, p)
	p.terminate(t, img)
}

// The reader of the log may stall, from before the start to after the end.
func TestServeLogStalls(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	raw, err := w.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	// Fill it without waiting, then make it one that waits, as it is for a server.
	if err := raw.Control(func(fd uintptr) {
		for n := 1; n > 0; {
			n, _ = syscall.Write(int(fd), make([]byte, 4096))
		}
		syscall.SetNonblock(int(fd), false)
	}); err != nil {
		t.Fatal(err)
	}
	img := filepath.Join(t.TempDir(), "v.img")
	p := startWithLog(t, w, "--volume", img, "--size", "8M")
	useVolume(t, p)
	p.terminate(t, img)
}

// A peer that sends calls and takes no reply does not keep the server from stopping well.
func TestServeStopStalledPeer(t *testing.T) {
	t.Parallel()
	img := filepath.Join(t.TempDir(), "v.img")
	p := startServe(t, "--volume", img, "--size", "64M")
	c, err := nfsclient.Mount(p.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	cred := &tansyfs.Cred{}
	f, err := c.Create(cred, c.Root(), []byte("f"), tansyfs.Guarded, &tansyfs.SetAttr{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := c.Write(cred, f.Handle, 0, make([]byte, 1<<20), tansyfs.Unstable); err != nil {
		t.Fatal(err)
	}
	nc, err := net.Dial("tcp", p.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	for xid := range uint32(64) {
		e := nfsclient.Header(xid, nfs3.Program, nfs3.Version, nfs3.ProcRead, cred)
		e.Opaque(c.Raw(f.Handle))
		e.Uint64(0)
		e.Uint32(1 << 20)
		if _, err := nc.Write(nfsclient.Mark(e.Bytes())); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := nc.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	for last, same := 0, 0; same < 20; time.Sleep(10 * time.Millisecond) { // until no more fits into the sockets
		unread := 0
		raw.Control(func(fd uintptr) { unread, err = unix.IoctlGetInt(int(fd), unix.TIOCINQ) })
		if err != nil {
			t.Fatal(err)
		}
		if same++; unread != last || unread == 0 {
			last, same = unread, 0
		}
	}
	begin := time.Now()
	p.terminate(t, img)
	t.Log("stopped in", time.Since(begin))
}

// While a volume is not open nobody can connect, and a port in use is found before the volume
// is made.
func TestServePortInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dir := t.TempDir()
	if code := run([]string{"serve", "--volume", filepath.Join(dir, "v.img"), "--create", "--size", "8M", "--listen", l.Addr().String()}); code != exitFailure {
		t.Errorf("exit code %d", code)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("made: %v", left)
	}
}
