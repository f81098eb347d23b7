//go:build linux

package main

import (
	"bytes"
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestMain lets the test be the process that passes through FUSE.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == passCommand {
		os.Exit(passMain(os.Args[2], os.Args[3]))
	}
	os.Exit(m.Run())
}

// least are the smallest sizes of everything.
func least(t *testing.T, more ...string) options {
	t.Helper()
	o, err := parseFlags(append([]string{"-quick", "-time", "50ms", "-clients", "2", "-size", "268435456", "-file", "2", "-files", "20", "-dir", t.TempDir()}, more...), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// Every workload that needs nothing but a folder runs there, and has a figure for each of its metrics.
func TestFolder(t *testing.T) {
	for _, w := range []workload{{name: "smallfile", experiments: smallfile}, {name: "mailbench", experiments: mailbench}} {
		t.Run(w.name, func(t *testing.T) {
			o := least(t)
			for _, e := range w.experiments(o) {
				m := &machine{options: o, scratch: t.TempDir()}
				below := filepath.Join(m.scratch, "below")
				if err := os.Mkdir(below, 0o755); err != nil {
					t.Fatal(err)
				}
				figures, err := e.run(context.Background(), &site{machine: m, dir: below})
				if err != nil {
					t.Fatal(err)
				}
				checkFigures(t, e.metrics, figures)
			}
		})
	}
}

func checkFigures(t *testing.T, metrics []metric, figures []float64) {
	t.Helper()
	if len(figures) != len(metrics) {
		t.Fatalf("%d figures of %d metrics", len(figures), len(metrics))
	}
	for i, f := range figures {
		if f <= 0 || math.IsInf(f, 0) || math.IsNaN(f) {
			t.Errorf("%s: %v", metrics[i].Name, f)
		}
	}
}

// A run as root mounts Tansy and ext4, measures them, writes a report, and leaves nothing.
func TestRun(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can mount here")
	}
	if _, err := os.Stat("/dev/fuse"); err != nil {
		t.Skip(err)
	}
	if !there("ext4") {
		t.Skip("there is no ext4")
	}
	docs := t.TempDir()
	page := filepath.Join(docs, "evaluation.md")
	if err := os.WriteFile(page, []byte("before\n"+figuresBegin+"old\n"+figuresEnd+"after\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	o := least(t, "-run", "smallfile", "-peers", "tansy,ext4,ext4+fuse", "-write", docs)
	var out bytes.Buffer
	if err := run(context.Background(), o, &out); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"before\n", "| tansy | ext4 | ext4+fuse |", "x ext4", "after\n"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the report has no %q:\n%s", want, text)
		}
	}
	if left, _ := os.ReadDir(o.dir); len(left) > 0 {
		t.Errorf("the run has left %v", left)
	}
}

// A run that is interrupted ends soon, and leaves nothing.
func TestInterrupted(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can mount here")
	}
	if _, err := os.Stat("/dev/fuse"); err != nil {
		t.Skip(err)
	}
	o := least(t, "-run", "smallfile", "-peers", "tansy", "-time", "1h")
	ctx, stop := context.WithCancel(context.Background())
	m, err := newMachine(ctx, o)
	if err != nil {
		t.Skip(err)
	}
	time.AfterFunc(time.Second, stop)
	if _, err := m.measure(ctx, workloads[0], &bytes.Buffer{}); ctx.Err() == nil {
		t.Errorf("the run has ended by itself: %v", err)
	}
	if err := m.close(); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(o.dir); len(left) > 0 {
		t.Errorf("the run has left %v", left)
	}
}

func TestSummaries(t *testing.T) {
	r := row{metric: metric{Lower: true}, Figures: map[string][]float64{"a": {2, 4, 1}, "b": {4, 4, 4}}}
	if s, ok := r.of("a"); !ok || s != (summary{1, 2, 4}) {
		t.Errorf("summary %v, %v", s, ok)
	}
	if s, ok := r.ratio("a", "b"); !ok || s != (summary{1, 2, 4}) {
		t.Errorf("ratio %v, %v", s, ok)
	}
	if _, ok := r.ratio("a", "c"); ok {
		t.Error("a ratio to what was not measured")
	}
	for v, want := range map[float64]string{0.1234: "0.123", 12.34: "12.3", 999.6: "1,000", 1234.5: "1,235"} {
		if got := number(v); got != want {
			t.Errorf("%v is %s, not %s", v, got, want)
		}
	}
}
