package load

import (
	"math/bits"
	"time"
)

// Histogram counts durations, each to within a thirtieth of itself.
type Histogram struct {
	counts [64 * perOctave]uint64
	n      uint64
	max    time.Duration
}

// perOctave is into how many classes durations between a power of two and the next fall.
const perOctave = 32

// class is where d is counted.
func class(d time.Duration) int {
	n := uint64(max(d, 0))
	if n < perOctave {
		return int(n)
	}
	shift := bits.Len64(n) - bits.Len64(perOctave)
	return (shift+1)*perOctave + int(n>>shift) - perOctave
}

// least is the shortest duration of a class.
func least(class int) time.Duration {
	if class < perOctave {
		return time.Duration(class)
	}
	shift := class/perOctave - 1
	return time.Duration(class%perOctave+perOctave) << shift
}

// Add counts d.
func (h *Histogram) Add(d time.Duration) {
	h.counts[class(d)]++
	h.n++
	h.max = max(h.max, d)
}

// Merge adds all that other has counted.
func (h *Histogram) Merge(other *Histogram) {
	for i, n := range other.counts {
		h.counts[i] += n
	}
	h.n += other.n
	h.max = max(h.max, other.max)
}

// Quantile is the duration that a share q of all, such as 0.99, did not exceed, as exactly as they are counted. It is 0
// if there are none.
func (h *Histogram) Quantile(q float64) time.Duration {
	if h.n == 0 {
		return 0
	}
	rank := min(uint64(q*float64(h.n)), h.n-1)
	for i, n := range h.counts {
		if rank < n {
			return min(least(i+1)-1, h.max)
		}
		rank -= n
	}
	return h.max
}
