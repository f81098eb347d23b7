package disk

import (
	"encoding/binary"
	"hash/maphash"
	"iter"
	"math/rand/v2"
	"slices"
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

// Hash is a hash of what reads see. Images with equal contents have equal ones.
func (s *Sim) Hash(seed maphash.Seed) uint64 {
	return s.HashOf(seed, func(_ uint64, data []byte) []byte { return data })
}

// HashOf is a hash of what counts of what reads see: of each block that is not all zeros, by its address and contents,
// what the function returns of it; nil: nothing.
func (s *Sim) HashOf(seed maphash.Seed, counts func(a uint64, data []byte) []byte) (sum uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var place [8]byte
	zeros := new([BlockSize]byte)
	for a, h := range s.blocks {
		data := h.latest()
		if data == nil || *data == *zeros {
			continue
		}
		if part := counts(a, data[:]); part != nil {
			binary.LittleEndian.PutUint64(place[:], a)
			sum += maphash.Bytes(seed, part) * (maphash.Bytes(seed, place[:]) | 1) // whatever the order
		}
	}
	return sum
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
	c := newSim(s.size)
	for a, h := range s.blocks {
		if len(h.pending) == 0 && h.durable != nil {
			c.blocks[a] = &history{durable: h.durable}
		}
	}
	for _, a := range s.pending() {
		c.blocks[a] = &history{durable: s.blocks[a].outcome(a, choose)}
	}
	return c
}

func (h *history) outcome(a uint64, choose Choice) *[BlockSize]byte {
	n := len(h.pending)
	if i := choose(a, -1, n); i != Torn {
		return h.value(i)
	}
	mixed := new([BlockSize]byte)
	for sector := range BlockSize / SectorSize {
		lo, hi := sector*SectorSize, (sector+1)*SectorSize
		if data := h.value(choose(a, sector, n)); data != nil {
			copy(mixed[lo:hi], data[lo:hi])
		}
	}
	return mixed
}

// value is what Choice calls i.
func (h *history) value(i int) *[BlockSize]byte {
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
