package check

import "math/bits"

const pageBits = 1 << 15 // as many as a bitmap block of the volume has

// bitset is a set of numbers below a limit. It takes memory only where it has
// members, 4 KiB for each 32768 numbers.
type bitset struct {
	limit uint64
	pages map[uint64]*[pageBits / 64]uint64
	n     uint64 // members
}

func newBitset(limit uint64) *bitset {
	return &bitset{limit: limit, pages: map[uint64]*[pageBits / 64]uint64{}}
}

// add says whether x was not a member yet. x must be below the limit.
func (s *bitset) add(x uint64) bool {
	p := s.pages[x/pageBits]
	if p == nil {
		p = new([pageBits / 64]uint64)
		s.pages[x/pageBits] = p
	}
	w, m := &p[x%pageBits/64], uint64(1)<<(x%64)
	if *w&m != 0 {
		return false
	}
	*w |= m
	s.n++
	return true
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
