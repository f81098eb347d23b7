//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// measure has all contenders do each experiment of a workload, in turns, and prints a row as soon as it is known.
func (m *machine) measure(ctx context.Context, w workload, out io.Writer) (*measured, error) {
	cs := w.contenders(m.options)
	if len(cs) == 0 {
		fmt.Fprintln(out, "  none of the contenders is here")
	}
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
				if err := m.once(ctx, c, e, rows); err != nil {
					return nil, fmt.Errorf("%s: %w", c.name, err)
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

// once adds one figure of a contender to each row.
func (m *machine) once(ctx context.Context, c contender, e experiment, rows []*row) (err error) {
	s, err := m.site(ctx, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.unmount()) }()
	figures, err := e.run(ctx, s)
	if err != nil {
		return err
	}
	for i, f := range figures {
		rows[i].Figures[c.name] = append(rows[i].Figures[c.name], f)
	}
	return nil
}
