package disk

import (
	"hash/maphash"
	"iter"
	"math/rand/v2"
	"slices"
	"sync/atomic"
)

// Pending are the blocks that a crash now could leave in more than one state,
// in address order.
func (s *Sim) Pending() []uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pending()
}

func (s *Sim) pending() []uint64 {
	var as []uint64
	for a, h := range s.blocks {
		if len(h.pending) > 0 {
			as = append(as, a)
		}
	}
	slices.Sort(as)
	return as
}

// Varying are the blocks in which crash images of the recording may differ, in address order: those that were written
// since it began, or were not durable then.
func (s *Sim) Varying() []uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	as := s.base.pending()
	for _, e := range s.record {
		for i := range e.versions {
			as = append(as, e.a+uint64(i))
		}
	}
	slices.Sort(as)
	return slices.Compact(as)
}

// Content is what a block holds. It never changes.
type Content struct {
	data [BlockSize]byte
	sum  atomic.Uint64 // 0: not known yet
}

// sums are of this process alone.
var sums = maphash.MakeSeed()

// Data are the bytes of a block, which nobody may change.
func (c *Content) Data() []byte { return c.data[:] }

// Sum is a hash of the block, the same for equal ones in the life of the process. It is 0 for zeros alone.
func (c *Content) Sum() uint64 {
	if c == nil {
		return 0
	}
	if x := c.sum.Load(); x != 0 {
		return x
	}
	if isZero(c.data[:]) {
		return 0
	}
	x := max(maphash.Bytes(sums, c.data[:]), 1)
	c.sum.Store(x)
	return x
}

// Content is what a read of block a sees; nil: zeros.
func (s *Sim) Content(a uint64) *Content {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.latest(a)
}

// Contents are all blocks that a read may see as anything but zeros, in any order. The device must not be used
// meanwhile.
func (s *Sim) Contents() iter.Seq2[uint64, *Content] {
	return func(yield func(uint64, *Content) bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for a, h := range s.blocks {
			if c := h.latest(); c != nil && !yield(a, c) {
				return
			}
		}
	}
}

// A Choice decides what a crash leaves of block a, in sector number sector of SectorSize bytes. 0 is the durable value,
// versions is the newest one, and numbers between are older writes. With sector < 0 it decides for the whole block. If
// it returns Torn there, it is asked again for each sector.
type Choice func(a uint64, sector, versions int) int

// Torn, returned by a Choice for a whole block, asks for each sector by itself.
const Torn = -1

// Crash returns the machine after a crash with the outcome that choose picks, which is asked in the order of addresses.
// The result is a new device with no operations yet, and all of it is durable. s stays as it is. A crash within
// recovery is a crash of the result.
func (s *Sim) Crash(choose Choice) *Sim {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.like()
	all := make([]history, 0, len(s.blocks))
	keep := func(a uint64, x *Content) {
		all = append(all, history{durable: x})
		c.blocks[a] = &all[len(all)-1]
	}
	for a, h := range s.blocks {
		if len(h.pending) == 0 && h.durable != nil {
			keep(a, h.durable)
		}
	}
	for _, a := range s.pending() {
		keep(a, s.blocks[a].outcome(a, choose))
	}
	return c
}

func (h *history) outcome(a uint64, choose Choice) *Content {
	n := len(h.pending)
	if i := choose(a, -1, n); i != Torn {
		return h.value(i)
	}
	mixed := new(Content)
	for sector := range BlockSize / SectorSize {
		lo, hi := sector*SectorSize, (sector+1)*SectorSize
		if c := h.value(choose(a, sector, n)); c != nil {
			copy(mixed.data[lo:hi], c.data[lo:hi])
		}
	}
	return mixed
}

// value is what Choice calls i.
func (h *history) value(i int) *Content {
	if i == 0 {
		return h.durable
	}
	return h.pending[i-1].data
}

// LoseAll is the Choice of a device that had written nothing since its barrier.
func LoseAll(_ uint64, _, _ int) int { return 0 }

// KeepAll is the Choice of a device that had written everything.
func KeepAll(_ uint64, _, versions int) int { return versions }

// RandomChoice picks the value of each block at random. Every call draws a new bias, so that nearly all or nearly
// nothing survives as often as something between. With torn, some blocks are mixtures of sectors.
func RandomChoice(r *rand.Rand, torn bool) Choice {
	keep := []float64{0.5, 0.5, 0.1, 0.9}[r.IntN(4)]
	tear := 0.0
	if torn {
		tear = []float64{0, 0.05, 0.5}[r.IntN(3)]
	}
	return func(_ uint64, sector, versions int) int {
		if sector < 0 && r.Float64() < tear {
			return Torn
		}
		switch {
		case r.Float64() >= keep:
			return 0
		case versions == 1 || r.IntN(2) == 0:
			return versions
		default:
			return 1 + r.IntN(versions-1)
		}
	}
}

// Crashes enumerates outcomes of a crash now: all of them if there are at most
// limit, else limit of them. These are then nothing lost, all lost, and random
// picks by seed. Torn blocks come only as random picks, in addition to the whole
// ones, up to limit. The same state, limit and seed give the same images.
func (s *Sim) Crashes(limit int, seed uint64, torn bool) iter.Seq[*Sim] {
	return func(yield func(*Sim) bool) {
		s.mu.Lock()
		frozen := s.copy() // one moment for all images
		s.mu.Unlock()
		r := rand.New(rand.NewPCG(seed, 0))
		as := frozen.pending()
		n := 0
		if whole := frozen.outcomes(as, limit); whole <= limit {
			for n = 0; n < whole; n++ {
				if !yield(frozen.Crash(frozen.numbered(as, n))) {
					return
				}
			}
			if !torn || len(as) == 0 {
				return
			}
		} else {
			for _, c := range []Choice{KeepAll, LoseAll} {
				if n++; n > limit || !yield(frozen.Crash(c)) {
					return
				}
			}
		}
		for ; n < limit; n++ {
			if !yield(frozen.Crash(RandomChoice(r, torn))) {
				return
			}
		}
	}
}

// outcomes is the number of crash images without torn blocks, or limit+1 if
// there are more than limit.
func (s *Sim) outcomes(as []uint64, limit int) int {
	n := 1
	for _, a := range as {
		n *= len(s.blocks[a].pending) + 1
		if n > limit {
			return limit + 1
		}
	}
	return n
}

// numbered is the n-th choice, in a mixed-radix count over the pending blocks.
func (s *Sim) numbered(as []uint64, n int) Choice {
	pick := map[uint64]int{}
	for _, a := range as {
		radix := len(s.blocks[a].pending) + 1
		pick[a] = n % radix
		n /= radix
	}
	return func(a uint64, _, _ int) int { return pick[a] }
}
