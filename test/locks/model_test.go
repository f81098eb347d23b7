package locks

import (
	"fmt"
	"slices"

	"tansy/nfs/nlm"
)

// The sizes of a history. The last byte stands for all from there on.
const (
	addresses = 3
	hosts     = 4
	owners    = 6
	spans     = 4 // bytes
	mostWaits = 2 * owners
)

// hostOf and addressOf say whose an owner is, and where a host is. Two hosts are behind one address.
var (
	hostOf    = [owners]int8{0, 0, 1, 2, 3, 3}
	addressOf = [hosts]int8{0, 1, 1, 2}
)

func at(owner int8) int8 { return addressOf[hostOf[owner]] }

// wanted is a lock that is asked for: the bytes from to to, both included, for an owner.
type wanted struct {
	owner, from, to int8
	exclusive       bool
}

func (w wanted) String() string {
	how := "shared"
	if w.exclusive {
		how = "exclusive"
	}
	return fmt.Sprintf("owner %d bytes %d-%d %s", w.owner, w.from, w.to, how)
}

func (w wanted) overlaps(x wanted) bool { return w.from <= x.to && x.from <= w.to }

func (w wanted) clashes(x wanted) bool {
	return w.owner != x.owner && w.overlaps(x) && (w.exclusive || x.exclusive)
}

// wait is a lock that is waited for.
type wait struct {
	wanted
	patient  bool // its owner had nothing when it came, and lets those in front go first
	offered  bool
	accepted bool // its client has said so, which the server may not know yet
	refused  bool // likewise
}

// How a byte is had.
const (
	free int8 = iota
	shared
	exclusive
)

// Bits of a reservation.
const (
	reads, writes, deniesReads, deniesWrites, reserved = 1, 2, 4, 8, 16
)

// Of the grace period: there is none, it lasts, or it ends: hosts that were silent are not among those from before
// any more, and others have to wait until that is durable. Then nothing is reclaimed any more, and others wait for the
// calls under way.
const (
	over int8 = iota
	lasting
	ending
	late
)

// state is what a server may know. It is compared with ==.
type state struct {
	has    [owners][spans]int8
	shares [owners]int8
	waits  [mostWaits]wait // the oldest first
	n      int8            // waits

	grace   int8
	forever bool            // the grace period does not end
	before  [addresses]bool // on the volume at the start, and silent since; while there is grace
	known   [addresses]bool // may reclaim; while there is grace
	disk    [addresses]bool // the volume may have it
}

// hasSome tells whether an address has something, or has accepted what it waited for.
func (s *state) hasSome(address int8) bool {
	for o := range int8(owners) {
		if at(o) == address && (s.shares[o] != 0 || s.has[o] != [spans]int8{}) {
			return true
		}
	}
	return s.anyWait(address, func(w wait) bool { return w.accepted })
}

// waitsForSome tells whether an address waits for something.
func (s *state) waitsForSome(address int8) bool {
	return s.anyWait(address, func(wait) bool { return true })
}

func (s *state) anyWait(address int8, is func(wait) bool) bool {
	return slices.ContainsFunc(s.waits[:s.n], func(w wait) bool { return at(w.owner) == address && is(w) })
}

// could tells whether nobody keeps an owner, which stands behind the first i waits, from a lock. See inTheWay.
func (s *state) could(w wanted, i int8, patient bool) bool {
	return len(s.inTheWay(w, i, patient)) == 0
}

// inTheWay are the locks that keep an owner, which stands behind the first i waits, from one: those that others have,
// or were offered, and if it is patient those that are waited for in front of it.
func (s *state) inTheWay(w wanted, i int8, patient bool) (list []wanted) {
	for o := range int8(owners) {
		for b := range int8(spans) {
			x := wanted{o, b, b, s.has[o][b] == exclusive}
			if s.has[o][b] != free && x.clashes(w) {
				list = append(list, x)
			}
		}
	}
	for k, x := range s.waits[:s.n] {
		if (x.offered || patient && int8(k) < i) && x.clashes(w) {
			list = append(list, x.wanted)
		}
	}
	return list
}

// offer offers what has become free, to the oldest first.
func (s *state) offer() {
	for i := range s.n {
		if w := &s.waits[i]; !w.offered && s.could(w.wanted, i, w.patient) {
			w.offered = true
		}
	}
}

func (s *state) put(w wanted, how int8) {
	for b := w.from; b <= w.to; b++ {
		s.has[w.owner][b] = how
	}
}

func (w wanted) how() int8 {
	if w.exclusive {
		return exclusive
	}
	return shared
}

// leave takes a wait out.
func (s *state) leave(i int8) {
	copy(s.waits[i:], s.waits[i+1:s.n])
	s.n--
	s.waits[s.n] = wait{}
}

// accept gives an owner what it was offered.
func (s *state) accept(i int8) {
	w := s.waits[i].wanted
	s.leave(i)
	s.put(w, w.how())
	s.offer()
}

// take accepts what an owner was offered of the bytes that it asks for.
func (s *state) take(w wanted) {
	for i := int8(0); i < s.n; {
		if x := s.waits[i]; x.offered && x.owner == w.owner && x.overlaps(w) {
			s.accept(i)
		} else {
			i++
		}
	}
}

// patient tells whether an owner holds nothing.
func (s *state) patient(owner int8) bool { return s.has[owner] == [spans]int8{} }

func (s *state) find(w wanted) int8 {
	return int8(slices.IndexFunc(s.waits[:s.n], func(x wait) bool { return x.wanted == w }))
}

// lock is what the table answers.
func (s *state) lock(w wanted, block bool) uint32 {
	s.take(w)
	patient := s.patient(w.owner)
	switch {
	case block && s.find(w) >= 0:
		return nlm.Blocked
	case s.could(w, s.n, patient):
		s.put(w, w.how())
		s.offer() // what was exclusive may be shared now
		return nlm.Granted
	case block:
		s.waits[s.n] = wait{wanted: w, patient: patient}
		s.n++
		return nlm.Blocked
	}
	return nlm.Denied
}

// reserve is what the table answers to SHARE.
func (s *state) reserve(owner, share int8) uint32 {
	for o, x := range s.shares {
		if int8(o) != owner && (share&3&(x>>2) != 0 || x&3&(share>>2) != 0) {
			return nlm.Denied
		}
	}
	s.shares[owner] = share | reserved
	return nlm.Granted
}

// forget ends all of owners, one after the other.
func (s *state) forget(gone ...int8) {
	for _, o := range gone {
		s.has[o], s.shares[o] = [spans]int8{}, 0
		for i := int8(0); i < s.n; {
			if s.waits[i].owner == o {
				s.leave(i)
			} else {
				i++
			}
		}
		s.offer()
	}
}
