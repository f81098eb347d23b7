//go:build linux

package eval

import (
	"context"
	"errors"
	"io"
	"slices"

	"tansy/bench/internal/figures"
)

// measure has all contenders do each experiment of a workload, in turns.
func (m *machine) measure(ctx context.Context, w workload, cs []contender, out io.Writer) (*figures.Measured, error) {
	all := &figures.Measured{About: w.about, Axis: w.axis}
	for _, c := range cs {
		all.Contenders = append(all.Contenders, c.name)
		if c.name == native || c.name == whole {
			all.Base, all.Transposed = c.name, c.name == whole
		}
	}
	all.PrintHeader(out)
	for _, e := range w.experiments(m.options) {
		once := func(name string) ([]float64, error) {
			return m.once(ctx, cs[slices.IndexFunc(cs, func(c contender) bool { return c.name == name })], e)
		}
		if err := all.Turns(m.rounds, e.metrics, once, out, m.verbose); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// once has a contender do an experiment, and returns a figure for each of the metrics.
func (m *machine) once(ctx context.Context, c contender, e experiment) (reached []float64, err error) {
	s, err := m.site(ctx, c)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.unmount()) }()
	return e.run(ctx, s)
}
