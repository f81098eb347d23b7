// Package promtest reads metrics in tests as Prometheus does.
package promtest

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Parse reads an exposition with Prometheus' own parser and returns the value of each sample. What is
// not as Prometheus wants it, or as it advises, fails the test: a sample that comes twice, a counter
// whose name does not say so, a family without help, a histogram that does not add up.
func Parse(t *testing.T, text string) map[string]float64 {
	t.Helper()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	samples := map[string]float64{}
	add := func(name string, labels []string, v float64) {
		key := name + "{" + strings.Join(labels, ",") + "}"
		if _, twice := samples[key]; twice {
			t.Errorf("%s comes twice", key)
		}
		samples[key] = v
	}
	for name, f := range families {
		kind := f.GetType()
		if (kind == dto.MetricType_COUNTER) != strings.HasSuffix(name, "_total") || f.GetHelp() == "" || kind == dto.MetricType_UNTYPED {
			t.Errorf("%s is a %v: %q", name, kind, f.GetHelp())
		}
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+strconv.Quote(l.GetValue()))
			}
			switch kind {
			case dto.MetricType_COUNTER:
				add(name, labels, m.GetCounter().GetValue())
			case dto.MetricType_GAUGE:
				add(name, labels, m.GetGauge().GetValue())
			case dto.MetricType_HISTOGRAM:
				h := m.GetHistogram()
				sum, bound := uint64(0), math.Inf(-1)
				for _, b := range h.GetBucket() {
					if b.GetCumulativeCount() < sum || b.GetUpperBound() <= bound {
						t.Errorf("%s%v: the buckets are not in order", name, labels)
					}
					sum, bound = b.GetCumulativeCount(), b.GetUpperBound()
					add(name+"_bucket", append(labels[:len(labels):len(labels)],
						fmt.Sprintf("le=%q", strconv.FormatFloat(bound, 'g', -1, 64))), float64(sum))
				}
				if h.GetSampleCount() != sum || !math.IsInf(bound, 1) {
					t.Errorf("%s%v: %d in all, %d in the buckets", name, labels, h.GetSampleCount(), sum)
				}
				add(name+"_count", labels, float64(h.GetSampleCount()))
				add(name+"_sum", labels, h.GetSampleSum())
			default:
				t.Errorf("%s: a %v is not expected", name, kind)
			}
		}
	}
	return samples
}
