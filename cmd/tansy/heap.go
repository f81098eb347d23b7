package main

import (
	"context"
	"runtime/debug"
	"time"
)

// maxLent bounds what Go may take of the memory that the caches do not use yet, in bytes.
const maxLent = 64 << 20

// lendEvery is how often it is looked what that is.
const lendEvery = 100 * time.Millisecond

// lent is what Go may take beyond its limit, if the caches do not use so many bytes yet: half of it, as they
// go on filling up until the next look.
func lent(unused uint64) int64 { return int64(min(unused/2, maxLent)) }

// lendCaches lets Go have memory that the caches do not use yet, so that the garbage collector
// has less to do. It returns when they are full, or stop is done. limit is Go's without that.
func lendCaches(stop context.Context, limit int64, volumes []*volume) {
	t := time.NewTicker(lendEvery)
	defer t.Stop()
	used := make([]int, len(volumes)) // blocks, at the most: what was used stays with the cache
	last := int64(-1)
	for {
		unused := 0
		for i, v := range volumes {
			if v.fs != nil {
				j := v.fs.Stats().Journal
				used[i] = max(used[i], j.Cached)
				unused += max(0, j.CacheLimit-used[i])
			}
		}
		if n := lent(uint64(unused) << 12); n != last {
			debug.SetMemoryLimit(limit + n)
			last = n
		}
		select {
		case <-stop.Done():
			return
		case <-t.C:
		}
		if last == 0 {
			return
		}
	}
}
