package floor

import (
	"bytes"
	"log/slog"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"tansy/bench/internal/rig"
	"tansy/fs/model"
	"tansy/nfs/server"
	"tansy/tools/load"
)

// TestMain lets the test binary be the echo process, as the program does.
func TestMain(m *testing.M) {
	rig.BeEcho()
	BeChild()
	os.Exit(m.Run())
}

// TestAgainst: a server beside another one.
func TestAgainst(t *testing.T) {
	var out bytes.Buffer
	o := options{out: &out, rounds: 2, duration: time.Millisecond, fileMB: 1, size: "64M", cache: "8M",
		workloads: []string{"large"}}
	if err := against(t.Context(), o, t.TempDir()); err != nil {
		t.Fatal(err)
	}
	for _, row := range []string{"write, UNSTABLE", "write, FILE_SYNC", "read in order", "read at random"} {
		if strings.Count(out.String(), row) != 1 {
			t.Errorf("not one row %q in\n%s", row, &out)
		}
	}
	if strings.Contains(out.String(), "smallfile") {
		t.Errorf("a workload that was not asked for:\n%s", &out)
	}
}

// TestWorkloads runs every workload, tiny, against the in-memory model: the
// client speaks the protocol, finds no wrong data, and leaves nothing behind.
func TestWorkloads(t *testing.T) {
	s := server.New(server.Config{Volumes: []server.Volume{{FS: model.New(model.Options{})}},
		Log: slog.New(slog.DiscardHandler)})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	defer func() {
		s.Shutdown(t.Context())
		<-served
	}()
	var out bytes.Buffer
	b := &bench{table: table{out: &out}, dir: t.TempDir(), options: options{
		addr: l.Addr().String(), rounds: 1, duration: time.Millisecond, depth: 4, fileMB: 1, entries: 1100,
		rpcDepth: 3, peers: 3,
	}}
	if err := b.measure(workloadNames()); err != nil {
		t.Fatal(err)
	}
	for _, row := range []string{
		"smallfile, clients: 32", "write 1 MB, FILE_SYNC", "read 1 MB at random", "GETATTR", "CREATE in a directory of 1100",
		"GETATTR beside 48 readers", "first WRITE of 4 KiB beside 32",
	} {
		if !strings.Contains(out.String(), row) {
			t.Errorf("no row %q", row)
		}
	}
	c, err := load.Dial(b.addr, true)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	root, err := c.Mount("/")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"small", "large", "rpc", "directory", "removal", "attack"} {
		c.StartLookup(root, benchDir(name, 0), func(h load.Handle) error {
			if h != nil {
				t.Errorf("the directory of %s is still there", name)
			}
			return nil
		})
	}
	if err := c.Wait(0); err != nil {
		t.Error(err)
	}
	if t.Failed() {
		t.Log(out.String())
	}
}

// TestBesideChanges measures beside floods of CREATEs, tiny, with a server of its own for each.
func TestBesideChanges(t *testing.T) {
	var out bytes.Buffer
	o := options{out: &out, dir: t.TempDir(), rounds: 1, duration: 10 * time.Millisecond, size: "64M", cache: "8M",
		peers: 2, workloads: []string{"attack"}, attack: "flood CREATEs"}
	if err := run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	for _, row := range []string{
		"CREATE, REMOVE beside 16 that flood CREATEs, another", "CREATE, REMOVE beside 16 that flood CREATEs, the same",
	} {
		if strings.Count(out.String(), row) != 1 {
			t.Errorf("not one row %q in\n%s", row, &out)
		}
	}
}

func TestEcho(t *testing.T) {
	e, err := rig.StartEcho(44, 28)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Stop()
	for _, depth := range []int{1, 5} {
		rate := 0.0
		for d := time.Millisecond; rate <= 0; d *= 2 { // on a busy machine there may be no answer yet
			if rate, err = e.Measure(d, rpcConnections, depth); err != nil {
				t.Fatalf("depth %d: %v", depth, err)
			}
		}
	}
}

func TestParseSize(t *testing.T) {
	for s, want := range map[string]uint64{"100": 100, "64M": 64 << 20, "4G": 4 << 30, "10GiB": 10 << 30} {
		if got, err := parseSize(s); err != nil || got != want {
			t.Errorf("parseSize(%q) = %d, %v, want %d", s, got, err, want)
		}
	}
	if _, err := parseSize("x"); err == nil {
		t.Error("parseSize(x) succeeds")
	}
}
