//go:build linux

package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// describe says when and where it is measured.
func describe(ctx context.Context, o options, d *device) string {
	how := fmt.Sprintf("%d rounds of %v", o.rounds, o.duration)
	if o.quick {
		how += " (-quick: whether it runs, not how fast)"
	}
	direct := "past the page cache of the file system below"
	if !d.direct {
		direct = "through the page cache of the file system below"
	}
	commit, err := command(ctx, "git", "describe", "--always", "--dirty", "--abbrev=10")
	if err != nil {
		commit = "unknown"
	}
	return fmt.Sprintf("%s, commit %s; %d processors (%s), %d GiB of memory, Linux %s; a loop device of %d GiB, %s; %s",
		time.Now().Format("2 January 2006"), commit, runtime.NumCPU(), processor(), memory()>>30, kernel(), d.bytes>>30, direct, how)
}

func processor() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

func memory() uint64 {
	var i unix.Sysinfo_t
	if unix.Sysinfo(&i) != nil {
		return 0
	}
	return uint64(i.Totalram) * uint64(i.Unit)
}

func kernel() string {
	var u unix.Utsname
	unix.Uname(&u)
	return unix.ByteSliceToString(u.Release[:])
}

// What lies between these lines of the report is written by this program, all else by people.
const (
	figuresBegin = "<!-- figures: written by go run ./bench/eval -write docs -->\n"
	figuresEnd   = "<!-- end of figures -->\n"
)

// page is what stands before the figures of the report, and after them.
func page(folder string) (before, after string, err error) {
	path := filepath.Join(folder, "evaluation.md")
	text, err := os.ReadFile(path)
	if err != nil {
		return "", "", err
	}
	before, rest, ok := strings.Cut(string(text), figuresBegin)
	_, after, too := strings.Cut(rest, figuresEnd)
	if !ok || !too {
		return "", "", fmt.Errorf("%s has no place for figures", path)
	}
	return before, after, nil
}

// writeReport puts figures in the place of older ones of the same workloads, and of all that are there then makes tables and plots.
func writeReport(folder string, s samples) error {
	before, after, err := page(folder)
	if err != nil {
		return err
	}
	all, err := readSamples(folder)
	if err != nil {
		return err
	}
	maps.Copy(all, s)
	if err := all.write(folder); err != nil {
		return err
	}
	for name, plot := range plots(all) {
		if err := os.WriteFile(filepath.Join(folder, "evaluation", name), []byte(plot), 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(folder, "evaluation.md"), []byte(before+figuresBegin+figures(all)+figuresEnd+after), 0o644)
}

// figures are the tables and plots of all workloads.
func figures(s samples) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\nMedians of the rounds, and the least and the most of them.\n\n### Targets\n\n%s\n![Speed against native ext4](evaluation/ratios.svg)\n", targetTable(s))
	last := ""
	for _, w := range workloads {
		m := s[w.name]
		if m == nil {
			continue
		}
		fmt.Fprintf(&b, "\n### %s\n\n%s.\n", w.name, strings.ToUpper(m.About[:1])+m.About[1:])
		if m.Conditions != last {
			last = m.Conditions
			fmt.Fprintf(&b, "Measured on %s.\n", last)
		}
		fmt.Fprintf(&b, "\n%s", m.markdown())
		if m.scales() {
			fmt.Fprintf(&b, "\n![%[1]s, by the number of clients](evaluation/%[1]s.svg)\n", w.name)
		}
	}
	return b.String() + "\n"
}

// scales tells whether a workload has a plot by the number of clients.
func (m *measured) scales() bool {
	n := 0
	for _, r := range m.Rows {
		if r.Clients > 0 {
			n++
		}
	}
	return n > 2
}
