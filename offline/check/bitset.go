package check

import (
	"maps"
	"math/bits"
	"slices"
)

const pageBits = 1 << 15 // as many as a bitmap block of the volume has

// bitset is a set of numbers below a limit. It takes memory only where it has
// members, 4 KiB for each 32768 numbers.
type bitset struct {
	limit  uint64
	pages  map[uint64]*[pageBits / 64]uint64
	sorted []uint64 // the keys of pages, when next asked for them; nil: not known
	n      uint64   // members
}

func newBitset(limit uint64) *bitset {
	return &bitset{limit: limit, pages: map[uint64]*[pageBits / 64]uint64{}}
}

// page is the page of x, made if it is missing.
func (s *bitset) page(x uint64) *[pageBits / 64]uint64 {
	p := s.pages[x/pageBits]
	if p == nil {
		p = new([pageBits / 64]uint64)
		s.pages[x/pageBits] = p
		s.sorted = nil
	}
	return p
}

// add says whether x was not a member yet. x must be below the limit.
func (s *bitset) add(x uint64) bool {
	w, m := &s.page(x)[x%pageBits/64], uint64(1)<<(x%64)
	if *w&m != 0 {
		return false
	}
	*w |= m
	s.n++
	return true
}

// addWord adds the members from x on, a multiple of 64, that are set in w.
func (s *bitset) addWord(x, w uint64) {
	if w != 0 {
		p := &s.page(x)[x%pageBits/64]
		s.n += uint64(bits.OnesCount64(w &^ *p))
		*p |= w
	}
}

func (s *bitset) has(x uint64) bool {
	p := s.pages[x/pageBits]
	return p != nil && p[x%pageBits/64]>>(x%64)&1 != 0
}

// word is the 64 members from x on, a multiple of 64.
func (s *bitset) word(x uint64) uint64 {
	p := s.pages[x/pageBits]
	if p == nil {
		return 0
	}
	return p[x%pageBits/64]
}

// next is the first member at or behind x; ok: there is one.
func (s *bitset) next(x uint64) (first uint64, ok bool) {
	if s.sorted == nil {
		s.sorted = slices.Sorted(maps.Keys(s.pages))
	}
	i, _ := slices.BinarySearch(s.sorted, x/pageBits)
	for ; i < len(s.sorted); i++ {
		base := s.sorted[i] * pageBits
		from := max(x, base) - base
		for w := from / 64; w < pageBits/64; w++ {
			m := s.pages[s.sorted[i]][w]
			if w == from/64 {
				m &= ^uint64(0) << (from % 64)
			}
			if m != 0 {
				return base + 64*w + uint64(bits.TrailingZeros64(m)), true
			}
		}
	}
	return 0, false
}

// nextBlock is the first block at or behind a that stands for a member, when blocks
// from start on stand for per members each.
func (s *bitset) nextBlock(a, start, per uint64) uint64 {
	if x, ok := s.next((a - start) * per); ok {
		return start + x/per
	}
	return ^uint64(0)
}

// bitRuns calls f for each run [from, to) of set bits among the 64 of w, which
// stand for the numbers from base on.
func bitRuns(w, base uint64, f func(from, to uint64)) {
	for at := uint64(0); w != 0; {
		skip := uint64(bits.TrailingZeros64(w))
		w >>= skip
		n := uint64(bits.TrailingZeros64(^w))
		f(base+at+skip, base+at+skip+n)
		at += skip + n
		if n == 64 {
			return
		}
		w >>= n
	}
}
