package dtxn

import "math/bits"

// Files that grow side by side would lie between each other, in pieces as large as a WRITE. So a file that has got some
// blocks has the bits behind its last one set aside, the more, the more it has got: nobody else gets these as long as
// there are others. They come back when other files grow, and this one has not for longer than those.
//
// The WRITEs of a file that are under way together come in any order. So its blocks have their places on a line, and
// what is skipped is set aside until it comes. Where the line comes up against what is another's, the file goes on
// elsewhere, and what is late still finds its place on the line that was before.

const (
	maxStreams  = 256
	streamIdle  = 16 * 16 * maxStreams // ticks of a.use, one or two for each bit, since one grew: nobody needs it
	streamLeast = 8                    // bits that are taken before some are set aside
	streamMost  = 1024                 // bits that are set aside at a time, at most; a multiple of 64

	reach = 2 * streamMost // how far the first and the last bit that are set aside lie from each other, at most

	narrow = windowBits / 8 // a window with fewer clear bits is left alone, if that holds for the next one, too
)

// A stream is the growth of one file.
type stream struct {
	owner     uint64             // the key of its inode; 0: nobody's
	former    bool               // the owner has gone on elsewhere
	base, end uint64             // what is set aside lies in [base, end), which is no more than reach
	aside     [reach / 64]uint64 // bit x is: bit x%reach
	last, at  uint64             // the bit handed out last, and where on the line it is
	taken     uint64             // bits, ever
	used      uint64             // when: a.use
}

func (s *stream) has(x uint64) bool {
	return s.base <= x && x < s.end && s.aside[x%reach/64]>>(x%64)&1 != 0
}

// first is the first bit that is set aside; ok is false if none is.
func (s *stream) first() (x uint64, ok bool) {
	for x = s.base; x < s.end; x = x&^63 + 64 {
		if v := s.aside[x%reach/64] >> (x % 64); v != 0 {
			x += uint64(bits.TrailingZeros64(v))
			return x, x < s.end
		}
	}
	return 0, false
}

// before is how much of the line comes before that place, and behind its end; less than none if the place is not behind
// that.
func (s *stream) before(at uint64) uint64 { return at - s.at - (s.end - s.last) }

// lies is where that place on the line is.
func (s *stream) lies(at uint64) (x uint64) { return s.last + at - s.at }

func (s *stream) keep(x uint64) { s.aside[x%reach/64] |= 1 << (x % 64) }
func (s *stream) drop(x uint64) { s.aside[x%reach/64] &^= 1 << (x % 64) }

// A place is what a bit is wanted for.
type place struct {
	owner uint64 // the key of an inode, or 0
	near  uint64 // behind this bit, if the owner has got none; 0: anywhere
	at    uint64 // on the line, or of a block in the place of another, which it is in the file,
	known bool   // if it is one of those
}

// onLine is where on the line of a file its block n lies, or with leads the indirect block that refers to that. On it
// all come as they do in the file, indirect blocks before what they lead to (verified/fs/blocks/positions.dfy).
func onLine(n uint64, leads bool) uint64 {
	const direct, single, double = 12, 12 + 512, 12 + 512 + 512*512
	if n < direct {
		return n
	}
	if leads {
		n -= (n - direct) % 512
	}
	at := n + (n-direct)/512 + 1
	if n >= single {
		at++
	}
	if n >= double {
		at += (n-double)/(512*512) + 2
	}
	if leads {
		at--
	}
	return at
}

// takeFor is take for a file. WRITEs side by side come in any order: each block of the file has its place on a line
// with the others.
func (a *alloc) takeFor(p place) (x uint64, ok bool, err error) {
	if p.owner == 0 || a.none() {
		return a.take(p.near)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.stream(p.owner)
	if p.known && s.taken > 0 {
		s, x, ok = a.onLines(s, p.at)
	}
	if !ok && (!p.known || s.before(p.at)+reach >= reach+streamMost) { // who writes here and there lets all lie together
		x, ok = s.first()
	}
	if !ok {
		if s, x, ok, err = a.move(s, p); !ok {
			return 0, false, err
		}
	}
	s.drop(x)
	s.taken++
	a.use++ // also for what was set aside
	s.used = a.use
	if !p.known {
		p.at = s.at + x - s.last
	}
	s.last, s.at = x, p.at
	if x+1 >= s.end {
		a.reach(s, x+1)
		if s.taken >= streamLeast && !s.former {
			a.setAside(s, min(s.taken*s.taken/64, streamMost))
		}
	}
	return x, true, nil
}

// onLines finds the bit that has the place at on the line of s, or on another one that its owner has had. If there is
// none, it returns s. The caller holds mu.
func (a *alloc) onLines(s *stream, at uint64) (_ *stream, x uint64, ok bool) {
	if x = s.lies(at); x > s.end && x-s.end < streamMost {
		a.setAside(s, x-s.end+1)
	}
	if s.has(x) || x <= s.end && s.end-x <= reach && a.mark(x) {
		return s, x, true
	}
	for i := range a.streams {
		if f := &a.streams[i]; f.owner == s.owner && f.former {
			if x = f.lies(at); f.has(x) || x == f.end && a.mark(x) {
				return f, x, true
			}
		}
	}
	return s, 0, false
}

// mark hands out bit x, if it is clear. The caller holds mu.
func (a *alloc) mark(x uint64) bool {
	if !a.isClear(x) {
		return false
	}
	w, i := x/windowBits, x%windowBits
	a.win[w].bits[i/64] |= 1 << (i % 64)
	a.win[w].out[i] = 0
	a.found(w, a.win[w], i)
	return true
}

// move has the owner of s go on with another line, and finds the bit for p there. The caller holds mu.
func (a *alloc) move(s *stream, p place) (_ *stream, x uint64, ok bool, err error) {
	if s.taken > 0 {
		p.near = s.last
	}
	if s.taken >= streamMost/8 && !a.isClear(p.near+1) {
		x, ok, err = a.roomy(p.near)
	}
	if !ok && err == nil {
		x, ok, err = a.anywhere(p.near)
	}
	if !ok {
		return nil, 0, false, err
	}
	s = a.stream(p.owner) // mu may have been let go of
	before := uint64(0)   // of the line: what has no place yet
	if p.known {
		before = s.before(p.at)
	}
	if _, some := s.first(); some {
		taken := s.taken
		s.former = true
		s = a.another()
		s.owner, s.taken = p.owner, taken
	}
	s.base, s.end = x, x+1
	if 0 < before && before < streamMost {
		s.keep(x)
		if a.setAside(s, before); s.has(x + before) {
			x += before
		}
	}
	return s, x, true, nil
}

// stream is that which grows of the owner, a new one perhaps. The caller holds mu.
func (a *alloc) stream(owner uint64) *stream {
	for k := range a.streams {
		i := (a.recent + k) % maxStreams
		if s := &a.streams[i]; s.owner == owner && !s.former {
			a.recent = i
			return s
		}
	}
	s := a.another()
	s.owner = owner
	return s
}

// another is a stream for another line, in the place of one that nobody needs, or else of the oldest one. The caller
// holds mu.
func (a *alloc) another() *stream {
	older := func(f, than *stream) bool { return than == nil || f.used < than.used }
	if a.streams == nil {
		a.streams = make([]stream, maxStreams)
	}
	var oldest, former *stream
	for i := range a.streams {
		f := &a.streams[i]
		if f.owner == 0 {
			return f
		}
		if older(f, oldest) {
			oldest = f
		}
		if f.former && older(f, former) {
			former = f
		}
	}
	if former != nil && a.use-oldest.used <= streamIdle {
		oldest = former
	}
	a.forget(oldest)
	return oldest
}

// roomy takes the first of streamMost clear bits, the first ones behind near in its window, or of the next one. It may
// let go of mu in between. The caller holds it.
func (a *alloc) roomy(near uint64) (x uint64, ok bool, err error) {
	from := near%windowBits + 1
	for k := range min(2, uint64(len(a.free))) {
		w := (near/windowBits + k) % uint64(len(a.free))
		win := a.win[w]
		if win == nil {
			if win, err = a.reload(w); err != nil {
				return 0, false, err
			}
		}
		if lo, hi := a.within(w); a.free[w] >= narrow {
			if i, ok := win.room(max(lo, from), hi); ok {
				return a.found(w, win, i), true, nil
			}
		}
		from = 0
	}
	return 0, false, nil
}

// room takes the first of the first streamMost clear bits of window x in [lo, hi).
func (x *window) room(lo, hi uint64) (uint64, bool) {
	if i, ok := x.run(lo, hi, streamMost); ok {
		return x.find(i, hi)
	}
	return 0, false
}

// run is where the first n clear bits of window x in [lo, hi) begin, at a multiple of 64, as n is.
func (x *window) run(lo, hi, n uint64) (uint64, bool) {
	clear := uint64(0)
	for i := (lo + 63) &^ 63; i+64 <= hi; i += 64 {
		if clear += 64; x.bits[i/64] != 0 {
			clear = 0
		}
		if clear == n {
			return i + 64 - n, true
		}
	}
	return 0, false
}

// setAside sets the next n bits aside for s, if there is much room, up to one that another has. The caller holds mu.
func (a *alloc) setAside(s *stream, n uint64) {
	w := s.end / windowBits
	win := a.win[w]
	if win == nil || a.isNarrow(w) {
		return
	}
	_, hi := a.within(w)
	for range n {
		x := s.end
		i := x - w*windowBits
		if i >= hi || win.bits[i/64]>>(i%64)&1 != 0 {
			return
		}
		win.bits[i/64] |= 1 << (i % 64)
		win.out[i] = 0
		a.reach(s, x+1)
		s.keep(x)
	}
}

// isNarrow tells that there is little room in window w, and behind it. The caller holds mu.
func (a *alloc) isNarrow(w uint64) bool {
	few := func(w uint64) bool { return w >= uint64(len(a.free)) || 0 <= a.free[w] && a.free[w] < narrow }
	return few(w) && few(w+1)
}

// reach has what is set aside for s end there; what is too far behind comes back. The caller holds mu.
func (a *alloc) reach(s *stream, end uint64) {
	if end > reach && s.base < end-reach {
		a.comeBack(s, end-reach)
		s.base = end - reach
	}
	s.end = end
}

// comeBack gives back what is set aside for s before bit end, and tells if anything was. The caller holds mu.
func (a *alloc) comeBack(s *stream, end uint64) bool {
	var back []uint64
	for x, ok := s.first(); ok && x < end; x, ok = s.first() {
		s.drop(x)
		back = append(back, x)
	}
	a.ended(back, nil)
	return len(back) > 0
}

// forget ends a stream, and gives back what is set aside for it. The caller holds mu.
func (a *alloc) forget(s *stream) (some bool) {
	some = a.comeBack(s, s.end)
	*s = stream{}
	return some
}

// forgetAll ends all streams, and tells if anything was set aside. The caller holds mu.
func (a *alloc) forgetAll() (some bool) {
	for i := range a.streams {
		some = a.forget(&a.streams[i]) || some
	}
	return some
}

// rewind sets the bits that a transaction took for nothing aside for the streams again, as it most often comes again at
// once; it returns the other ones. The caller holds mu.
func (a *alloc) rewind(took []uint64) (others []uint64) {
next:
	for _, x := range took {
		for i := range a.streams {
			if s := &a.streams[i]; s.taken > 0 && s.base <= x && x < s.end {
				s.keep(x)
				s.taken--
				continue next
			}
		}
		others = append(others, x)
	}
	return others
}
