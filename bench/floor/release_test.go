package floor

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRelease: a row is worse if it leaves what was recorded by more than that varied, and recorded are the runs that
// were measured alike.
func TestRelease(t *testing.T) {
	file := filepath.Join(t.TempDir(), "release.json")
	read := func() *recorded {
		f, err := readFigures(file)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	if read() != nil {
		t.Error("there are figures of no release")
	}
	run := func(how string, rate, cost, part float64) string {
		var out bytes.Buffer
		tab := table{out: &out, now: recorded{How: how}, release: read()}
		tab.row("rate", rate, 1, "/s", 0, false)
		tab.row("cost", cost, 1, "us", 0, true)
		tab.row("  part", part, 1, "us", 0, true)
		tab.footer()
		if err := tab.now.write(file, read()); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	for _, rate := range []float64{1, 0.8, 1.1} { // varies by 0.3
		run("here", rate, 2, 5)
	}
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		rate, cost, part float64
		worse            []string
	}{
		{0.71, 2.19, 5.4, nil},
		{9, 0.1, 0.1, nil},
		{0.69, 2, 5, []string{"rate"}},
		{1, 2.21, 5, []string{"cost"}},
		{1, 2, 5.6, []string{"part"}},
		{0, 9, 9, []string{"rate", "cost", "part"}},
	} {
		if err := os.WriteFile(file, before, 0o644); err != nil {
			t.Fatal(err)
		}
		out := run("here", c.rate, c.cost, c.part)
		var got []string
		for line := range strings.Lines(out) {
			if strings.Contains(line, "worse than the release") {
				got = append(got, strings.Fields(line)[0])
			}
		}
		if strings.Join(got, " ") != strings.Join(c.worse, " ") {
			t.Errorf("of %v, %v, %v these are worse: %v, want %v", c.rate, c.cost, c.part, got, c.worse)
		}
		if n := len(read().Rows["cost, part"].Ratios); n != 4 {
			t.Errorf("%d runs are recorded, want 4", n)
		}
	}
	run("elsewhere", 1, 1, 1)
	if n := len(read().Rows["rate"].Ratios); n != 1 {
		t.Errorf("%d runs are recorded of another machine", n)
	}
	if err := os.WriteFile(file, []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := readFigures(file); err == nil {
		t.Error("figures that are none were read")
	}
}
