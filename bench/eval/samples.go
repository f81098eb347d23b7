//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
)

// samples are what was measured, by workload.
type samples map[string]*measured

// measured is one workload.
type measured struct {
	About      string   `json:"about"`
	Conditions string   `json:"conditions"` // when, where, how often
	Contenders []string `json:"contenders"`
	Rows       []*row   `json:"rows"`
}

// A row has the figures of one metric, of each contender one a round. Those of one round belong together.
type row struct {
	metric
	Figures map[string][]float64 `json:"figures"`
}

// samplesFile is where they are kept below the folder of the report.
const samplesFile = "evaluation/samples.json"

// readSamples returns those that are kept, if any are.
func readSamples(folder string) (samples, error) {
	s := samples{}
	text, err := os.ReadFile(filepath.Join(folder, samplesFile))
	if errors.Is(err, os.ErrNotExist) {
		return s, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	return s, err
}

func (s samples) write(folder string) error {
	text, err := json.MarshalIndent(s, "", "\t")
	if err != nil {
		return err
	}
	path := filepath.Join(folder, samplesFile)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}
