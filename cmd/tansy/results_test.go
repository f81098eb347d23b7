package main

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// another is a sub-command as another process.
func another(args ...string) *exec.Cmd {
	c := exec.Command(os.Args[0], "-test.run=^TestHelperTansy$")
	c.Env = append(os.Environ(), "TANSY_ARGS="+strings.Join(args, "\n"))
	return c
}

// A result that cannot be written is no success, and no verdict.
func TestResultLost(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	dir := t.TempDir()
	img, rules := filepath.Join(dir, "v.img"), filepath.Join(dir, "exports")
	writeFile(t, rules, "/ *(rw)\n")
	tansy(t, "mkfs", img, "--size", "8M")
	p := startServe(t, "--volume", filepath.Join(dir, "served.img"), "--size", "8M", "--status", "127.0.0.1:0")
	at := strings.TrimSuffix(strings.TrimPrefix(p.status, "http://"), "/")
	lines := [][]string{
		{"help"}, {"help", "serve"}, {"version"}, {"--version"}, {"man"}, {"completion", "bash"}, {"completion", "zsh"},
		{"completion", "fish"}, {"check", img}, {"check", img, "-v"}, {"dump", img}, {"dump", img, "log"},
		{"dump", img, "dir", "1"}, {"repair", img}, {"trim", img}, {"exports", "check", rules},
		{"mkfs", filepath.Join(dir, "new.img"), "--size", "8M"}, {"mkfs", img, "--if-missing", "--size", "8M"},
		{"conform", "--list"}, {"conform", p.addr, "--run", "^null/"}, {"conform", p.addr, "--run", "^null/", "--json"},
		{"bench", p.addr, "null", "--time", "10ms"}, {"bench", p.addr, "null", "--time", "10ms", "--json"},
		{"scrub", at}, {"top", at, "--once"},
	}
	for _, c := range commands {
		lines = append(lines, []string{c.name, "--help"})
	}
	for _, args := range lines {
		want := exitFailure
		if judging[args[0]] {
			want = exitUsage
		}
		var errs bytes.Buffer
		c := another(args...)
		c.Stdout, c.Stderr = full, &errs
		c.Run()
		says := "tansy " + strings.TrimLeft(args[0], "-") + ": not all of the result could be printed: "
		if code := c.ProcessState.ExitCode(); code != want || strings.Count(errs.String(), says) != 1 {
			t.Errorf("tansy %q: exit code %d, want %d\n%s", args, code, want, &errs)
		}
	}
	p.stop(t)
}

// interrupter passes connections on to a server, and calls when enough has gone there.
func interrupter(t *testing.T, server string, enough int, call func()) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	var mu sync.Mutex
	var once sync.Once
	count := func(n int) {
		mu.Lock()
		defer mu.Unlock()
		if enough -= n; enough <= 0 {
			once.Do(call)
		}
	}
	pass := func(from, to net.Conn, passed func(int)) {
		defer from.Close()
		defer to.Close()
		buf := make([]byte, 64<<10)
		for {
			n, err := from.Read(buf)
			if _, werr := to.Write(buf[:n]); err != nil || werr != nil {
				return
			}
			passed(n)
		}
	}
	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("tcp", server)
			if err != nil {
				from.Close()
				return
			}
			go pass(from, to, count)
			go pass(to, from, func(int) {})
		}
	}()
	return l.Addr().String()
}

// Who interrupts a long run is told how far it was, has what was found until then, and gets the exit code of the
// signal.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	p := startServe(t, "--volume", filepath.Join(t.TempDir(), "v.img"), "--size", "64M")
	for _, x := range []struct {
		by     syscall.Signal
		args   []string
		says   string // with the number of what was done, which is not 0
		prints string
	}{
		{syscall.SIGINT, []string{"conform"}, `^tansy conform: interrupted after (\d+) of \d{3} checks\n$`, "all"},
		{syscall.SIGINT, []string{"conform", "--json"}, `^tansy conform: interrupted after (\d+) of \d{3} checks\n$`,
			`"results"`},
		{syscall.SIGTERM, []string{"bench", "write", "--time", "10m", "--clients", "1", "--file", "4M"},
			`^tansy bench: [0-9.:]+: interrupted after 0 of 1 workload\n$`, ""},
	} {
		started := make(chan *os.Process, 1)
		addr := interrupter(t, p.addr, 20_000, func() {
			if err := (<-started).Signal(x.by); err != nil {
				t.Error(err)
			}
		})
		var out, errs bytes.Buffer
		c := another(append([]string{x.args[0], addr}, x.args[1:]...)...)
		c.Stdout, c.Stderr = &out, &errs
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		started <- c.Process
		c.Wait()
		m := regexp.MustCompile(x.says).FindStringSubmatch(errs.String())
		if code := c.ProcessState.ExitCode(); code != 128+int(x.by) || m == nil || !strings.Contains(out.String(), x.prints) {
			t.Errorf("%q: exit code %d, %q, %q", x.args, code, &errs, &out)
		} else if len(m) > 1 && m[1] == "0" {
			t.Errorf("%q: nothing was done before: %s", x.args, &errs)
		}
	}
	p.stop(t)
}
