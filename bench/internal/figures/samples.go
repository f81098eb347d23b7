//go:build linux

// Package figures keeps what contenders reached when they were measured in turns, and makes tables, plots, and a page
// of it.
//
//	samples.go    what was measured
//	summary.go    medians and spreads
//	table.go plot.go  how it is shown
//	page.go       the page of the documentation that it stands in
//	machine.go    what it was measured on
package figures

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
)

// Samples are what was measured, by workload.
type Samples map[string]*Measured

// Measured is one workload.
type Measured struct {
	About      string `json:"about"`
	Conditions string `json:"conditions"`     // when, where, how often
	Base       string `json:"base,omitempty"` // the contender that the others are compared with, if with any

	// Transposed: the table has a line for each contender, and what is left of the base's speed.
	Transposed bool `json:"transposed,omitempty"`

	Axis       string   `json:"axis,omitempty"` // what At of the rows is, if there is a plot by that
	Contenders []string `json:"contenders"`
	Rows       []*Row   `json:"rows"`
}

// A Metric is what one figure is of.
type Metric struct {
	Name  string `json:"name"`
	Unit  string `json:"unit"`            // per second, if not a time
	Lower bool   `json:"lower,omitempty"` // the lower, the better
	At    int64  `json:"at,omitempty"`    // of a workload that is run with several numbers of something: with how many
}

// A Row has the figures of one metric, of each contender one a round. Those of one round belong together.
type Row struct {
	Metric
	Figures map[string][]float64 `json:"figures"`
}

// NewRow returns an empty one.
func NewRow(m Metric) *Row { return &Row{m, map[string][]float64{}} }

// read returns those that are kept in a file, if any are.
func read(path string) (Samples, error) {
	s := Samples{}
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return s, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	return s, err
}

func (s Samples) write(path string) error {
	text, err := json.MarshalIndent(s, "", "\t")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}
