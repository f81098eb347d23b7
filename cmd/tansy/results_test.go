package main

import (
	"bytes"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	tansyfs "tansy/fs"
	"tansy/test/kit/nfsclient"
)

// another is a sub-command as another process.
func another(args ...string) *exec.Cmd {
	c := exec.Command(os.Args[0], "-test.run=^TestHelperTansy$")
	c.Env = append(os.Environ(), "TANSY_ARGS="+strings.Join(args, "\n"))
	return c
}

// damagedCopy makes a copy of a volume whose superblock is damaged, which a repair mends.
func damagedCopy(t *testing.T, img, name string) string {
	t.Helper()
	b, err := os.ReadFile(img)
	if err != nil {
		t.Fatal(err)
	}
	copy(b[200:], "damage")
	name = filepath.Join(filepath.Dir(img), name)
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// A result that cannot be written is no success, and no verdict that all is well. Damage that was found stays that,
// and the error says it, or what has been done.
func TestResultLost(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	dir := t.TempDir()
	img, rules, wrong := filepath.Join(dir, "v.img"), filepath.Join(dir, "exports"), filepath.Join(dir, "wrong")
	made, plot := filepath.Join(dir, "new.img"), filepath.Join(dir, "plot.svg")
	writeFile(t, rules, "/ *(rw)\n")
	writeFile(t, wrong, "/ *(nothing)\n")
	tansy(t, "mkfs", img, "--size", "8M")
	damaged, mended := damagedCopy(t, img, "damaged.img"), damagedCopy(t, img, "mended.img")
	p := startServe(t, "--volume", filepath.Join(dir, "served.img"), "--size", "8M", "--status", "127.0.0.1:0")
	at := strings.TrimSuffix(strings.TrimPrefix(p.status, "http://"), "/")
	const lost = "not all of the result could be printed: "
	for _, x := range []struct {
		code int
		says string // and then that it was lost
		args []string
	}{
		{exitFailure, damaged + ": damaged, 1 problem", []string{"check", damaged, "-q"}},
		{exitUsage, damaged + ": 1 repair, 0 problems would be left; nothing was written", []string{"repair", damaged}},
		{exitUsage, mended + ": 1 repair done, 0 problems left; what was overwritten is in " + mended + ".undo",
			[]string{"repair", mended, "--yes"}},
		{exitUsage, mended + ": 3 blocks have their old contents back; but ",
			[]string{"repair", mended, "--undo-from", mended + ".undo", "--yes"}},
		{exitFailure, wrong + ":1:5: unknown option", []string{"exports", "check", wrong}},
		{exitFailure, made + ": made a volume; but ", []string{"mkfs", made, "--size", "8M"}},
		{exitFailure, img + ": exists, and is left alone; but ", []string{"mkfs", img, "--if-missing", "--size", "8M"}},
		{exitFailure, plot + " is drawn; but ", []string{"bench", p.addr, "null", "--time", "10ms", "--plot", plot}},
	} {
		var errs bytes.Buffer
		c := another(x.args...)
		c.Stdout, c.Stderr = full, &errs
		c.Run()
		said, _, ok := strings.Cut(errs.String(), lost)
		ok = ok && strings.Contains(said, "tansy "+x.args[0]+": "+x.says)
		if code := c.ProcessState.ExitCode(); code != x.code || !ok {
			t.Errorf("tansy %q: exit code %d, want %d and %q\n%s", x.args, code, x.code, x.says, &errs)
		}
	}
	lines := [][]string{
		{"help"}, {"help", "serve"}, {"version"}, {"--version"}, {"man"}, {"completion", "bash"}, {"completion", "zsh"},
		{"completion", "fish"}, {"check", img}, {"check", img, "-v"}, {"dump", img}, {"dump", img, "log"},
		{"dump", img, "dir", "1"}, {"repair", img}, {"trim", img}, {"exports", "check", rules},
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
		begins := strings.HasPrefix(errs.String(), "tansy "+strings.TrimLeft(args[0], "-")+": ")
		if code := c.ProcessState.ExitCode(); code != want || !begins || strings.Count(errs.String(), lost) != 1 {
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
		{syscall.SIGHUP, []string{"bench", "write", "--time", "10m", "--clients", "1", "--file", "4M"},
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
		nothingLeft(t, p)
	}
	p.stop(t)
}

// nothingLeft looks whether the root of a volume is empty.
func nothingLeft(t *testing.T, p *process) {
	t.Helper()
	c, err := nfsclient.Mount(p.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	left, err := c.Readdir(&tansyfs.Cred{}, c.Root(), 0, 0, false, tansyfs.Limit{Bytes: 8192})
	if err != nil || len(left.Entries) > 2 { // . and ..
		t.Errorf("left behind: %v, %v", left.Entries, err)
	}
}

// What was started to go on without its terminal, by nohup(1), goes on.
func TestHangupIgnored(t *testing.T) {
	t.Parallel()
	p := startServe(t, "--volume", filepath.Join(t.TempDir(), "v.img"), "--size", "64M")
	started := make(chan *os.Process, 1)
	addr := interrupter(t, p.addr, 20_000, func() {
		bench := <-started
		if err := errors.Join(bench.Signal(syscall.SIGHUP), bench.Signal(syscall.SIGTERM)); err != nil {
			t.Error(err)
		}
	})
	c := another("bench", addr, "write", "--time", "10m", "--clients", "1", "--file", "4M")
	c.Args = append([]string{"sh", "-c", `trap "" HUP; exec "$0" "$@"`}, c.Args...)
	c.Path = "/bin/sh"
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	started <- c.Process
	c.Wait()
	if code := c.ProcessState.ExitCode(); code != exitSignal+int(syscall.SIGTERM) {
		t.Errorf("exit code %d", code)
	}
	p.stop(t)
}

// An address that cannot be printed is in the log.
func TestAnnouncementLost(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	p := newServe("--volume", filepath.Join(t.TempDir(), "v.img"), "--size", "8M")
	p.cmd.Stdout = full
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.cmd.Process.Kill() })
	p.says(t, "level=WARN", "standard output takes nothing", "listening on 127.0.0.1:")
	p.stop(t)
}
