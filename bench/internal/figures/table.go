//go:build linux

package figures

import (
	"fmt"
	"io"
	"strings"
)

// PrintHeader prints who is measured.
func (m *Measured) PrintHeader(out io.Writer) {
	fmt.Fprintf(out, "  %-36s", "")
	for _, c := range m.Contenders {
		fmt.Fprintf(out, " %18s", c)
	}
	fmt.Fprintln(out)
}

// PrintRow prints medians, and their ratios to the base, while it is measured.
func (m *Measured) PrintRow(out io.Writer, r *Row) {
	fmt.Fprintf(out, "  %-36s", fmt.Sprintf("%s, %s", r.Name, r.Unit))
	for _, c := range m.Contenders {
		cell := "-"
		if s, ok := r.Of(c); ok {
			cell = Number(s.Median)
			if x, ok := r.Ratio(c, m.Base); ok && c != m.Base {
				cell += fmt.Sprintf(" %6.2fx", x.Median)
			}
		}
		fmt.Fprintf(out, " %18s", cell)
	}
	fmt.Fprintln(out)
}

// markdown is a table with medians and spreads, and how many times as fast as the base each contender is.
func (m *Measured) markdown() string {
	if m.Transposed {
		return m.costs()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "| | %s |\n|---|%s\n", strings.Join(m.Contenders, " | "), strings.Repeat("---|", len(m.Contenders)))
	for _, r := range m.Rows {
		fmt.Fprintf(&b, "| %s, %s |", r.Name, r.Unit)
		for _, c := range m.Contenders {
			cell := ""
			if s, ok := r.Of(c); ok {
				cell = s.String()
				if x, ok := r.Ratio(c, m.Base); ok && c != m.Base {
					cell += fmt.Sprintf("; %.2f x", x.Median)
				}
			}
			fmt.Fprintf(&b, " %s |", cell)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// costs is a table of what is left of the speed of the base, a line for each contender.
func (m *Measured) costs() string {
	var b strings.Builder
	b.WriteString("| |")
	for _, r := range m.Rows {
		fmt.Fprintf(&b, " %s, %s |", r.Name, r.Unit)
	}
	fmt.Fprintf(&b, "\n|---|%s\n", strings.Repeat("---|", len(m.Rows)))
	for _, c := range m.Contenders {
		fmt.Fprintf(&b, "| %s |", c)
		for _, r := range m.Rows {
			s, _ := r.Of(c)
			cell := s.String()
			if x, ok := r.Ratio(c, m.Base); ok && c != m.Base {
				cell = fmt.Sprintf("%.2f x (%.2f to %.2f)", x.Median, x.Least, x.Most)
			}
			fmt.Fprintf(&b, " %s |", cell)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
