package load

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tansy/fs"
	"tansy/fs/model"
	"tansy/nfs/server"
)

// serve serves a file system until the test ends.
func serve(t *testing.T, f fs.FileSystem) (addr string) {
	t.Helper()
	s := server.New(server.Config{Volumes: []server.Volume{{FS: f}}, Log: slog.New(slog.DiscardHandler)})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Shutdown(context.Background())
		<-served
	})
	return l.Addr().String()
}

// entries are the names in the root.
func entries(t *testing.T, m fs.FileSystem) (names []string) {
	t.Helper()
	l, err := m.Readdir(&fs.Cred{}, m.Root(), 0, 0, false, fs.Limit{Bytes: 1 << 20, Size: func(int) int { return 1 }})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range l.Entries {
		if n := string(e.Name); n != "." && n != ".." {
			names = append(names, n)
		}
	}
	return names
}

// A listing has all entries, over as many pages as it takes.
func TestList(t *testing.T) {
	m := model.New(model.Options{})
	const n = 3000
	for i := range n {
		if _, err := m.Create(&fs.Cred{}, m.Root(), []byte(madeName(i)), fs.Unchecked, &fs.SetAttr{}, 0); err != nil {
			t.Fatal(err)
		}
	}
	c, err := Dial(serve(t, m), true)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	root, err := c.Mount("/")
	if err != nil {
		t.Fatal(err)
	}
	if entries, err := c.List(root); err != nil || entries != n {
		t.Errorf("%d entries, %v; there are %d", entries, err, n)
	}
	if _, err := c.List(Handle("no handle")); err == nil {
		t.Error("what is no directory was listed")
	}
}

var tiny = Config{Clients: 3, Depth: 4, Duration: 10 * time.Millisecond, FileSize: 256 << 10, IOSize: 32 << 10}

// TestRun: each workload measures something, and leaves nothing behind.
func TestRun(t *testing.T) {
	m := model.New(model.Options{})
	cfg := tiny
	cfg.Addr = serve(t, m)
	var seen []string
	cfg.Progress = func(done, total int, name string) { seen = append(seen, name) }
	results, err := Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if len(results) != len(workloads) || len(seen) != len(workloads)+1 {
		t.Fatalf("%d results, progress %q", len(results), seen)
	}
	for i, r := range results {
		l := r.Latency
		if r.Workload != workloads[i].Name || r.Ops == 0 || r.Elapsed <= 0 || l.Half <= 0 || l.Half > l.Tenth || l.Tenth > l.Hundredth || l.Hundredth > l.Thousandth || l.Thousandth > l.Longest {
			t.Errorf("%+v", r)
		}
		if (r.Bytes > 0) != workloads[i].file && r.Workload != "lookup" && r.Workload != "mixed" { // of few calls of the mix none may have data
			t.Errorf("%s: %d bytes", r.Workload, r.Bytes)
		}
	}
	if left := entries(t, m); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	for _, w := range []func(io.Writer) error{
		func(w io.Writer) error { WriteText(w, results); return nil },
		func(w io.Writer) error { return WriteSVG(w, "a < b & c", results) },
		func(w io.Writer) error { return WriteJSON(w, results) },
	} {
		var out bytes.Buffer
		if err := w(&out); err != nil {
			t.Fatal(err)
		}
		for _, r := range results {
			if !strings.Contains(out.String(), r.Workload) {
				t.Errorf("no %s in\n%s", r.Workload, &out)
			}
		}
		switch out.Bytes()[0] {
		case '<':
			for d := xml.NewDecoder(&out); ; {
				if _, err := d.Token(); err == io.EOF {
					break
				} else if err != nil {
					t.Fatal(err)
				}
			}
		case '[':
			if err := json.Unmarshal(out.Bytes(), new([]Result)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// liar gives right data once, before the clients begin to measure, and then wrong data.
type liar struct {
	fs.FileSystem
	reads atomic.Int64
}

func (l *liar) Read(c *fs.Cred, h fs.Handle, off uint64, n uint32) ([]byte, bool, *fs.Attr, error) {
	data, eof, a, err := l.FileSystem.Read(c, h, off, n)
	if l.reads.Add(1) > 1 && len(data) > 5000 {
		data = bytes.Clone(data)
		data[5000] ^= 1
	}
	return data, eof, a, err
}

// TestWrongData: one wrong bit ends the run, and what was made is removed all the same.
func TestWrongData(t *testing.T) {
	m := &liar{FileSystem: model.New(model.Options{})}
	cfg := tiny
	cfg.Addr, cfg.Clients, cfg.Workloads = serve(t, m), 1, []string{"null", "read"}
	results, err := Run(t.Context(), cfg)
	if err == nil || !strings.Contains(err.Error(), "WRONG DATA") || len(results) != 1 {
		t.Fatal(results, err)
	}
	if left := entries(t, m); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// TestInterrupted: who ends the run early gets what was measured, and nothing is left behind.
func TestInterrupted(t *testing.T) {
	m := model.New(model.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cfg := tiny
	cfg.Addr, cfg.Duration, cfg.Workloads = serve(t, m), 100*time.Millisecond, []string{"create", "write", "read"}
	cfg.Progress = func(done, _ int, _ string) {
		if done == 1 {
			cancel()
		}
	}
	results, err := Run(ctx, cfg)
	if err == nil || len(results) != 1 || results[0].Workload != "create" {
		t.Fatal(results, err)
	}
	if left := entries(t, m); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestCheck(t *testing.T) {
	if err := (Config{}).Check(); err != nil {
		t.Error(err)
	}
	for _, cfg := range []Config{
		{Clients: -1}, {Clients: most + 1}, {Depth: -1}, {Depth: most + 1},
		{Duration: -1}, {Duration: 1}, {Duration: 1 << 62},
		{IOSize: 5000}, {IOSize: 2 << 20}, {FileSize: 100}, {Workloads: []string{"null", "nothing"}},
	} {
		if err := cfg.Check(); err == nil {
			t.Errorf("%+v passes", cfg)
		}
	}
}

// TestErrors: no server, and a directory that is not exported.
func TestErrors(t *testing.T) {
	cfg := tiny
	cfg.Addr, cfg.Export = serve(t, model.New(model.Options{})), "/nowhere"
	if _, err := Run(t.Context(), cfg); err == nil || err.Error() != "MNT /nowhere: MNT3ERR_NOENT" {
		t.Error(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	cfg.Addr = l.Addr().String()
	l.Close()
	var op *net.OpError
	if _, err := Run(t.Context(), cfg); !errors.As(err, &op) {
		t.Error(err)
	}
}
