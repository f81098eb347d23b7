//go:build linux

package eval

import (
	"fmt"
	"io"
	"strings"

	"tansy/bench/internal/figures"
)

// A target is what Tansy's mount is to reach: so many times the speed of another contender.
type target struct {
	workload, metric string // the metric's name begins so
	many             bool   // of users: 8 or more; else fewer
	base             string
	least            float64
}

var targets = []target{
	{"smallfile", "", false, native, 0.8}, {"smallfile", "", true, native, 1},
	{"mailbench", "", false, native, 0.8}, {"mailbench", "", true, native, 1},
	{"sqlite", "", false, native, 0.8},
	{"pgbench", "", false, native, 0.8}, {"pgbench", "", true, native, 1},
	{"app", "clone and build", false, native, 0.7},
	{"largefile", "written", false, nativeFUSE, 0.6},
	{"largefile", "read warm", false, nativeFUSE, 0.9},
}

// manyUsers is from how many on more is expected.
const manyUsers = 8

// A verdict says how far a target is reached in one row.
type verdict struct {
	target
	row     *figures.Row
	reached figures.Summary
}

func (v verdict) met() string {
	if v.reached.Median >= v.least {
		return "met"
	}
	return "missed"
}

func verdicts(s figures.Samples) (vs []verdict) {
	for _, t := range targets {
		m := s[t.workload]
		if m == nil {
			continue
		}
		for _, r := range m.Rows {
			if !strings.HasPrefix(r.Name, t.metric) || t.many != (r.At >= manyUsers) {
				continue
			}
			if x, ok := r.Ratio(ours, t.base); ok {
				vs = append(vs, verdict{t, r, x})
			}
		}
	}
	return vs
}

func printTargets(out io.Writer, s figures.Samples) {
	for _, v := range verdicts(s) {
		fmt.Fprintf(out, "%-8s %-12s %-34s %.1f x %s: %s\n", v.met(), v.workload, v.row.Name, v.least, v.base, v.reached)
	}
}

// targetTable is the same for the report.
func targetTable(s figures.Samples) string {
	var b strings.Builder
	b.WriteString("| workload | | target | reached | |\n|---|---|---|---|---|\n")
	for _, v := range verdicts(s) {
		fmt.Fprintf(&b, "| %s | %s | %.1f x %s | %s | %s |\n", v.workload, v.row.Name, v.least, v.base, v.reached, v.met())
	}
	return b.String()
}
