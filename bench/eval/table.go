//go:build linux

package main

import (
	"fmt"
	"io"
	"strings"
)

// What is printed while it is measured: medians alone, and their ratios to native ext4's.

func printHeader(out io.Writer, contenders []string) {
	fmt.Fprintf(out, "  %-34s", "")
	for _, c := range contenders {
		fmt.Fprintf(out, " %18s", c)
	}
	fmt.Fprintln(out)
}

func printRow(out io.Writer, r *row, contenders []string) {
	fmt.Fprintf(out, "  %-34s", fmt.Sprintf("%s, %s", r.Name, r.Unit))
	for _, c := range contenders {
		cell := "-"
		if s, ok := r.of(c); ok {
			cell = number(s.median)
			if x, ok := r.ratio(c, native); ok && c != native {
				cell += fmt.Sprintf(" %6.2fx", x.median)
			}
		}
		fmt.Fprintf(out, " %18s", cell)
	}
	fmt.Fprintln(out)
}

// markdown is a table with medians and spreads, a line for each metric.
func (m *measured) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "| | %s |\n|---|%s\n", strings.Join(m.Contenders, " | "), strings.Repeat("---|", len(m.Contenders)))
	for _, r := range m.Rows {
		fmt.Fprintf(&b, "| %s, %s |", r.Name, r.Unit)
		for _, c := range m.Contenders {
			cell := ""
			if s, ok := r.of(c); ok {
				cell = s.String()
			}
			fmt.Fprintf(&b, " %s |", cell)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
