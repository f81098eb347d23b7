package dtxn

import (
	"fmt"
	"maps"
	"slices"

	"tansy/journal"
)

// Free blocks whose room is being given back. While somebody writes zeros to them, and until these are
// home, they are held: handed out only when there are no others. For a block written that way
// would be written again only after an installation. While they are held, and no longer, zeros that are written to
// them need not take room: what is handed out has been given room before.

// Piece is the number of blocks by which it is remembered where some were freed. It divides windowBits.
const Piece = 1024

// Freed returns the pieces in which transactions that committed have freed blocks since the last call, in
// order; piece p is the blocks from Piece*p on. The first call begins to remember.
func (s *System) Freed() []uint64 {
	a := s.alloc[Blocks]
	a.mu.Lock()
	defer a.mu.Unlock()
	ps := slices.Sorted(maps.Keys(a.pieces))
	a.pieces = map[uint64]struct{}{}
	return ps
}

// A Run is the blocks from Start up to End, which is not among them.
type Run struct{ Start, End uint64 }

// Hold holds the free blocks of a piece that lie in runs of min or more, and returns these runs.
func (s *System) Hold(piece, min uint64) ([]Run, error) {
	if err := s.Enter(); err != nil {
		return nil, err
	}
	defer s.Leave()
	return s.alloc[Blocks].hold(piece*Piece, min, func(r Run) { s.j.Spare(s.base+r.Start, r.End-r.Start) })
}

// Held is the number of blocks that are held. It falls to 0 when somebody else wants them.
func (s *System) Held() int {
	a := s.alloc[Blocks]
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.holding()
}

// holding is Held for a caller that holds mu.
func (a *alloc) holding() (n int) {
	for _, r := range a.held {
		n += int(r.End - r.Start)
	}
	return n
}

// LetGo gives back all that is held. None of it loses its room after that.
func (s *System) LetGo() {
	a := s.alloc[Blocks]
	a.mu.Lock()
	defer a.mu.Unlock()
	a.yield()
}

// Spared is journal.Journal's.
func (s *System) Spared() (cannot bool, kept uint64) { return s.j.Spared() }

// Discarded is the number of blocks that were given back.
func (s *System) Discarded() uint64 { return s.j.Discarded() }

// Written is journal.Journal's.
func (s *System) Written(b, end uint64) (lo, hi uint64) {
	lo, hi = s.j.Written(s.base+b, s.base+end)
	return lo - s.base, hi - s.base
}

// Position is how far the journal is.
func (s *System) Position() journal.Position { return s.j.Position() }

// Settle brings everything committed so far home.
func (s *System) Settle() error {
	if err := s.j.Settle(); err == ErrClosed {
		return err
	} else if err != nil {
		return fmt.Errorf("%w: %w", ErrIO, err)
	}
	return nil
}

// MayWrite makes room on the host for what changes with the contents of a run of blocks: their codes.
func (s *System) MayWrite(r Run) error {
	if s.layout.Host == nil {
		return nil
	}
	for a := r.Start; a < r.End; a++ {
		if err := s.reserveBeside(a); err != nil {
			return err
		}
	}
	return nil
}

// hold holds the free bits of the piece that begins with bit lo, and calls spare for each run of them.
func (a *alloc) hold(lo, min uint64, spare func(Run)) (runs []Run, err error) {
	hi := lo + Piece
	if lo < a.first {
		lo = a.first
	}
	if end := a.end.Load(); hi > end {
		hi = end
	}
	if lo >= hi {
		return nil, nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	w := lo / windowBits
	win := a.win[w]
	if win == nil {
		if win, err = a.reload(w); err != nil {
			return nil, err
		}
	}
	for x := lo; x < hi; {
		start := x
		for x < hi && win.bits[x%windowBits/64]>>(x%64)&1 == 0 {
			x++
		}
		if x-start >= min {
			runs = append(runs, Run{start, x})
		}
		x++
	}
	for _, r := range runs {
		for x := r.Start; x < r.End; x++ {
			win.bits[x%windowBits/64] |= 1 << (x % 64)
		}
		win.held = true
		a.held = append(a.held, r)
		spare(r)
	}
	return runs, nil
}

// yield gives back what is held; false: nothing is. No transaction has changed it meanwhile, as none was handed any of
// it. The caller holds mu.
func (a *alloc) yield() bool {
	if len(a.held) == 0 {
		return false
	}
	a.unspare()
	a.back++
	for _, r := range a.held {
		win := a.win[r.Start/windowBits] // a run lies in one
		for x := r.Start; x < r.End; x++ {
			win.bits[x%windowBits/64] &^= 1 << (x % 64)
		}
		win.held = false
	}
	a.held = nil
	return true
}
