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
	"math/rand/v2"
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
	"tansy/nfs/nlm"
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
	addr, _ := serverWith(t, cfg)
	return addr
}

func serverWith(t *testing.T, cfg server.Config) (addr string, _ *server.Server) {
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
	return l.Addr().String(), s
}

func TestTansy(t *testing.T) {
	mapper := freePort(t)
	addr, s := serverWith(t, server.Config{
		Volumes: []server.Volume{{FS: volume(t)}}, Locks: &nlm.Config{PortmapperPort: mapper},
	})
	checkAll(t, conform.Config{Addr: addr, CallbackPort: mapper})
	if left := s.Locks(); left.Size != 0 || left.Waits != 0 {
		t.Errorf("locks are left: %+v", left)
	}
}

// freePort is a port on loopback that nobody has, over TCP and UDP, and that the system gives nobody by itself: Linux
// does so from 32768 on.
func freePort(t *testing.T) uint16 {
	t.Helper()
	for {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 10000+rand.IntN(20000)))
		if err != nil {
			continue
		}
		pc, err := net.ListenPacket("udp", l.Addr().String())
		l.Close()
		if err == nil {
			pc.Close()
			return uint16(l.Addr().(*net.TCPAddr).Port)
		}
	}
}

// TestNoLocks: without locks each of their checks is skipped, which the report says in a line or two.
func TestNoLocks(t *testing.T) {
	rep, err := conform.Run(t.Context(), conform.Config{Addr: serve(t), Run: regexp.MustCompile("^(nlm|nsm)")})
	if err != nil {
		t.Fatal(err)
	}
	if n := rep.Count(conform.Skip); n != len(rep.Results) || n == 0 {
		rep.WriteText(os.Stderr)
		t.Errorf("%d of %d checks are skipped", n, len(rep.Results))
	}
	var text strings.Builder
	rep.WriteText(&text)
	told, _, _ := strings.Cut(text.String(), "group")
	if n := strings.Count(strings.TrimSpace(told), "\n"); n < 2 || n > 3 { // below the heading
		t.Errorf("the report does not say why in a line or two:\n%s", told)
	}
}

// TestLockAddress: locks may be on a port of their own.
func TestLockAddress(t *testing.T) {
	files := volume(t)
	addr := serveFS(t, files)
	locks := serveWith(t, server.Config{Volumes: []server.Volume{{FS: files}}, Locks: new(nlm.Config)})
	for at, want := range map[string]conform.Outcome{locks: conform.Pass, addr: conform.Skip} {
		rep, err := conform.Run(t.Context(),
			conform.Config{Addr: addr, LockAddr: at, Run: regexp.MustCompile("^nlm/exclusive$")})
		if err != nil {
			t.Fatal(err)
		}
		if got := rep.Results[0].Outcome; got != want {
			t.Errorf("at %s: %s, want %s", at, got, want)
		}
	}
}

// TestNotCalledBack: where another process has the port mapper's port, the checks that need it are skipped.
func TestNotCalledBack(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	mapper := uint16(l.Addr().(*net.TCPAddr).Port)
	addr := serveWith(t, server.Config{
		Volumes: []server.Volume{{FS: volume(t)}}, Locks: &nlm.Config{PortmapperPort: mapper},
	})
	rep, err := conform.Run(t.Context(),
		conform.Config{Addr: addr, CallbackPort: mapper, Run: regexp.MustCompile("^nlm-(wait|msg)/(granted|test)$")})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rep.Results {
		if r.Outcome != conform.Skip || !strings.Contains(r.Reason, "cannot be one") {
			t.Errorf("%s: %s %s", r.ID(), r.Outcome, r.Reason)
		}
	}
}

// TestTLS: all checks hold through TLS, where nothing is answered without it.
func TestTLS(t *testing.T) {
	a := tlstest.New(t)
	with, mapper := a.Server(), freePort(t)
	addr := serveWith(t, server.Config{
		Volumes: []server.Volume{{FS: volume(t)}}, Transports: exports.TLS,
		RPC: oncrpc.Config{TLS: func() *tls.Config { return with }}, Locks: &nlm.Config{PortmapperPort: mapper},
	})
	checkAll(t, conform.Config{Addr: addr, TLS: a.Client(), CallbackPort: mapper})
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
	volume := server.Volume{FS: model.New(model.Options{RootMode: 0o777}), Path: "/some/where"}
	addr := serveWith(t, server.Config{Volumes: []server.Volume{volume}, RootSquash: true})
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
	section := regexp.MustCompile(`^(RFC (1813|5531|4506|2203|9289), ([0-9]+(\.[0-9]+)*|[A-Z])|` +
		`C702, (NLM|SM)_[A-Z_]+|Linux, nfsacl\.h)$`)
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
