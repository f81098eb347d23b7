//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"tansy/bench/internal/figures"
)

// sideBySide is an experiment with n clients, who do something again and again in a folder of their own. What prepare returns is closed in the end, if
// it is not nil.
func sideBySide(what string, n int, prepare func(folder string) (once func(k int) error, end io.Closer, err error)) experiment {
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
			rate, err := repeat(ctx, s.duration, n, func(i, k int) error { return clients[i](k) })
			return []float64{rate}, err
		},
	}
}

// repeat has n clients do once(i, 0), once(i, 1) ... each, side by side, until d is over, and returns how many there were per second.
func repeat(ctx context.Context, d time.Duration, n int, once func(i, k int) error) (rate float64, err error) {
	counts, errs := make([]int, n), make([]error, n)
	var clients sync.WaitGroup
	begin := time.Now()
	for i := range n {
		clients.Go(func() {
			for time.Since(begin) < d && ctx.Err() == nil && errs[i] == nil {
				if errs[i] = once(i, counts[i]); errs[i] == nil {
					counts[i]++
				}
			}
		})
	}
	clients.Wait()
	took := time.Since(begin).Seconds()
	for _, c := range counts {
		rate += float64(c) / took
	}
	return rate, errors.Join(append(errs, ctx.Err())...)
}

// perSecond is how many of n there were since begin.
func perSecond(n float64, begin time.Time) float64 { return n / time.Since(begin).Seconds() }
