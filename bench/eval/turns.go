//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// measure has all contenders do each experiment of a workload, in turns, and prints a row as soon as it is known.
func (m *machine) measure(ctx context.Context, w workload, cs []contender, out io.Writer) (*measured, error) {
	all := &measured{About: w.about}
	for _, c := range cs {
		all.Contenders = append(all.Contenders, c.name)
	}
	all.header(out)
	for _, e := range w.experiments(m.options) {
		rows := make([]*row, len(e.metrics))
		for i := range rows {
			rows[i] = &row{metric: e.metrics[i], Figures: map[string][]float64{}}
		}
		for r := range m.rounds {
			for k := range cs {
				c := cs[(r+k)%len(cs)]
				figures, err := m.once(ctx, c, e)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", c.name, err)
				}
				for i, f := range figures {
					rows[i].Figures[c.name] = append(rows[i].Figures[c.name], f)
					if m.verbose {
						fmt.Fprintf(out, "    round %d, %s: %s, %s: %s\n", r+1, c.name, e.metrics[i].Name, e.metrics[i].Unit, number(f))
					}
				}
			}
		}
		for _, row := range rows {
			all.row(out, row)
		}
		all.Rows = append(all.Rows, rows...)
	}
	return all, nil
}

// once has a contender do an experiment, and returns a figure for each of the metrics.
func (m *machine) once(ctx context.Context, c contender, e experiment) (figures []float64, err error) {
	s, err := m.site(ctx, c)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.unmount()) }()
	return e.run(ctx, s)
}
