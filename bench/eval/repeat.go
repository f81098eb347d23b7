//go:build linux

package main

import (
	"context"
	"errors"
	"sync"
	"time"
)

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
