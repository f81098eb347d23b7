package dtxn

import "slices"

// Files that grow side by side would lie between each other, in pieces as large as a WRITE. So a file that has got some blocks has the bits
// behind its last one set aside, the more, the more it has got: nobody else gets these as long as there are others. They come back when
// other files grow, and this one has not for longer than those.

const (
	maxStreams  = 64
	streamLeast = 8   // bits that are taken before some are set aside
	streamMost  = 512 // bits that are set aside at a time, at most; a multiple of 64

	narrow = windowBits / 8 // a window with fewer clear bits is left alone
)

// A stream is the growth of one file.
type stream struct {
	owner     uint64 // the key of its inode; 0: nobody's
	next, end uint64 // [next, end) is set aside: handed out, as far as the window knows
	taken     uint64 // bits, ever
	used      uint64 // when: a.use
}

// takeFor is take for the file whose inode has that key.
func (a *alloc) takeFor(owner, near uint64) (x uint64, ok bool, err error) {
	if owner == 0 || a.first >= a.limit {
		return a.take(near)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.stream(owner)
	if s.next < s.end {
		x, ok = a.found(s.next/windowBits, a.win[s.next/windowBits], s.next%windowBits), true
	} else {
		if s.next != 0 {
			near = s.next - 1
		}
		if s.taken >= streamMost/8 && !a.isClear(near+1) {
			x, ok, err = a.roomy(near)
		}
		if !ok && err == nil {
			x, ok, err = a.anywhere(near)
		}
		if !ok {
			return 0, false, err
		}
		if s = a.stream(owner); s.next < s.end { // another has come meanwhile
			a.forget(s)
			s.owner = owner
		}
		s.end = 0
	}
	s.taken++
	s.used = a.use
	s.next = x + 1
	s.end = max(s.end, s.next)
	if s.next == s.end && s.taken >= streamLeast {
		a.setAside(s)
	}
	return x, true, nil
}

// stream is that of the owner, a new one perhaps. The caller holds mu.
func (a *alloc) stream(owner uint64) *stream {
	oldest := &a.streams[0]
	for i := range a.streams {
		s := &a.streams[i]
		if s.owner == owner {
			return s
		}
		if s.used < oldest.used {
			oldest = s
		}
	}
	a.forget(oldest)
	oldest.owner = owner
	return oldest
}

// roomy takes the first of streamMost clear bits, the first ones behind near in its window, or of the next one. It may let go of mu in between. The caller holds it.
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
	clear := uint64(0)
	for i := (lo + 63) &^ 63; i+64 <= hi; i += 64 {
		if clear += 64; x.bits[i/64] != 0 {
			clear = 0
		}
		if clear == streamMost {
			return x.find(i+64-streamMost, hi)
		}
	}
	return 0, false
}

// setAside sets bits aside for s, if there is much room. The caller holds mu.
func (a *alloc) setAside(s *stream) {
	w := s.end / windowBits
	win := a.win[w]
	if win == nil || a.free[w] < narrow {
		return
	}
	_, hi := a.within(w)
	for n := min(s.taken, streamMost); n > 0; n-- {
		i := s.end - w*windowBits
		if i >= hi || win.bits[i/64]>>(i%64)&1 != 0 {
			return
		}
		win.bits[i/64] |= 1 << (i % 64)
		win.out[i] = 0
		s.end++
	}
}

// forget ends a stream, and gives back what is set aside for it. The caller holds mu.
func (a *alloc) forget(s *stream) (some bool) {
	var back []uint64
	for x := s.next; x < s.end; x++ {
		back = append(back, x)
	}
	*s = stream{}
	a.ended(back, nil)
	return len(back) > 0
}

// forgetAll ends all streams, and tells if anything was set aside. The caller holds mu.
func (a *alloc) forgetAll() (some bool) {
	for i := range a.streams {
		some = a.forget(&a.streams[i]) || some
	}
	return some
}

// rewind has the streams from which a transaction took bits for nothing go on with these, which most often comes again at once; it returns the
// other ones. The caller holds mu.
func (a *alloc) rewind(took []uint64) []uint64 {
	for n := len(took); n > 0; n-- {
		i := slices.IndexFunc(a.streams[:], func(s stream) bool { return s.taken > 0 && s.next == took[n-1]+1 })
		if i < 0 {
			return took[:n]
		}
		a.streams[i].next--
		a.streams[i].taken--
	}
	return nil
}
