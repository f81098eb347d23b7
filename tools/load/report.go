package load

import (
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// WriteText prints a table.
func WriteText(w io.Writer, results []Result) {
	fmt.Fprintf(w, "%-10s %7s %9s %14s  %9s %9s %9s %9s %9s  %14s\n",
		"", "clients", "in flight", "rate", "half", "90 %", "99 %", "99.9 %", "longest", "server CPU")
	for _, r := range results {
		cpu := "-"
		if r.CPU > 0 && r.Ops > 0 {
			cpu = short(r.CPU/time.Duration(r.Ops)) + " each"
		}
		l := r.Latency
		fmt.Fprintf(w, "%-10s %7d %9d %14s  %9s %9s %9s %9s %9s  %14s\n", r.Workload, r.Clients, r.Depth, r.rate(),
			short(l.Half), short(l.Tenth), short(l.Hundredth), short(l.Thousandth), short(l.Longest), cpu)
	}
}

// WriteJSON prints the results as one JSON array; durations are in nanoseconds.
func WriteJSON(w io.Writer, results []Result) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(results)
}

// rate words the rate: of operations or, in a workload about bytes, of data.
func (r *Result) rate() string {
	seconds := max(r.Elapsed, 1).Seconds()
	if r.about.Bytes {
		return Number(float64(r.Bytes)/1e6/seconds) + " MB/s"
	}
	return Number(float64(r.Ops)/seconds) + " /s"
}

// Number prints x with three significant digits, or with all digits before the point, in groups of three.
func Number(v float64) string {
	switch {
	case v < 10:
		return fmt.Sprintf("%.2f", v)
	case v < 100:
		return fmt.Sprintf("%.1f", v)
	}
	s := fmt.Sprintf("%.0f", v)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// short is a duration with the unit that fits.
func short(d time.Duration) string {
	switch {
	case d < 10*time.Millisecond:
		return Number(float64(d)/1e3) + " us"
	case d < 10*time.Second:
		return Number(float64(d)/1e6) + " ms"
	}
	return Number(d.Seconds()) + " s"
}
