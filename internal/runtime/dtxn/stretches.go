package dtxn

// The WRITEs of a file that are under way together come in any order, and so would the blocks that take the places of
// others. So a file that is written over gets a stretch of bits for each piece, on which its blocks lie as they do in
// the file. (Indirect blocks stay where they are.) Where several are written over at a time, all go on behind each
// other: what a group of the log writes then lies together. With stretches of their own eight were 18 % slower.

const (
	stretchBits  = 256 // of a piece, and the bits for it; a multiple of 64
	maxStretches = 256 // so many pieces are remembered
)

// A piece is stretchBits blocks of a file.
type piece struct {
	owner uint64 // the key of an inode
	n     uint64
}

// A stretch is where a piece goes on that is written over.
type stretch struct {
	piece
	base, used uint64 // the first bit, or 0 if there is none yet; bits that were handed out
	rest       uint64 // so many blocks go without one: there was no room, or the piece is written here and there
}

// stretches are those of the pieces that were noted last.
type stretches struct {
	list []stretch // maxStretches of them, once a piece was noted
	of   map[piece]*stretch
	next int // in list: the one to be replaced

	owner uint64 // who was the last to want one,
	alone uint64 // and how often since another one did
}

// note remembers a piece that has no stretch yet, in the place of the one that was noted longest ago.
func (l *stretches) note(p piece) *stretch {
	if l.of == nil {
		l.of, l.list = map[piece]*stretch{}, make([]stretch, maxStretches)
	}
	s := &l.list[l.next%maxStretches]
	if l.of[s.piece] == s {
		delete(l.of, s.piece)
	}
	l.next++
	*s = stretch{piece: p}
	l.of[p] = s
	return s
}

// begins tells that a stretch begins at bit x: who has none must not run on into it.
func (l *stretches) begins(x uint64) bool {
	if x%64 != 0 {
		return false
	}
	for i := range l.list {
		if l.list[i].base == x {
			return true
		}
	}
	return false
}

// inOrder hands out the bit that has the place of p on its stretch. There is none if others are written over as well,
// nor if the file is not written in order, as far as one knows: if neither the piece before nor the one behind was. The
// caller holds mu, which may be let go of in between.
func (a *alloc) inOrder(p place) (x uint64, ok bool, err error) {
	if p.owner == 0 || !p.known {
		return 0, false, nil
	}
	if l := &a.stretches; l.owner != p.owner {
		l.owner, l.alone = p.owner, 0
	}
	a.stretches.alone++
	at := piece{p.owner, p.at / stretchBits}
	s := a.stretches.of[at]
	if s == nil {
		s = a.stretches.note(at)
	}
	if s.base != 0 {
		if x = s.base + p.at%stretchBits; a.mark(x) {
			s.used++
			return x, true, nil
		}
		// it was written over once more; if not much of it was, so much room for each would have all that is free gone
		// round fast
		if s.used < stretchBits/2 {
			s.rest = stretchBits
		}
		s.base, s.used = 0, 0
	}
	if s.rest > 0 {
		s.rest--
		return 0, false, nil
	}
	written := func(n uint64) bool { return a.stretches.of[piece{at.owner, n}] != nil }
	if a.stretches.alone < rotorRecent || !written(at.n-1) && !written(at.n+1) {
		return 0, false, nil
	}
	from := a.rotor(p.near)
	base, ok, err := a.clearRun(from)
	if err != nil {
		return 0, false, err
	}
	if s = a.stretches.of[at]; s == nil { // mu was let go of
		s = a.stretches.note(at)
	}
	if !ok {
		s.rest = stretchBits
		return 0, false, nil
	}
	a.turned(from, base+stretchBits-1)
	s.base, s.used = base, 0
	if x = base + p.at%stretchBits; !a.mark(x) {
		return 0, false, nil
	}
	s.used++
	return x, true, nil
}

// clearRun is the first of stretchBits clear bits behind from in its region, all around. The caller holds mu, which may
// be let go of in between.
func (a *alloc) clearRun(from uint64) (x uint64, ok bool, err error) {
	const windows = rotorSpan / windowBits
	if from >= a.end.Load() { // of a volume that is damaged, where there is room nowhere
		from = a.first
	}
	region := from / rotorSpan * windows
	n := min(windows, uint64(len(a.free))-region)
	for k := range n + 1 { // the window of from twice: at last before it
		w := region + (from/windowBits-region+k)%n
		win := a.win[w]
		if win == nil {
			if win, err = a.reload(w); err != nil {
				return 0, false, err
			}
		}
		lo, hi := a.within(w)
		if k == 0 {
			lo = max(lo, from%windowBits+1)
		}
		if i, ok := win.run(lo, hi, stretchBits); ok {
			return w*windowBits + i, true, nil
		}
	}
	return 0, false, nil
}
