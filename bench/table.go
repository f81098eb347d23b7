package main

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"time"

	"tansy/tools/load"
)

// table prints a row as soon as it is known.
type table struct {
	out    io.Writer
	missed int

	release *recorded // to compare with, or nil
	now     recorded  // of this run
	above   string    // the name of the last row that is not set in
	worse   int       // than the release
}

func (t *table) header(o options) {
	pick := "median"
	if o.best {
		pick = "best"
	}
	fmt.Fprintf(t.out, "%d CPUs, %s of %d rounds of %v\n\n", runtime.NumCPU(), pick, o.rounds, o.duration)
	fmt.Fprintf(t.out, "%-42s %14s %14s %7s %7s\n", "", "tansy", "floor", "ratio", "goal")
}

// row prints one comparison. A goal is a least ratio, or with lower set a
// greatest one; 0 is none.
func (t *table) row(name string, ours, floor float64, unit string, goal float64, lower bool) {
	ratio := ours / floor
	line := fmt.Sprintf("%-42s %14s %14s %7.2f", name, load.Number(ours)+" "+unit, load.Number(floor)+" "+unit, ratio)
	if goal > 0 {
		sign, ok := ">", ratio >= goal
		if lower {
			sign, ok = "<", ratio <= goal
		}
		line += fmt.Sprintf(" %7s", fmt.Sprintf("%s %.1f", sign, goal))
		if !ok {
			line += "  MISSED"
			t.missed++
		}
	}
	name = t.rowName(name)
	if t.now.Rows == nil {
		t.now.Rows = map[string]*ratiosOf{}
	}
	t.now.Rows[name] = &ratiosOf{lower, []float64{ratio}}
	if was := t.release.worse(name, ratio); was != "" {
		line += "  " + was
		t.worse++
	}
	fmt.Fprintln(t.out, line)
}

// note prints a number that is compared with nothing.
func (t *table) note(name string, v float64, unit string) {
	fmt.Fprintf(t.out, "%-42s %14s\n", name, load.Number(v)+" "+unit)
}

func (t *table) footer() {
	fmt.Fprint(t.out, `
floors: smallfile  the same steps on the local file system, fsync of file and directory
        write      a local file written in the same pieces, one fsync
        read       the local file read from the page cache
        rpc        a bare TCP echo of the same sizes in a process of its own
        directory  the same operation in the directory of 1,000 entries
        removal    the same calls when nothing is given back
        attack     the same client beside as many that behave as it does
`)
	if t.missed > 0 {
		fmt.Fprintf(t.out, "%d goals missed\n", t.missed)
	}
	if t.worse > 0 {
		fmt.Fprintf(t.out, "%d rows are worse than those of the last release by more than these varied\n", t.worse)
	}
}

// measurement runs for about the given time, and returns a rate or a cost.
type measurement func(time.Duration) (float64, error)

// inTurns repeats the measurements one after the other, so that a change of the
// machine's mood hits all of them alike, each round beginning with the next one, so that
// none always comes after the same other. It returns the median of each or, with
// -best, the best.
func (b *bench) inTurns(lowerIsBetter bool, ms ...measurement) ([]float64, error) {
	samples := make([][]float64, len(ms))
	for r := range b.rounds {
		for k := range ms {
			i := (r + k) % len(ms)
			v, err := ms[i](b.duration)
			if err != nil {
				return nil, err
			}
			samples[i] = append(samples[i], v)
		}
	}
	results := make([]float64, len(ms))
	for i, s := range samples {
		slices.Sort(s)
		switch {
		case !b.best:
			results[i] = s[len(s)/2]
		case lowerIsBetter:
			results[i] = s[0]
		default:
			results[i] = s[len(s)-1]
		}
	}
	return results, nil
}

// compare measures ours and floor in turns and prints the row.
func (b *bench) compare(name, unit string, goal float64, ours, floor measurement) error {
	v, err := b.inTurns(false, floor, ours)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	b.table.row(name, v[1], v[0], unit, goal, false)
	return nil
}
