// Package conformance runs the checks of package conform against Tansy itself: a
// volume in memory, served on loopback. `tansy conform` runs them against any
// server; docs/evidence/conformance.md says what other servers do.
package conformance

import (
	"context"
	"crypto/tls"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"tansy/disk"
	"tansy/fs"
	"tansy/fs/model"
	"tansy/nfs/exports"
	"tansy/nfs/oncrpc"
	"tansy/nfs/server"
	"tansy/test/kit/tlstest"
	"tansy/tools/conform"
)

var only = flag.String("checks", "", "run only the checks that match this regular expression")

// Where Tansy differs from what an RFC recommends, on purpose or not yet mended.
// A check that passes must not be listed, so that the list stays true.
var known = map[string]string{
	"create-exclusive/zero-verifier-again": "a file remembers no verifier as 0",
}

// volumeBlocks is the size of the volume (256 MiB).
const volumeBlocks = 64 << 10

// serve serves a new volume.
func serve(t *testing.T) string { return serveFS(t, volume(t)) }

// volume is a new volume.
func volume(t *testing.T) fs.FileSystem {
	d := disk.NewMem(volumeBlocks * disk.BlockSize)
	if err := fs.Mkfs(d, fs.MkfsOptions{Zeroed: true, LogBytes: 16 << 20}); err != nil {
		t.Fatal(err)
	}
	f, err := fs.Open(d, fs.Options{CacheBytes: 16 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return f
}

// serveFS serves a file system until the test ends.
func serveFS(t *testing.T, f fs.FileSystem) string {
	return serveWith(t, server.Config{Volumes: []server.Volume{{FS: f}}})
}

func serveWith(t *testing.T, cfg server.Config) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	cfg.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	cfg.Volumes[0].ID, cfg.Volumes[0].Key = [8]byte{1, 2, 3}, [16]byte{4, 5, 6}
	s := server.New(cfg)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		<-served
	})
	return l.Addr().String()
}

func TestTansy(t *testing.T) {
	checkAll(t, conform.Config{Addr: serve(t)})
}

// TestTLS: all checks hold through TLS, where nothing is answered without it.
func TestTLS(t *testing.T) {
	a := tlstest.New(t)
	with := a.Server()
	addr := serveWith(t, server.Config{
		Volumes: []server.Volume{{FS: volume(t)}}, Transports: exports.TLS,
		RPC: oncrpc.Config{TLS: func() *tls.Config { return with }},
	})
	checkAll(t, conform.Config{Addr: addr, TLS: a.Client()})
	if _, err := conform.Run(t.Context(), conform.Config{Addr: addr}); err == nil {
		t.Error("in the clear the server can be checked")
	}
	bare := conform.Config{Addr: serve(t), TLS: a.Client()}
	if rep, err := conform.Run(t.Context(), bare); err == nil || len(rep.Results) > 0 {
		t.Errorf("a server without TLS is checked, though TLS is asked for: %v", err)
	}
}

// checkAll makes the checks, and expects all to pass but those that are known not to.
func checkAll(t *testing.T, cfg conform.Config) {
	t.Helper()
	cfg.Run = regexp.MustCompile(*only)
	rep, err := conform.Run(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if rep.Left != "" {
		t.Errorf("not cleaned up: %s", rep.Left)
	}
	bad := false
	for i := range rep.Results {
		r := &rep.Results[i]
		why, listed := known[r.ID()]
		switch {
		case r.Outcome == conform.Fail, r.Outcome == conform.Differ && !listed, r.Outcome == conform.Skip && !listed:
			t.Errorf("%s: %s", r.ID(), r.Outcome)
			bad = true
		case r.Outcome == conform.Pass && listed:
			t.Errorf("%s passes: it is not a known difference any more (%s)", r.ID(), why)
		}
	}
	if bad {
		rep.WriteText(os.Stderr)
	}
}

// On a server where user 0 is nobody, and with an export that is not "/", checks
// are skipped, but none fails.
func TestSquashed(t *testing.T) {
	addr := serveWith(t, server.Config{Volumes: []server.Volume{{FS: model.New(model.Options{RootMode: 0o777}), Path: "/some/where"}}, RootSquash: true})
	rep, err := conform.Run(context.Background(), conform.Config{Addr: addr, Export: "/some/where"})
	if err != nil {
		t.Fatal(err)
	}
	if rep.Left != "" {
		t.Errorf("not cleaned up: %s", rep.Left)
	}
	if n := rep.Count(conform.Skip); n < 5 || n > 200 {
		t.Errorf("%d checks skipped", n)
	}
	if rep.Count(conform.Fail) > 0 {
		rep.WriteText(os.Stderr)
		t.Error("failures")
	}
}

// The checks have what a report needs, and are what the documentation says they are.
func TestList(t *testing.T) {
	doc, err := os.ReadFile("../../docs/evidence/conformance.md")
	if err != nil {
		t.Fatal(err)
	}
	seen, groups := map[string]bool{}, map[string]int{}
	section := regexp.MustCompile(`^RFC (1813|5531|4506|2203|9289), ([0-9]+(\.[0-9]+)*|[A-Z])$`)
	checks := conform.Checks()
	for i := range checks {
		c := &checks[i]
		if seen[c.ID()] {
			t.Errorf("two checks are called %s", c.ID())
		}
		seen[c.ID()] = true
		groups[c.Group]++
		if !section.MatchString(c.Section) || c.Expect == "" || c.Level != conform.Must && c.Level != conform.Should {
			t.Errorf("%s: section %q, level %q, %q", c.ID(), c.Section, c.Level, c.Expect)
		}
	}
	if total := fmt.Sprintf("\n%d checks. ", len(checks)); !strings.Contains(string(doc), total) {
		t.Errorf("docs/evidence/conformance.md does not say %q", total)
	}
	for g, n := range groups {
		if row := fmt.Sprintf("\n| `%s` | %d |", g, n); !strings.Contains(string(doc), row) {
			t.Errorf("docs/evidence/conformance.md has no row %q", row)
		}
	}
}
