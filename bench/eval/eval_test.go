//go:build linux

package eval

import (
	"bytes"
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tansy/bench/internal/figures"
	"tansy/test/kit/mounttest"
)

// TestMain lets the test be the process that passes through FUSE.
func TestMain(m *testing.M) {
	BeChild()
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
	for _, w := range []struct {
		name, contender string
		experiments     func(options) []experiment
	}{
		{"smallfile", "", smallfile}, {"mailbench", "", mailbench}, {"random", "", random},
		{"libraries", "txn", libraries}, {"libraries", "journal", libraries}, {"libraries", "bbolt", libraries},
		{"libraries", "bbolt-batch", libraries},
	} {
		t.Run(w.name+w.contender, func(t *testing.T) {
			t.Parallel()
			o := least(t)
			for _, e := range w.experiments(o) {
				m := &machine{options: o, scratch: t.TempDir()}
				below := filepath.Join(m.scratch, "below")
				if err := os.Mkdir(below, 0o755); err != nil {
					t.Fatal(err)
				}
				figures, err := e.run(context.Background(), &site{machine: m, contender: contender{name: w.contender}, dir: below})
				if err != nil {
					t.Fatal(err)
				}
				checkFigures(t, e.metrics, figures)
			}
		})
	}
}

func checkFigures(t *testing.T, metrics []figures.Metric, figures []float64) {
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

// As root, volumes and ext4 are mounted.
func TestMounted(t *testing.T) {
	bin := mounttest.Build(t)
	if !there("ext4") {
		t.Skip("there is no ext4")
	}
	t.Run("report", func(t *testing.T) { testReport(t, bin) })
	t.Run("interrupted", func(t *testing.T) { testInterrupted(t, bin) })
}

// A run measures, writes a report, and leaves nothing.
func testReport(t *testing.T, bin string) {
	docs := t.TempDir()
	page := filepath.Join(docs, "evaluation.md")
	if err := os.WriteFile(page, []byte("before\n<!-- figures: written by go run ./bench eval -write docs/evidence -->\nold\n<!-- end of figures -->\nafter\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	o := least(t, "-tansy", bin, "-run", "smallfile", "-peers", "tansy,ext4,ext4+fuse", "-write", docs)
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
	checkNothingLeft(t, o)
}

// A run that is interrupted ends soon, and leaves nothing.
func testInterrupted(t *testing.T, bin string) {
	o := least(t, "-tansy", bin, "-run", "smallfile", "-peers", "tansy", "-time", "1h")
	ctx, stop := context.WithCancel(context.Background())
	var out bytes.Buffer
	time.AfterFunc(time.Second, stop)
	if err := run(ctx, o, &out); err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("%v\n%s", err, &out)
	}
	checkNothingLeft(t, o)
}

func checkNothingLeft(t *testing.T, o options) {
	t.Helper()
	if left, _ := os.ReadDir(o.dir); len(left) > 0 {
		t.Errorf("the run has left %v", left)
	}
	if devices, _ := filepath.Glob("/sys/block/loop*/loop/backing_file"); len(devices) > 0 {
		for _, d := range devices {
			if file, _ := os.ReadFile(d); strings.HasPrefix(string(file), o.dir) {
				t.Errorf("the run has left %s", d)
			}
		}
	}
}
