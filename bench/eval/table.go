//go:build linux

package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// base is whom the others are compared with, if with anybody.
func (m *measured) base() string {
	for _, b := range []string{native, whole} {
		if slices.Contains(m.Contenders, b) {
			return b
		}
	}
	return ""
}

// header and row print medians, and their ratios to the base, while it is measured.
func (m *measured) header(out io.Writer) {
	fmt.Fprintf(out, "  %-36s", "")
	for _, c := range m.Contenders {
		fmt.Fprintf(out, " %18s", c)
	}
	fmt.Fprintln(out)
}

func (m *measured) row(out io.Writer, r *row) {
	fmt.Fprintf(out, "  %-36s", fmt.Sprintf("%s, %s", r.Name, r.Unit))
	for _, c := range m.Contenders {
		cell := "-"
		if s, ok := r.of(c); ok {
			cell = number(s.median)
			if x, ok := r.ratio(c, m.base()); ok && c != m.base() {
				cell += fmt.Sprintf(" %6.2fx", x.median)
			}
		}
		fmt.Fprintf(out, " %18s", cell)
	}
	fmt.Fprintln(out)
}

// markdown is a table with medians and spreads, and how many times as fast as the base each contender is.
func (m *measured) markdown() string {
	if m.base() == whole {
		return m.costs()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "| | %s |\n|---|%s\n", strings.Join(m.Contenders, " | "), strings.Repeat("---|", len(m.Contenders)))
	for _, r := range m.Rows {
		fmt.Fprintf(&b, "| %s, %s |", r.Name, r.Unit)
		for _, c := range m.Contenders {
			cell := ""
			if s, ok := r.of(c); ok {
				cell = s.String()
				if x, ok := r.ratio(c, m.base()); ok && c != m.base() {
					cell += fmt.Sprintf("; %.2f x", x.median)
				}
			}
			fmt.Fprintf(&b, " %s |", cell)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// costs is a table of what is left of the speed of the base, a line for each contender.
func (m *measured) costs() string {
	var b strings.Builder
	b.WriteString("| |")
	for _, r := range m.Rows {
		fmt.Fprintf(&b, " %s, %s |", r.Name, r.Unit)
	}
	fmt.Fprintf(&b, "\n|---|%s\n", strings.Repeat("---|", len(m.Rows)))
	for _, c := range m.Contenders {
		fmt.Fprintf(&b, "| %s |", c)
		for _, r := range m.Rows {
			s, _ := r.of(c)
			cell := s.String()
			if x, ok := r.ratio(c, whole); ok && c != whole {
				cell = fmt.Sprintf("%.2f x (%.2f to %.2f)", x.median, x.least, x.most)
			}
			fmt.Fprintf(&b, " %s |", cell)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
