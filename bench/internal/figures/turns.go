//go:build linux

package figures

import (
	"fmt"
	"io"
	"math"
)

// Turns has all contenders of m do something for a number of rounds, each round beginning with the next one, so that a
// change of the machine's mood hits all alike. It prints a row for each metric when all of them are known, single
// figures as soon as they are if verbose, and adds the rows to m. once returns a figure for each of the metrics, NaN
// where a contender has none.
func (m *Measured) Turns(
	rounds int, metrics []Metric, once func(contender string) ([]float64, error), out io.Writer, verbose bool,
) error {
	rows := make([]*Row, len(metrics))
	for i := range rows {
		rows[i] = NewRow(metrics[i])
	}
	for r := range rounds {
		for k := range m.Contenders {
			c := m.Contenders[(r+k)%len(m.Contenders)]
			reached, err := once(c)
			if err != nil {
				return fmt.Errorf("%s: %w", c, err)
			}
			for i, f := range reached {
				if math.IsNaN(f) {
					continue
				}
				rows[i].Figures[c] = append(rows[i].Figures[c], f)
				if verbose {
					fmt.Fprintf(out, "    round %d, %s: %s, %s: %s\n", r+1, c, metrics[i].Name, metrics[i].Unit, Number(f))
				}
			}
		}
	}
	for _, row := range rows {
		m.PrintRow(out, row)
	}
	m.Rows = append(m.Rows, rows...)
	return nil
}
