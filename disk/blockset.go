package disk

import (
	"iter"
	"math/bits"
)

// blockSet is a set of blocks: a bit for each, in pieces, of which those that are empty or full take no room. Its
// methods may not be called concurrently.
type blockSet struct {
	size   uint64      // the blocks are those below it
	pieces []*setPiece // nil: none of its blocks; full: all of them
}

// setPiece is the bits of setBlocks blocks.
type setPiece [setBlocks / 64]uint64

// setBlocks is the number of blocks of a piece.
const setBlocks = 8 * BlockSize

// full is the piece with all blocks. It is never written.
var full = func() *setPiece {
	p := new(setPiece)
	for i := range p {
		p[i] = ^uint64(0)
	}
	return p
}()

// newBlockSet is an empty set of blocks below size.
func newBlockSet(size uint64) blockSet {
	return blockSet{size, make([]*setPiece, (size+setBlocks-1)/setBlocks)}
}

// has tells whether block a is in the set.
func (s *blockSet) has(a uint64) bool {
	p := s.pieces[a/setBlocks]
	return p != nil && p[a%setBlocks/64]>>(a%64)&1 == 1
}

// add puts the blocks from a on before end into the set.
func (s *blockSet) add(a, end uint64) {
	s.each(a, end, func(p **setPiece, lo, hi uint64) {
		if lo == 0 && hi == setBlocks {
			*p = full
			return
		}
		if *p == full {
			return
		}
		if *p == nil {
			*p = new(setPiece)
		}
		for w := range words(lo, hi) {
			(*p)[w.at] |= w.mask
		}
	})
}

// drop takes the blocks from a on before end out of the set.
func (s *blockSet) drop(a, end uint64) {
	s.each(a, end, func(p **setPiece, lo, hi uint64) {
		if lo == 0 && hi == setBlocks {
			*p = nil
			return
		}
		if *p == nil {
			return
		}
		if *p == full {
			own := *full
			*p = &own
		}
		for w := range words(lo, hi) {
			(*p)[w.at] &^= w.mask
		}
	})
}

// each calls f for each piece of the blocks from a on before end, with the bits of them that it has: from lo on before
// hi. The last piece counts as whole if its last block is among them.
func (s *blockSet) each(a, end uint64, f func(p **setPiece, lo, hi uint64)) {
	for end = min(end, s.size); a < end; {
		i := a / setBlocks
		hi := min(end, (i+1)*setBlocks)
		last := hi - i*setBlocks
		if hi == s.size {
			last = setBlocks
		}
		f(&s.pieces[i], a%setBlocks, last)
		a = hi
	}
}

// setWord is bits of one word of a piece.
type setWord struct {
	at   uint64
	mask uint64
}

// words yields the bits from lo on before hi of a piece, word by word.
func words(lo, hi uint64) iter.Seq[setWord] {
	return func(yield func(setWord) bool) {
		for lo < hi {
			stop := min(hi, (lo/64+1)*64)
			mask := ^uint64(0) << (lo % 64)
			if stop%64 != 0 {
				mask &= 1<<(stop%64) - 1
			}
			if !yield(setWord{lo / 64, mask}) {
				return
			}
			lo = stop
		}
	}
}

// next is the first block at or behind a that is in the set (in: true) or is not, or end if there is none before it. It
// looks no further, and end is at most size: a set of a large device takes long to look through.
func (s *blockSet) next(a, end uint64, in bool) uint64 {
	for a < end {
		p := s.pieces[a/setBlocks]
		if p == nil && in || p == full && !in {
			a = (a/setBlocks + 1) * setBlocks
			continue
		}
		if p == nil || p == full {
			return a
		}
		w := p[a%setBlocks/64]
		if !in {
			w = ^w
		}
		if w &= ^uint64(0) << (a % 64); w != 0 {
			return min(a/64*64+uint64(bits.TrailingZeros64(w)), end)
		}
		a = (a/64 + 1) * 64
	}
	return end
}
