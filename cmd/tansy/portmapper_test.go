package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"tansy/nfs/mount3"
	"tansy/nfs/nfs3"
	"tansy/nfs/nlm"
	"tansy/nfs/oncrpc"
	"tansy/nfs/portmap"
	"tansy/test/kit/nfsclient"
)

// udpCall makes a call over UDP, again and again until it is answered.
func udpCall(t *testing.T, addr string, prog, vers, proc uint32, args func(*oncrpc.Encoder)) *oncrpc.Decoder {
	t.Helper()
	c, err := net.Dial("udp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	e := nfsclient.Header(7, prog, vers, proc, nil)
	if args != nil {
		args(&e)
	}
	b := make([]byte, 2000)
	for range 60 {
		c.Write(e.Bytes())
		c.SetReadDeadline(time.Now().Add(time.Second))
		n, err := c.Read(b)
		if err != nil {
			continue
		}
		d, err := nfsclient.ParseReply(b[4:n])
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	t.Fatalf("%s does not answer", addr)
	return nil
}

func words(w ...uint32) func(*oncrpc.Encoder) {
	return func(e *oncrpc.Encoder) {
		for _, x := range w {
			e.Uint32(x)
		}
	}
}

// With --portmapper clients that know the host alone find NFS and MOUNT, over UDP as well.
func TestPortmapper(t *testing.T) {
	t.Parallel()
	p := startServe(t, "--volume", filepath.Join(t.TempDir(), "v.img"), "--size", "8M", "--portmapper", "--portmapper-port", "0")
	p.says(t, `msg="port mapper" listen=`)
	p.says(t, "\n")
	m := regexp.MustCompile(`msg="port mapper" listen=(\S+)`).FindStringSubmatch(p.stderr.String())
	if m == nil {
		t.Fatalf("no port mapper in\n%s", &p.stderr)
	}
	mapper := m[1]
	c, err := nfsclient.Dial(mapper)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const tcp, udp = 6, 17
	port := func(prog, vers, proto uint32) string {
		t.Helper()
		args := words(prog, vers, proto, 0)
		d, err := c.Call(portmap.Program, 2, portmap.ProcGetport, nil, args)
		if err != nil {
			t.Fatal(err)
		}
		got := d.Uint32()
		if again := udpCall(t, mapper, portmap.Program, 2, portmap.ProcGetport, args).Uint32(); again != got {
			t.Errorf("program %d: port %d over TCP, %d over UDP", prog, got, again)
		}
		return fmt.Sprintf("127.0.0.1:%d", got)
	}
	if got := port(nfs3.Program, 3, tcp); got != p.addr {
		t.Errorf("NFS is at %s, not %s", got, p.addr)
	}
	if got := port(nfs3.Program, 3, udp); got != "127.0.0.1:0" {
		t.Errorf("NFS over UDP is at %s", got)
	}
	if got := port(nfs3.ACLProgram, 3, tcp); got != p.addr {
		t.Errorf("NFSACL is at %s, not %s", got, p.addr)
	}
	if got := port(nfs3.ACLProgram, 3, udp); got != "127.0.0.1:0" {
		t.Errorf("NFSACL over UDP is at %s", got)
	}
	if got := port(portmap.Program, 2, udp); got != mapper {
		t.Errorf("the port mapper is at %s, not %s", got, mapper)
	}
	if got := port(mount3.Program, 3, tcp); got != p.addr {
		t.Errorf("MOUNT is at %s, not %s", got, p.addr)
	}
	d := udpCall(t, mapper, portmap.Program, 4, portmap.ProcGetaddr, func(e *oncrpc.Encoder) {
		words(mount3.Program, 3)(e)
		for range 3 {
			e.Opaque(nil)
		}
	})
	if got := string(d.Opaque(100)); !strings.HasPrefix(got, "127.0.0.1.") {
		t.Errorf("MOUNT is at %q", got)
	}
	mount := port(mount3.Program, 3, udp)
	root := func(e *oncrpc.Encoder) { e.Opaque([]byte("/")) }
	three := udpCall(t, mount, mount3.Program, 3, mount3.ProcMnt, root)
	one := udpCall(t, mount, mount3.Program, 1, mount3.ProcMnt, root)
	if a, b := three.Uint32(), one.Uint32(); a != mount3.OK || b != mount3.OK || string(three.Opaque(64)) != string(one.Fixed(32)) {
		t.Errorf("MNT over UDP: %d and, in version 1, %d", a, b)
	}
	p.stop(t)
}

// With --locks clients find NLM and NSM by the port mapper, over TCP and UDP, at the server's own port.
func TestLocks(t *testing.T) {
	t.Parallel()
	p := startServe(t, "--volume", filepath.Join(t.TempDir(), "v.img"), "--size", "8M", "--locks",
		"--portmapper", "--portmapper-port", "0")
	p.says(t, `msg="port mapper" listen=`)
	p.says(t, "\n")
	m := regexp.MustCompile(`msg="port mapper" listen=(\S+)`).FindStringSubmatch(p.stderr.String())
	if m == nil {
		t.Fatalf("no port mapper in\n%s", &p.stderr)
	}
	for _, x := range [][2]uint32{{nlm.Program, 1}, {nlm.Program, 3}, {nlm.Program, 4}, {nlm.StatusProgram, 1}} {
		for _, proto := range []uint32{6, 17} {
			port := udpCall(t, m[1], portmap.Program, 2, portmap.ProcGetport, words(x[0], x[1], proto, 0)).Uint32()
			if at := fmt.Sprintf("127.0.0.1:%d", port); at != p.addr {
				t.Errorf("program %d version %d is at %s, not %s", x[0], x[1], at, p.addr)
			}
		}
		udpCall(t, p.addr, x[0], x[1], 0, nil)
	}
	p.stop(t)
	img := filepath.Join(t.TempDir(), "v.img")
	for _, flags := range [][]string{
		{"--locks"}, {"--portmapper", "--max-locks", "5"}, {"--portmapper", "--locks", "--max-locks", "0"},
		{"--portmapper", "--locks", "--max-locks-per-host", "0"},
		{"--portmapper", "--locks", "--max-locks", "9", "--max-locks-per-host", "10"},
		{"--portmapper", "--grace", "5s"}, {"--portmapper", "--locks", "--grace", "-1s"},
		{"--portmapper", "--locks", "--grace", "2h"},
	} {
		if code := run(append([]string{"serve", "--volume", img}, flags...)); code != exitUsage {
			t.Errorf("serve %v: exit code %d", flags, code)
		}
	}
}

// exitCode runs tansy as a process to its end.
func exitCode(t *testing.T, args ...string) int {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestHelperTansy$")
	cmd.Env = append(os.Environ(), "TANSY_ARGS="+strings.Join(args, "\n"))
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode()
}

// hostMapper is a port mapper of version 2 that notes what is registered.
type hostMapper struct {
	mu   sync.Mutex
	list map[string]bool
}

func (m *hostMapper) change(set bool) oncrpc.Proc {
	return oncrpc.Proc{Name: "SET or UNSET", Serve: func(c *oncrpc.Call) oncrpc.Accept {
		what := fmt.Sprint(c.Args.Uint32(), c.Args.Uint32(), c.Args.Uint32())
		m.mu.Lock()
		defer m.mu.Unlock()
		c.Reply.Bool(m.list[what] != set)
		m.list[what] = set
		return oncrpc.Success
	}}
}

func (m *hostMapper) registered() (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, is := range m.list {
		if is {
			n++
		}
	}
	return n
}

// With --rpcbind a port mapper that runs is told, and told again at the end. One that refuses, or
// none, is an error, and flags that contradict each other are.
func TestRpcbind(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m := &hostMapper{list: map[string]bool{}}
	s := oncrpc.NewServer(oncrpc.Config{Log: slog.New(slog.DiscardHandler), Programs: []oncrpc.Program{
		{Number: portmap.Program, Version: 2, Procs: []oncrpc.Proc{oncrpc.NullProc, m.change(true), m.change(false)}},
	}})
	served := make(chan error)
	go func() { served <- s.Serve(l) }()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	img := filepath.Join(t.TempDir(), "v.img")
	flags := []string{"--volume", img, "--size", "8M", "--create", "--rpcbind", "--portmapper-port", port}
	p := startServe(t, flags...)
	if n := m.registered(); n != 2+2*len(mount3.Versions) { // NFS and NFSACL by TCP alone
		t.Errorf("%d are registered: %v", n, m.list)
	}
	again := append([]string{"serve", "--listen", "127.0.0.1:0"}, flags...)
	again[4] = img + ".2"
	if code := exitCode(t, again...); code != exitFailure || m.registered() == 0 {
		t.Errorf("a second server: exit code %d; %v", code, m.list)
	}
	p.stop(t)
	if n := m.registered(); n != 0 {
		t.Errorf("left is %v", m.list)
	}
	s.Shutdown(context.Background())
	if err := <-served; !errors.Is(err, oncrpc.ErrClosed) {
		t.Error(err)
	}
	again[4] = img + ".3"
	if code := exitCode(t, again...); code != exitFailure {
		t.Errorf("without a port mapper: exit code %d", code)
	}
	if _, err := os.Stat(img + ".3"); err == nil {
		t.Error("without a port mapper a volume is made")
	}
	if code := exitCode(t, append(again, "--portmapper")...); code != exitUsage {
		t.Errorf("both: exit code %d", code)
	}
	if code := run([]string{"serve", "--volume", img, "--portmapper-port", "65536"}); code != exitUsage {
		t.Errorf("port 65536: exit code %d", code)
	}
}
