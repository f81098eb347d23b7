//go:build linux

package figures

import (
	"encoding/xml"
	"io"
	"math"
	"os"
	"strings"
	"testing"
)

// Plots are XML, whatever figures are missing.
func TestPlots(t *testing.T) {
	rows := []*Row{
		{Metric{Name: "files, clients: 1", Unit: "/s", At: 1}, map[string][]float64{"a": {1, 2}, "b": {2, 2}}},
		{Metric{Name: "files, clients: 2", Unit: "/s", At: 2}, map[string][]float64{"a": {3}}},
		{Metric{Name: "files, clients: 8", Unit: "/s", At: 8}, map[string][]float64{"a": {300, 500}, "b": {20, 20}}},
	}
	s := Samples{"smallfile": {Axis: "clients", Contenders: []string{"a", "b", "a<b"}, Rows: rows},
		"tree": {Contenders: []string{"b"}}}
	p := &Page{Workloads: []string{"smallfile", "tree"}, Contenders: []string{"a", "b"}}
	ps := p.plots(s)
	ps["ratios.svg"] = p.Ratios(s, "a", "b", "a & b")
	if len(ps) != 2 {
		t.Errorf("%d plots", len(ps))
	}
	for name, text := range ps {
		d := xml.NewDecoder(strings.NewReader(text))
		for {
			_, err := d.Token()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v\n%s", name, err, text)
			}
		}
		if strings.Contains(text, "NaN") || strings.Contains(text, "Inf") {
			t.Errorf("%s: %s", name, text)
		}
	}
}

// Figures take the place of older ones of the same workload; what people wrote stays, and so do other workloads.
func TestPage(t *testing.T) {
	p := &Page{Folder: t.TempDir(), Name: "speed", Command: "me", Workloads: []string{"one", "two"}}
	if err := p.Check(); err == nil {
		t.Error("there is no page, and nobody says so")
	}
	if err := os.WriteFile(p.path(), []byte("before\n"+p.begin()+"old\n"+end+"after\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	measured := func(figure float64) Samples {
		m := &Measured{About: "what it is", Contenders: []string{"a", "b"}, Base: "a"}
		once := func(name string) ([]float64, error) {
			if name == "b" {
				return []float64{math.NaN()}, nil
			}
			return []float64{figure}, nil
		}
		if err := m.Turns(2, []Metric{{Name: "files", Unit: "/s"}}, once, io.Discard, false); err != nil {
			t.Fatal(err)
		}
		return Samples{"one": m}
	}
	other := measured(17)
	other["two"] = other["one"]
	delete(other, "one")
	for _, s := range []Samples{measured(11), other, measured(13)} {
		if err := p.Write(s); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(p.path())
	if err != nil {
		t.Fatal(err)
	}
	got := string(text)
	if !strings.HasPrefix(got, "before\n"+p.begin()) || !strings.HasSuffix(got, end+"after\n") || strings.Contains(got, "old") {
		t.Errorf("the page is\n%s", got)
	}
	for _, want := range []string{
		"### one\n\nWhat it is.", "| files, /s | 13.0 |  |", "### two", "| files, /s | 17.0 |  |",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the page has no %q:\n%s", want, got)
		}
	}
}

func TestSummaries(t *testing.T) {
	r := Row{Metric: Metric{Lower: true}, Figures: map[string][]float64{"a": {2, 4, 1}, "b": {4, 4, 4}}}
	if s, ok := r.Of("a"); !ok || s != (Summary{1, 2, 4}) {
		t.Errorf("summary %v, %v", s, ok)
	}
	if s, ok := r.Ratio("a", "b"); !ok || s != (Summary{1, 2, 4}) {
		t.Errorf("ratio %v, %v", s, ok)
	}
	if _, ok := r.Ratio("a", "c"); ok {
		t.Error("a ratio to what was not measured")
	}
	for v, want := range map[float64]string{
		0.1234: "0.123", 12.34: "12.3", 999.6: "1,000", 1234.5: "1,234", 1234567: "1,234,567",
	} {
		if got := Number(v); got != want {
			t.Errorf("%v is %s, not %s", v, got, want)
		}
	}
}
