package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"tansy/ops/status"
	"tansy/tools/starttls"
)

func top() (*flagSet, action) {
	f := newFlags("top", "HOST[:PORT] [flags]", `
  tansy top 127.0.0.1               what the server with --status 127.0.0.1:9049
                                    does, until Ctrl-C
  tansy top 127.0.0.1:9049 --once   as it is now, once
  tansy top https://nas:9049 --ca ca-cert.pem
                                    of a server with --status-tls

exit codes:
  0  shown
  1  with --once: the server does not serve, or its volume refuses changes, or
     it cannot be asked
  2  wrong arguments
`)
	ca := f.String("ca", "", caUsage)
	once := f.Bool("once", false, "print it once; so it is, too, when standard output is no terminal")
	every := f.Duration("every", 2*time.Second, "how often to look, such as 500ms or 10s")
	return f, func(args []string) int {
		pos, code, done := parse(f, args, 1, 1)
		if done {
			return code
		}
		if *every < 100*time.Millisecond {
			return misused(f, "--every is too short: give 100ms or more")
		}
		if wrong := noServer(pos[0]); wrong != "" {
			return misused(f, wrong)
		}
		url, err := statusURL(pos[0])
		if err != nil {
			return misused(f, wrongly(pos[0], err.Error()))
		}
		client, err := statusClient(*ca, url)
		if err != nil {
			return misused(f, err.Error())
		}
		if _, _, terminal := window(os.Stdout); *once || !terminal {
			r, err := fetch(context.Background(), client, url)
			if err != nil {
				return fail("top", err)
			}
			for _, line := range screen(r, 100, 1000) {
				fmt.Fprintln(stdout, line)
			}
			if r.State != status.Serving || r.Problem != "" {
				return exitFailure
			}
			return exitOK
		}
		ctx, stop := signal.NotifyContext(context.Background(), endings()...)
		defer stop()
		watchStatus(ctx, os.Stdout, client, url, *every)
		return exitOK
	}
}

// statusPort is the port of --status in all examples, and where none is given.
const statusPort = "9049"

// statusURL is where the report of a server is: address is HOST, HOST:PORT, or the URL of its page.
func statusURL(address string) (string, error) {
	if !strings.Contains(address, "://") {
		at, path, _ := strings.Cut(address, "/")
		at, err := hostPort(at, statusPort)
		if err != nil {
			return "", err
		}
		address = "http://" + at + "/" + path
	}
	return strings.TrimRight(address, "/") + "/status.json", nil
}

// caUsage is about the flag --ca of who asks a server that has --status-tls.
const caUsage = "`FILE` with the certificates of those who sign that of https://HOST:PORT (PEM; default those that " +
	"the system knows)"

// statusClient asks a server at url, whose certificate is of an authority in the file ca; "": one that the system
// knows.
func statusClient(ca, url string) (*http.Client, error) {
	if ca == "" {
		return http.DefaultClient, nil
	}
	if !strings.HasPrefix(url, "https://") {
		return nil, errors.New("--ca counts only with https://HOST:PORT: give that, or leave it out")
	}
	with, err := starttls.Files{CA: ca}.Config("any:0")
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: with.RootCAs}}}, nil
}

// maxReport bounds the length of a report, in bytes.
const maxReport = 4 << 20

// answers is how long a server has to answer. One that is not there refuses at once; a busy machine stands still for
// many seconds.
const answers = 30 * time.Second

// fetch asks a server for its report.
func fetch(ctx context.Context, client *http.Client, url string) (*status.Report, error) {
	ctx, cancel := context.WithTimeout(ctx, answers)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: give HOST:PORT", err)
	}
	a, err := client.Do(q)
	if err != nil {
		return nil, fmt.Errorf("%w (does tansy serve run there with --status?)", err)
	}
	defer a.Body.Close()
	var r status.Report
	if a.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(a.Body, 200))
		return nil, fmt.Errorf("%s: %s %s", url, a.Status, cut(strings.TrimSpace(string(text)), 200))
	}
	if err := json.NewDecoder(io.LimitReader(a.Body, maxReport)).Decode(&r); err != nil {
		return nil, fmt.Errorf("%s is no report of tansy serve: %w", url, err)
	}
	return &r, nil
}

// Controls of a terminal (ECMA-48, and xterm's for the other screen).
const (
	enterScreen = "\x1b[?1049h\x1b[?25l"
	leaveScreen = "\x1b[?25h\x1b[?1049l"
	homeScreen  = "\x1b[H"
	clearEnd    = "\x1b[K" // of the line
	clearBelow  = "\x1b[J"
)

// watchStatus shows the report on a terminal until ctx is done.
func watchStatus(ctx context.Context, w *os.File, client *http.Client, url string, every time.Duration) {
	fmt.Fprint(w, enterScreen)
	defer fmt.Fprint(w, leaveScreen)
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		width, height, _ := window(w)
		lines := []string{}
		if r, err := fetch(ctx, client, url); err != nil {
			lines = append(lines, cut(err.Error(), width))
		} else {
			lines = screen(r, width, height-1)
		}
		fmt.Fprint(w, homeScreen+strings.Join(lines, clearEnd+"\r\n")+clearEnd+clearBelow)
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

// window is the size of a terminal in characters, if f is one.
func window(f *os.File) (width, height int, terminal bool) {
	ws, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, 0, false
	}
	width, height = int(ws.Col), int(ws.Row)
	if width <= 0 || height <= 0 {
		width, height = 80, 24
	}
	return width, height, true
}
