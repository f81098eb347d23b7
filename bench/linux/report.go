//go:build linux

package linux

import (
	"context"
	"fmt"
	"io"
	"strings"

	"tansy/bench/internal/figures"
	"tansy/bench/internal/rig"
)

// heading is what figures of a workload are kept under, on a page with those of others; beside them are those of what
// it took.
func heading(workload string) string { return "Linux client: " + workload }
func costs(workload string) string   { return heading(workload) + ", what it took" }

// The counts that are kept, as metrics: those of a phase stand one after the other.
var countMetrics = []figures.Metric{
	{Name: "calls"}, {Name: "flushes"}, {Name: "written", Unit: "MB"}, {Name: "read", Unit: "MB"},
	{Name: "server's processor time", Unit: "s"}, {Name: "processors idle", Unit: "%"},
}

func (r *result) values() []float64 {
	c := r.Counts
	return []float64{c.Calls, c.Flushes, c.Written / 1e6, c.Read / 1e6, c.Busy, 100 * c.Idle / (processors * r.Seconds)}
}

// describe says when, where, and how it is measured.
func describe(ctx context.Context, o options, i *image) string {
	version, _ := rig.Command(ctx, qemu, "--version")
	version, _, _ = strings.Cut(strings.TrimPrefix(version, "QEMU emulator version "), "\n")
	how := fmt.Sprintf("%d rounds", o.Rounds)
	if o.Quick {
		how += " (-quick: whether it runs, not how fast)"
	}
	return fmt.Sprintf("%s; guest: QEMU %s (%s), %d virtual processors, %d GiB of memory, Linux %s, "+
		"a disk of %d GiB past the host's page cache; %s",
		figures.Describe(), strings.Fields(version + " ?")[0], o.accelerator, processors, memoryMB>>10, i.kernel,
		diskBytes>>30, how)
}

// report is a section of docs/evidence/performance.md, if the folder is docs/evidence.
func report(folder string) *figures.Page {
	p := &figures.Page{
		Folder: folder, Name: "performance", Command: "go run ./bench linux -write docs/evidence",
		Contenders: contenderNames(), Summary: summary,
	}
	for _, w := range workloads {
		p.Workloads = append(p.Workloads, heading(w.name))
	}
	return p
}

func summary(s figures.Samples) string {
	return "\n### Targets\n\nTimes, as multiples of those of the kernel's server in the same round, and the target.\n\n" +
		targetTable(s) + "\n### What it took\n\n" +
		"Calls of the client / flushes of the disk's cache / MB written to the disk / MB read from it / " +
		"seconds of a processor for the server (its process; the kernel's threads for it and for ext4's journal, " +
		"with rpcbind and rpc.mountd) / of the processors' time idle, in %; " +
		"medians, while it was measured: what a server writes later is not in it.\n\n" + costTable(s)
}

// phaseNamed is what a row of a workload is of.
func phaseNamed(w *workload, name string) *phase {
	for i := range w.phases {
		if w.phases[i].name == name {
			return &w.phases[i]
		}
	}
	return nil
}

// A verdict says how many times the time of another server Tansy takes, and how many it may.
type verdict struct {
	workload, phase, base string
	worse                 float64
	times                 figures.Summary
}

func (v verdict) String() string {
	met := "met"
	if v.times.Median > v.worse {
		met = "**missed**"
	}
	return fmt.Sprintf("%s; at most %.2f: %s", v.times, v.worse, met)
}

func verdicts(s figures.Samples) (vs []verdict) {
	for _, w := range workloads {
		m := s[heading(w.name)]
		if m == nil {
			continue
		}
		for _, r := range m.Rows {
			p := phaseNamed(&w, r.Name)
			if p == nil {
				continue
			}
			for _, b := range []struct {
				base  string
				worse float64
			}{{ordered, p.worse}, {journal, worseThanJournal}} {
				if times, ok := r.Ratio(b.base, ours); ok { // so many times as fast, times being times
					vs = append(vs, verdict{w.name, p.name, b.base, b.worse, times})
				}
			}
		}
	}
	return vs
}

func printTargets(out io.Writer, s figures.Samples) {
	fmt.Fprintln(out)
	for _, v := range verdicts(s) {
		fmt.Fprintf(out, "%-10s %-28s of %-14s %s\n", v.workload, v.phase, v.base, v)
	}
}

// targetTable has a line for each phase.
func targetTable(s figures.Samples) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| workload | | of %s | of %s |\n|---|---|---|---|\n", ordered, journal)
	cells := map[string]map[string]string{}
	for _, v := range verdicts(s) {
		key := v.workload + " | " + v.phase
		if cells[key] == nil {
			cells[key] = map[string]string{}
		}
		cells[key][v.base] = v.String()
	}
	for _, w := range workloads {
		for _, p := range w.phases {
			if c := cells[w.name+" | "+p.name]; c != nil {
				fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", w.name, p.name, c[ordered], c[journal])
			}
		}
	}
	return b.String()
}

func costTable(s figures.Samples) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| workload | | %s |\n|---|---|%s\n",
		strings.Join(contenderNames(), " | "), strings.Repeat("---|", len(contenders)))
	for _, w := range workloads {
		m := s[costs(w.name)]
		if m == nil {
			continue
		}
		for i := 0; i+len(countMetrics) <= len(m.Rows); i += len(countMetrics) {
			phase, _, _ := strings.Cut(m.Rows[i].Name, ": ")
			fmt.Fprintf(&b, "| %s | %s |", w.name, phase)
			for _, c := range contenders {
				var cell []string
				for _, r := range m.Rows[i : i+len(countMetrics)] {
					if f, ok := r.Of(c.name); ok {
						cell = append(cell, figures.Number(f.Median))
					}
				}
				fmt.Fprintf(&b, " %s |", strings.Join(cell, " / "))
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// A collection is what the guest has told so far.
type collection struct {
	options
	about    string
	out      io.Writer
	samples  figures.Samples
	workload string // that is going on
}

func newCollection(o options, about string, out io.Writer) *collection {
	return &collection{options: o, about: about, out: out, samples: figures.Samples{}}
}

// take takes what the guest says next.
func (c *collection) take(l line) error {
	if c.verbose && l.Step != "" {
		fmt.Fprintf(c.out, "  %s\n", l.Step)
	}
	if r := l.Result; r != nil {
		if r.Workload != c.workload {
			if err := c.finish(); err != nil {
				return err
			}
			c.begin(r.Workload)
		}
		c.add(r)
	}
	if l.Done {
		return c.finish()
	}
	return nil
}

func (c *collection) begin(workload string) {
	c.workload = workload
	w := workloadNamed(workload)
	times := &figures.Measured{About: w.about, Conditions: c.about, Base: ordered, Contenders: c.Contenders}
	took := &figures.Measured{About: w.about, Conditions: c.about, Contenders: c.Contenders}
	for _, p := range w.phases {
		times.Rows = append(times.Rows, figures.NewRow(figures.Metric{Name: p.name, Unit: "s", Lower: true}))
		for _, m := range countMetrics {
			m.Name = p.name + ": " + m.Name
			took.Rows = append(took.Rows, figures.NewRow(m))
		}
	}
	c.samples[heading(workload)], c.samples[costs(workload)] = times, took
}

func (c *collection) add(r *result) {
	times, took := c.samples[heading(r.Workload)], c.samples[costs(r.Workload)]
	for i, row := range times.Rows {
		if row.Name != r.Phase {
			continue
		}
		row.Figures[r.Contender] = append(row.Figures[r.Contender], r.Seconds)
		for k, v := range r.values() {
			f := took.Rows[i*len(countMetrics)+k].Figures
			f[r.Contender] = append(f[r.Contender], v)
		}
	}
	if c.verbose {
		v := r.values()
		fmt.Fprintf(c.out, "    %s: %.3f s; %.0f calls, %.0f flushes, %.1f MB written, %.1f MB read, "+
			"server %.2f s, idle %.0f %%\n", r.Phase, r.Seconds, v[0], v[1], v[2], v[3], v[4], v[5])
	}
}

// finish prints the workload that was going on, and writes it: what comes later may fail.
func (c *collection) finish() error {
	m := c.samples[heading(c.workload)]
	if m == nil {
		return nil
	}
	fmt.Fprintf(c.out, "\n%s: %s\n", c.workload, m.About)
	m.PrintHeader(c.out)
	for _, r := range m.Rows {
		m.PrintRow(c.out, r)
	}
	if c.write == "" {
		return nil
	}
	return report(c.write).Write(figures.Samples{heading(c.workload): m, costs(c.workload): c.samples[costs(c.workload)]})
}
