package floor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"
)

// recorded are the ratios of rows in runs that were recorded: those of the last release, to compare this one with.
// Ratios carry over between machines better than rates, but not from any machine to any other: how they were measured
// is kept with them.
type recorded struct {
	How  string               `json:"how"`
	Rows map[string]*ratiosOf `json:"rows"`
}

// ratiosOf are the ratios of a row.
type ratiosOf struct {
	Lower  bool      `json:"lower,omitempty"` // the lower the better
	Ratios []float64 `json:"ratios"`          // of each run
}

// how says what has to be the same for ratios to be comparable.
func (o options) how() string {
	return fmt.Sprintf("%d CPUs, cache %s, file %d MB, rpc-depth %d, depth %d",
		runtime.NumCPU(), o.cache, o.fileMB, o.rpcDepth, o.depth)
}

// readFigures returns nil if there are none.
func readFigures(file string) (*recorded, error) {
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	f := new(recorded)
	if err == nil {
		err = json.Unmarshal(b, f)
	}
	if err != nil {
		return nil, fmt.Errorf("the figures of the last release: %w", err)
	}
	return f, nil
}

// write writes f, with the ratios of this run behind those of others that were measured alike.
func (f *recorded) write(file string, earlier *recorded) error {
	if earlier != nil && earlier.How == f.How {
		for name, r := range earlier.Rows {
			if now := f.Rows[name]; now != nil {
				now.Ratios = append(slices.Clone(r.Ratios), now.Ratios...)
			} else {
				f.Rows[name] = r
			}
		}
	}
	b, err := json.MarshalIndent(f, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(b, '\n'), 0o644)
}

// leastSpread is how much of a ratio is not worth a word, however little it has varied.
const leastSpread = 0.1

// worse tells what a row had in the release, if ratio is worse than the median of that by more than it varied; else it
// is "".
func (f *recorded) worse(name string, ratio float64) string {
	if f == nil || f.Rows[name] == nil || len(f.Rows[name].Ratios) == 0 {
		return ""
	}
	r := f.Rows[name]
	s := slices.Sorted(slices.Values(r.Ratios))
	median, most := s[len(s)/2], s[len(s)-1]
	spread := max(most-s[0], leastSpread*median)
	if r.Lower && ratio <= median+spread || !r.Lower && ratio >= median-spread {
		return ""
	}
	return fmt.Sprintf("worse than the release: %.2f (%.2f to %.2f)", median, s[0], most)
}

// rowName is the whole name of a row: those that are set in belong to the one above that is not.
func (t *table) rowName(name string) string {
	if !strings.HasPrefix(name, " ") {
		t.above = name
		return name
	}
	return t.above + ", " + strings.TrimLeft(name, " ")
}
