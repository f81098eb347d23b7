package conform

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// Count is the number of results with an outcome.
func (r *Report) Count(o Outcome) (n int) {
	for i := range r.Results {
		if r.Results[i].Outcome == o {
			n++
		}
	}
	return n
}

// WriteJSON writes the report for machines.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// WriteText writes the report for people: what failed, what differs, what was
// skipped, and a table of the groups.
func (r *Report) WriteText(w io.Writer) {
	for _, part := range []struct {
		o     Outcome
		title string
	}{{Fail, "FAILURES"}, {Differ, "DIFFERENCES (the RFC recommends, or leaves the choice)"}} {
		if r.Count(part.o) == 0 {
			continue
		}
		fmt.Fprintf(w, "%s\n\n", part.title)
		for i := range r.Results {
			if x := &r.Results[i]; x.Outcome == part.o {
				x.write(w)
			}
		}
		fmt.Fprintln(w)
	}
	if r.Count(Skip) > 0 {
		fmt.Fprint(w, "SKIPPED\n\n")
		r.writeSkipped(w)
		fmt.Fprintln(w)
	}
	r.writeTable(w)
	if r.Left != "" {
		fmt.Fprintf(w, "\nnot cleaned up: %s\n", r.Left)
	}
}

// mostNamed is how many checks that were skipped for one reason are named, a line each. Of more their groups are.
const mostNamed = 3

// writeSkipped writes which checks were skipped, and why: a server without locks gets one line, and not a hundred.
func (r *Report) writeSkipped(w io.Writer) {
	because := map[string][]*Result{}
	var reasons []string // in the order of the checks
	for i := range r.Results {
		if x := &r.Results[i]; x.Outcome == Skip {
			if because[x.Reason] == nil {
				reasons = append(reasons, x.Reason)
			}
			because[x.Reason] = append(because[x.Reason], x)
		}
	}
	for _, reason := range reasons {
		list := because[reason]
		if len(list) <= mostNamed {
			for _, x := range list {
				fmt.Fprintf(w, "%s: %s\n", x.ID(), reason)
			}
			continue
		}
		var groups []string
		for _, x := range list {
			if !slices.Contains(groups, x.Group) {
				groups = append(groups, x.Group)
			}
		}
		fmt.Fprintf(w, "%d checks of %s: %s\n", len(list), strings.Join(groups, ", "), reason)
	}
}

func (x *Result) write(w io.Writer) {
	fmt.Fprintf(w, "%s: %s (%s, %s)\n", x.ID(), x.Expect, x.Section, x.Level)
	for _, s := range x.Sent {
		fmt.Fprintf(w, "    sent  %s\n", s)
	}
	fmt.Fprintf(w, "    want  %s\n    got   %s\n", x.Want, x.Got)
}

func (r *Report) writeTable(w io.Writer) {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(tw, "group\tpass\tfail\tdiffer\tskip\t\n")
	counts := map[string]map[Outcome]int{}
	var names []string
	for i := range r.Results {
		x := &r.Results[i]
		if counts[x.Group] == nil {
			counts[x.Group] = map[Outcome]int{}
			names = append(names, x.Group)
		}
		counts[x.Group][x.Outcome]++
	}
	for _, n := range names {
		c := counts[n]
		fmt.Fprintf(tw, "%s\t%d\t%d\t%d\t%d\t\n", n, c[Pass], c[Fail], c[Differ], c[Skip])
	}
	fmt.Fprintf(tw, "all %d\t%d\t%d\t%d\t%d\t\n",
		len(r.Results), r.Count(Pass), r.Count(Fail), r.Count(Differ), r.Count(Skip))
	tw.Flush()
}
