//go:build linux

package eval

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"tansy/bench/internal/figures"
	"tansy/bench/internal/rig"
)

// A preparation makes ready a folder of a client, and returns what the client does again and again. What else it
// returns is closed in the end, if it is not nil.
type preparation func(folder string) (once func(k int) error, end io.Closer, err error)

// sideBySide is an experiment with n clients, who do something again and again in a folder of their own.
func sideBySide(what string, n int, prepare preparation) experiment {
	return experiment{
		[]figures.Metric{{Name: fmt.Sprintf("%s, clients: %d", what, n), Unit: "/s", At: int64(n)}},
		func(ctx context.Context, s *site) (rates []float64, err error) {
			clients := make([]func(int) error, n)
			for i := range clients {
				folder := filepath.Join(s.dir, fmt.Sprint("client", i))
				if err := os.Mkdir(folder, 0o755); err != nil {
					return nil, err
				}
				once, end, err := prepare(folder)
				if err != nil {
					return nil, err
				}
				if clients[i] = once; end != nil {
					defer end.Close() // of what was only measured
				}
			}
			if err := s.settle(); err != nil {
				return nil, err
			}
			rate, _, err := rig.Repeat(ctx, s.duration, n, func(i, k int) error { return clients[i](k) })
			return []float64{rate}, err
		},
	}
}

// perSecond is how many of n there were since begin.
func perSecond(n float64, begin time.Time) float64 { return n / time.Since(begin).Seconds() }
