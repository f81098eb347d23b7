package main

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"

	tansyfs "tansy/fs"
)

// tune sets Go's run time up for a server whose memory, but for the caches, is limit bytes.
func tune(limit int64) {
	runtime.MemProfileRate = 8 << 20 // enough; each sample walks a stack, and buffers are large
	debug.SetMemoryLimit(limit)
	if os.Getenv("GOGC") == "" {
		// Up to that limit memory is there to be used. In a stream of large writes little is
		// alive: to collect whenever the heap has doubled would be a hundred times a second.
		debug.SetGCPercent(400)
	}
	if os.Getenv("GOMAXPROCS") == "" {
		// One more than there are CPUs for us: a thread that waits for the device keeps
		// its share of the scheduler for a while, and the others should not idle meanwhile.
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1)
	}
}

// maxLent bounds what Go may take of the memory that the caches do not use yet, in bytes.
const maxLent = 64 << 20

// balanceEvery is how often it is looked what that is.
const balanceEvery = 100 * time.Millisecond

// lent is what Go may take beyond its limit, if the caches do not use so many bytes yet: half of it, as they
// go on filling up until the next look.
func lent(unused uint64) int64 { return int64(min(unused/2, maxLent)) }

// balanceStep is the least change of Go's limit, in bytes: each stops all goroutines for a moment.
const balanceStep = 1 << 20

// perMoment is what Go needs for a moment of a volume, in bytes: its transactions, and the bits of blocks.
const perMoment = 16 << 20

// ofMoments is what Go may take beyond its limit for moments: there are none most of the time.
func ofMoments(m tansyfs.Moments) int64 { return int64(m.Open)*perMoment + int64(m.Memory) }

// balance shares limit, which is for all but the caches, between Go and what lies outside of its heap: the data of
// WRITEs that are not home yet. And it lets Go have memory that the caches do not use yet, so that the garbage
// collector has less to do; and what moments take, which nobody has counted. It returns when stop is done.
func balance(stop context.Context, limit int64, volumes []*volume) {
	t := time.NewTicker(balanceEvery)
	defer t.Stop()
	used := make([]int, len(volumes)) // blocks, at the most: what was used stays with the cache
	last := limit
	for {
		unused, moments := 0, int64(0)
		for i, v := range volumes {
			if v.fs != nil {
				j := v.fs.Stats().Journal
				used[i] = max(used[i], j.Cached)
				unused += max(0, j.CacheLimit-used[i])
				moments += ofMoments(v.fs.Moments())
			}
		}
		now := limit + lent(uint64(unused)<<12) - tansyfs.WriteMemory() + moments
		if now < last || now >= last+balanceStep {
			debug.SetMemoryLimit(now)
			last = now
		}
		select {
		case <-stop.Done():
			return
		case <-t.C:
		}
	}
}

// collector is the time that the garbage collector has had on the CPUs so far, in seconds, without what it took of idle
// ones; as of the last collection.
func collector() any {
	s := []metrics.Sample{{Name: "/cpu/classes/gc/total:cpu-seconds"}, {Name: "/cpu/classes/gc/mark/idle:cpu-seconds"}}
	metrics.Read(s)
	return s[0].Value.Float64() - s[1].Value.Float64()
}
