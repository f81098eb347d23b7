//go:build linux

package figures

import (
	"encoding/xml"
	"io"
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
	s := Samples{"smallfile": {Axis: "clients", Contenders: []string{"a", "b", "a<b"}, Rows: rows}, "tree": {Contenders: []string{"b"}}}
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
	for v, want := range map[float64]string{0.1234: "0.123", 12.34: "12.3", 999.6: "1,000", 1234.5: "1,235"} {
		if got := Number(v); got != want {
			t.Errorf("%v is %s, not %s", v, got, want)
		}
	}
}
