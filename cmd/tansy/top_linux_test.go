package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"tansy/ops/status"
	"tansy/test/kit/nfsclient"
)

// busy is a report with everything in it.
func busy() *status.Report {
	r := &status.Report{
		Volume: "v.img", Address: "127.0.0.1:2049", State: status.Serving, Uptime: 3661,
		Volumes: []status.Volume{{Path: "/", Open: true, Space: status.Space{Bytes: 1 << 30, FreeBytes: 1 << 29, Files: 100, FreeFiles: 75}, Cache: status.Cache{Hits: 3, Misses: 1}}},
	}
	for i := range 300 {
		r.Samples = append(r.Samples, status.Sample{Calls: float64(i), P99: 0.0042})
	}
	for i := range 40 {
		r.Clients = append(r.Clients, status.Client{Host: fmt.Sprint("10.0.0.", i), Calls: 5.25})
		r.Procs = append(r.Procs, status.Proc{Name: fmt.Sprint("PROC", i), Calls: 7, P50: 0.000123})
		r.Warnings = append(r.Warnings, status.Warning{Level: "WARN", Text: "evil \x1b[2J\n"})
	}
	return r
}

// However large the terminal is, what is shown fits, and nothing in it controls the terminal.
func TestScreen(t *testing.T) {
	for _, r := range []*status.Report{{}, {State: status.Starting}, busy()} {
		for _, width := range []int{1, 20, 80, 300} {
			for _, height := range []int{1, 10, 24, 50, 1000} {
				lines := screen(r, width, height)
				if len(lines) > height {
					t.Errorf("%d lines of %d", len(lines), height)
				}
				for _, l := range lines {
					if utf8.RuneCountInString(l) > width || strings.ContainsFunc(l, func(r rune) bool { return r < ' ' || r == 0x7f }) {
						t.Errorf("%dx%d: %q", width, height, l)
					}
				}
			}
		}
	}
	text := strings.Join(screen(busy(), 80, 50), "\n")
	for _, want := range []string{
		"Tansy v.img: serving, on 127.0.0.1:2049 for 1h1m1s", "Calls/s                  299  ", "▇█", "4.2 ms  ",
		"[##########----------] 512M of 1G, 512M free", "25 of 100", "75 % found there", "10.0.0.0  ", "     5.2 ", "PROC0  ", "123 µs", "WARN evil ·[2J·",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	r := busy()
	r.Problem = "the device failed"
	if s := screen(r, 80, 24)[0]; !strings.Contains(s, "REFUSES CHANGES: the device failed") {
		t.Errorf("%q", s)
	}
}

func TestTopOnce(t *testing.T) {
	t.Parallel()
	p := startServe(t, "--volume", filepath.Join(t.TempDir(), "v.img"), "--size", "8M", "--status", "127.0.0.1:0")
	c, err := nfsclient.Mount(p.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, address := range []string{p.status, strings.Trim(strings.TrimPrefix(p.status, "http:"), "/")} {
		if text := tansy(t, "top", address, "--once"); !strings.Contains(text, "serving, on "+p.addr) || !strings.Contains(text, "127.0.0.1  ") || !strings.Contains(text, "mount3 MNT") {
			t.Errorf("%s", text)
		}
	}
	p.stop(t)
}

// The port may be left out.
func TestStatusURL(t *testing.T) {
	for address, want := range map[string]string{
		"nas": "http://nas:9049/", "nas:80": "http://nas:80/", "192.0.2.1": "http://192.0.2.1:9049/", "192.0.2.1:1": "http://192.0.2.1:1/",
		"::1": "http://[::1]:9049/", "[fd00::2]": "http://[fd00::2]:9049/", "[::1]:7": "http://[::1]:7/",
		"9049": "http://127.0.0.1:9049/", "http://nas/": "http://nas/", "https://nas:1/tansy": "https://nas:1/tansy/", "nas:1/tansy/": "http://nas:1/tansy/",
	} {
		if got, err := statusURL(address); got != want+"status.json" || err != nil {
			t.Errorf("%s: %s", address, got)
		}
	}
}

// Errors say what is wrong; a report without end is not read.
func TestTopErrors(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/endless") {
			http.NotFound(w, r)
			return
		}
		io.WriteString(w, `{"release":"`)
		for b := make([]byte, 64<<10); ; {
			for i := range b {
				b[i] = 'x'
			}
			if _, err := w.Write(b); err != nil {
				return
			}
		}
	}))
	defer s.Close()
	for address, want := range map[string]string{s.URL: "404", s.URL + "/endless": "no report", "127.0.0.1:1": "--status", "http://a b": "HOST:PORT"} {
		url, err := statusURL(address)
		if err != nil {
			t.Fatal(err)
		}
		_, err = fetch(context.Background(), http.DefaultClient, url)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", address, err)
		}
	}
	if code := run([]string{"top", s.URL, "--once"}); code != exitFailure {
		t.Errorf("exit code %d", code)
	}
	if code := run([]string{"top", s.URL, "--every", "1ms"}); code != exitUsage {
		t.Errorf("exit code %d", code)
	}
}

// On a terminal it fills the window again and again, and leaves it as it was.
func TestTopTerminal(t *testing.T) {
	ptmx, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no terminals here: ", err)
	}
	defer ptmx.Close()
	n, err := unix.IoctlGetInt(int(ptmx.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Skip(err)
	}
	if err := unix.IoctlSetPointerInt(int(ptmx.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Skip(err)
	}
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer tty.Close()
	unix.IoctlSetWinsize(int(tty.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 30, Col: 100})

	p := startServe(t, "--volume", filepath.Join(t.TempDir(), "v.img"), "--size", "8M", "--status", "127.0.0.1:0")
	c := exec.Command(os.Args[0], "-test.run=^TestHelperTansy$")
	c.Env = append(os.Environ(), "TANSY_ARGS=top\n"+p.status+"\n--every\n100ms")
	c.Stdout = tty
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	stop := time.AfterFunc(20*time.Second, func() { c.Process.Kill() })
	b := make([]byte, 4096)
	for asked := false; !strings.Contains(got.String(), leaveScreen); {
		k, err := ptmx.Read(b)
		if err != nil {
			t.Fatalf("%v\n%q", err, &got)
		}
		got.Write(b[:k])
		if !asked && strings.Count(got.String(), homeScreen) > 2 {
			asked = true
			c.Process.Signal(os.Interrupt)
		}
	}
	stop.Stop()
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
	if text := got.String(); !strings.HasPrefix(text, enterScreen) || !strings.Contains(text, "serving, on "+p.addr) {
		t.Errorf("%q", text)
	}
	p.stop(t)
}
