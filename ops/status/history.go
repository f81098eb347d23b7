package status

import (
	"sync"
	"time"

	"tansy/disk"
	"tansy/nfs/oncrpc"
)

// How much history is kept.
const (
	sampleEvery = 2 * time.Second
	maxSamples  = 300 // points of the plots: ten minutes
	maxShots    = 31  // all numbers of the last minute
	clientShots = 5   // the rates of clients are over so many samples
)

// shot is all numbers at a time.
type shot struct {
	at     time.Time
	rpc    oncrpc.Stats
	device disk.Counts // of all volumes
}

func take(from *Sources, at time.Time) shot {
	s := shot{at: at, rpc: from.RPC()}
	for _, v := range from.Volumes {
		if v.open() {
			s.device = s.device.Plus(v.Device())
		}
	}
	return s
}

// history is the shots of the last minute, and what happened between two of them for longer.
type history struct {
	mu      sync.Mutex
	shots   []shot // oldest first
	samples []Sample
}

// A Sample is what happened between two looks, per second but for the latencies.
type Sample struct {
	Time     int64   `json:"t"` // seconds since 1970, of its end
	Calls    float64 `json:"calls"`
	Errors   float64 `json:"errors"`
	Received float64 `json:"received"` // bytes
	Sent     float64 `json:"sent"`     // bytes
	P50      float64 `json:"p50"`      // seconds
	P99      float64 `json:"p99"`      // seconds
	Barriers float64 `json:"barriers"`
	Written  float64 `json:"written"` // bytes to the device
	Conns    int     `json:"connections"`
}

// add notes a shot.
func (h *history) add(s shot) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := len(h.shots); n > 0 {
		h.samples = last(append(h.samples, between(&h.shots[n-1], &s)), maxSamples)
	}
	h.shots = last(append(h.shots, s), maxShots)
	if n := len(h.shots); n > clientShots+1 {
		h.shots[n-clientShots-2].rpc.Conns = nil // these may be many
	}
}

// last returns the last n of s, without growing what is behind it for ever.
func last[T any](s []T, n int) []T {
	if len(s) > n {
		return append(s[:0], s[len(s)-n:]...)
	}
	return s
}

// before returns the shot n samples before the last, or the oldest. The caller has h.mu.
func (h *history) before(n int) *shot { return &h.shots[max(0, len(h.shots)-1-n)] }

// per returns how much a counter grew in a second. One that went down began anew.
func per(a, b uint64, seconds float64) float64 {
	if b < a || seconds <= 0 {
		return 0
	}
	return float64(b-a) / seconds
}

// between returns what happened between two shots.
func between(a, b *shot) Sample {
	seconds := b.at.Sub(a.at).Seconds()
	var all oncrpc.ProcStats
	s := Sample{
		Time: b.at.Unix(), Conns: len(b.rpc.Conns),
		Received: per(a.rpc.Received, b.rpc.Received, seconds), Sent: per(a.rpc.Sent, b.rpc.Sent, seconds),
		Barriers: per(a.device.Barriers, b.device.Barriers, seconds),
		Written:  disk.BlockSize * per(a.device.WrittenBlocks, b.device.WrittenBlocks, seconds),
	}
	for i := range b.rpc.Procs {
		d := since(a, b, i)
		all.Calls += d.Calls
		all.Errors += d.Errors
		for k, n := range d.Latency {
			all.Latency[k] += n
		}
	}
	s.Calls, s.Errors = per(0, all.Calls, seconds), per(0, all.Errors, seconds)
	s.P50, s.P99 = quantile(&all.Latency, 0.5), quantile(&all.Latency, 0.99)
	return s
}

// since returns what became of procedure i from a to b.
func since(a, b *shot, i int) oncrpc.ProcStats {
	x, d := &a.rpc.Procs[i], b.rpc.Procs[i]
	d.Calls -= x.Calls
	d.Errors -= min(d.Errors, x.Errors)
	for k := range d.Latency {
		d.Latency[k] -= x.Latency[k]
	}
	return d
}

// quantile estimates the latency in seconds that a part q of the calls did not exceed; 0 if
// there were none. It is exact to a factor of two.
func quantile(buckets *[oncrpc.LatencyBuckets]uint64, q float64) float64 {
	total := uint64(0)
	for _, n := range buckets {
		total += n
	}
	left := q * float64(total)
	for i, n := range buckets {
		if n == 0 || float64(n) < left {
			left -= float64(n)
			continue
		}
		if i == len(buckets)-1 {
			break
		}
		low := 0.0
		if i > 0 {
			low = oncrpc.LatencyBound(i - 1).Seconds()
		}
		return low + (oncrpc.LatencyBound(i).Seconds()-low)*left/float64(n)
	}
	if total == 0 {
		return 0
	}
	return oncrpc.LatencyBound(len(buckets) - 2).Seconds()
}
