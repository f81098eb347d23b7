//go:build linux

package figures

import (
	"fmt"
	"math"
	"slices"
)

// A Summary is what several rounds have shown.
type Summary struct{ Least, Median, Most float64 }

// summarize returns false if there is nothing to summarize.
func summarize(figures []float64) (s Summary, ok bool) {
	if len(figures) == 0 {
		return s, false
	}
	f := slices.Sorted(slices.Values(figures))
	middle := f[len(f)/2]
	if len(f)%2 == 0 {
		middle = (middle + f[len(f)/2-1]) / 2
	}
	return Summary{f[0], middle, f[len(f)-1]}, true
}

// Of is the summary of a contender's figures.
func (r *Row) Of(contender string) (Summary, bool) { return summarize(r.Figures[contender]) }

// Ratio says how many times as fast a contender is as another one: of the ratios in each round.
func (r *Row) Ratio(contender, base string) (Summary, bool) {
	a, b := r.Figures[contender], r.Figures[base]
	var ratios []float64
	for i := range min(len(a), len(b)) {
		x := a[i] / b[i]
		if r.Lower {
			x = 1 / x
		}
		ratios = append(ratios, x)
	}
	return summarize(ratios)
}

// Number has three digits, at least.
func Number(v float64) string {
	switch {
	case v == 0 || math.IsNaN(v) || math.IsInf(v, 0):
		return fmt.Sprint(v)
	case v < 1:
		return fmt.Sprintf("%.3f", v)
	case v < 10:
		return fmt.Sprintf("%.2f", v)
	case v < 100:
		return fmt.Sprintf("%.1f", v)
	}
	digits := fmt.Sprintf("%.0f", v)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// String is the median, and how far the rounds lie apart.
func (s Summary) String() string {
	if s.Least == s.Most {
		return Number(s.Median)
	}
	return fmt.Sprintf("%s (%s to %s)", Number(s.Median), Number(s.Least), Number(s.Most))
}
