package rig

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Repeat has n clients i do once(i, 0), once(i, 1) ... each, side by side, until d is over, and returns how many there
// were, and how many per second.
func Repeat(ctx context.Context, d time.Duration, n int, once func(i, k int) error) (rate, count float64, err error) {
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
		count += float64(c)
	}
	return count / took, count, errors.Join(append(errs, ctx.Err())...)
}
