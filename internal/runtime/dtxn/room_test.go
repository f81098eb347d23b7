package dtxn

import (
	"errors"
	"io"
	"sync"
	"testing"

	"tansy/disk"
)

// meanHost gives room to left blocks, and keeps what it gave.
type meanHost struct {
	mu     sync.Mutex
	left   int
	room   map[uint64]bool
	absent uint64 // blocks that are not there, before all others
	err    error  // of every request
}

func (h *meanHost) Reserve(a, n uint64) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for ; n > 0; a, n = a+1, n-1 {
		switch {
		case h.err != nil:
			return h.err
		case h.room[a]:
		case h.left == 0:
			return disk.ErrNoRoom
		default:
			h.left--
			h.room[a] = true
		}
	}
	return nil
}

func (h *meanHost) Keep(uint64) {}

func (h *meanHost) Backed(a uint64) (lo, hi uint64, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for b := range h.room {
		if b >= a && (!ok || b < lo) {
			lo, ok = b, true
		}
	}
	return lo, lo + 1, ok
}

func (h *meanHost) Below(end uint64) uint64 { return end - min(h.absent, end) }

func (h *meanHost) Room() (free, backed uint64) {
	return uint64(h.left), uint64(len(h.room))
}

// take allocates: a hint is taken and its bit set. ok is false when there is none.
func take(t *testing.T, s *System, which, near uint64) (x uint64, ok bool) {
	t.Helper()
	must(t, s.Run(false, false, func(t *Txn) error {
		if ok, x = t.AllocHint(which, near); ok {
			t.WriteBit(layout.Maps[which].Start+x/windowBits, x%windowBits, true)
		}
		return nil
	}))
	return x, ok
}

func free(t *testing.T, s *System, which, x uint64) {
	t.Helper()
	must(t, s.Run(false, false, func(t *Txn) error {
		t.WriteBit(layout.Maps[which].Start+x/windowBits, x%windowBits, false)
		return nil
	}))
}

// What the host has no room for is not handed out, and what it gave room to is, again
// and again.
func TestHostWithoutRoom(t *testing.T) {
	const blocks = 50
	for which, want := range map[uint64]int{Blocks: blocks, Inodes: 16*2 - 3} { // two blocks of inodes, but for the first three
		h := &meanHost{left: blocks + 1, room: map[uint64]bool{}} // and the bitmap
		if which == Inodes {
			h.left = 2 + 1
		}
		l := layout
		l.Host = h
		s := NewMem(size, l)
		var have []uint64
		fill := func(near uint64) {
			for {
				x, ok := take(t, s, which, near)
				if !ok {
					return
				}
				if !h.room[memLog+s.home(which, x)] || !h.room[memLog+layout.Maps[which].Start] {
					t.Fatalf("%d was handed out without room", x)
				}
				have = append(have, x)
			}
		}
		refused := s.Refused()
		fill(0)
		if len(have) != want || s.Refused() == refused {
			t.Errorf("map %d: %d handed out, want %d; %d refused", which, len(have), want, s.Refused()-refused)
		}
		// freed ones come back at once, wherever the wish is; others do not
		for _, near := range []uint64{0, 900, have[20]} {
			for _, x := range []uint64{have[len(have)-1], have[3]} {
				free(t, s, which, x)
				if y, ok := take(t, s, which, near); !ok || y != x {
					t.Errorf("map %d: after %d was freed: %d, %v", which, x, y, ok)
				}
			}
		}
		if x, ok := take(t, s, which, 0); ok {
			t.Errorf("map %d: %d was handed out", which, x)
		}
		// what an aborted transaction was handed out is not lost
		free(t, s, which, have[5])
		for range 3 {
			err := s.Run(false, false, func(t *Txn) error {
				if ok, _ := t.AllocHint(which, 0); !ok {
					return io.EOF
				}
				return io.ErrUnexpectedEOF
			})
			if err != io.ErrUnexpectedEOF {
				t.Errorf("map %d: %v", which, err)
			}
		}
		// any other error ends the transaction
		broken := errors.New("broken")
		h.err = broken
		err := s.Run(false, false, func(t *Txn) error { t.AllocHint(which, 0); return nil })
		if !errors.Is(err, broken) {
			t.Errorf("map %d: %v, want %v", which, err, broken)
		}
		must(t, s.Close())
	}
}

// No bit is handed out without room for what is written with its block: the block of the bitmap, and two pages of codes
// above both, on each of two levels. Once they have room, only blocks need some.
func TestRoomBeside(t *testing.T) {
	const code, above = 7, 3 // of the block, and of that; each with the one behind it
	for i := range 24 {
		left, beside := i/2, 5
		h := &meanHost{left: left, room: map[uint64]bool{}}
		if i%2 == 1 {
			h.room[memLog+blockMap], beside = true, 4
		}
		l := layout
		l.Host = h
		l.Beside = func(a uint64) (uint64, bool) {
			switch {
			case a >= memLog:
				return code, true
			case a == code:
				return above, true
			}
			return 0, false
		}
		s := NewMem(size, l)
		var got int
		for range 9 {
			if _, ok := take(t, s, Blocks, 0); ok {
				got++
			}
		}
		if want := max(0, left-beside); got != want {
			t.Errorf("%d blocks of a host for %d blocks and %d beside them", got, want, beside)
		}
		must(t, s.Close())
	}
}

// A block in the place of another is the next free one; on a sparse image it is none if that one has no room, though
// the host would give some, and none is lost by asking. But it is one if the host has room for all, and gets back what
// is free.
func TestExchange(t *testing.T) {
	on := func(left int, returns bool, absent uint64) *System {
		l := layout
		l.Host, l.Returns = &meanHost{left: left, room: map[uint64]bool{}, absent: absent}, returns
		return NewMem(size, l)
	}
	for _, c := range []struct {
		host string
		s    *System
		any  bool // even one without room
	}{
		{"none", newSystem(t), true},
		{"room for all", on(memLog+100000, true, 0), true},
		{"room for all, which is kept", on(memLog+100000, false, 0), false},
		{"not for all", on(memLog+99999, true, 0), false},
		{"room for all that are there", on(memLog+60000, true, 40000), true},
		{"not for all that are there", on(memLog+59999, true, 40000), false},
	} {
		host, s := c.host, c.s
		var taken []uint64
		for range 10 {
			x, _ := take(t, s, Blocks, 0)
			taken = append(taken, x)
		}
		last := taken[len(taken)-1]
		count, err := s.Free(Blocks)
		must(t, err)
		must(t, s.Run(false, false, func(x *Txn) error {
			ok, b := x.AllocHint(Exchange, last)
			if ok != c.any || ok && b != last+1 {
				t.Errorf("host %s: behind %d: %d, %v", host, last, b, ok)
			}
			return nil
		}))
		free(t, s, Blocks, taken[3])
		must(t, s.Run(false, false, func(x *Txn) error {
			if ok, b := x.AllocHint(Exchange, taken[2]); !ok || b != taken[3] {
				t.Errorf("host %s: %d was freed: %d, %v", host, taken[3], b, ok)
			}
			return nil
		}))
		if n, err := s.Free(Blocks); err != nil || n != count+1 {
			t.Errorf("host %s: %d were free, one was freed, and %d are", host, count, n)
		}
	}
}

// What is freed a moment ago is not handed out again in the place of another before all of the region was, wherever the
// wish; and who goes on where it was given something goes on there.
func TestRotor(t *testing.T) {
	a := newAlloc(Bitmap{First: 10, Limit: 3 * rotorSpan, Start: 0},
		func(uint64) ([]byte, error) { return make([]byte, disk.BlockSize), nil })
	s := &System{alloc: []*alloc{Blocks: a}}
	next := func(near uint64) uint64 {
		t.Helper()
		x, ok, err := s.exchange(place{near: near})
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		return x
	}
	const n = 2 * rotorRecent
	for _, base := range []uint64{20, rotorSpan + 7} { // each region by itself, though they take turns
		last := base
		for i := range uint64(n) {
			if last = next(last); last != base+1+i {
				t.Fatalf("after %d blocks behind %d: %d", i, base, last)
			}
			next(2 * rotorSpan)
		}
		for i := range uint64(n) {
			a.giveBack(base + 1 + i)
			if x := next(base + i%3); x != base+1+n+i {
				t.Fatalf("%d was freed, and so many before it, and near %d it is %d", base+1+i, base, x)
			}
		}
		if a.giveBack(last + n); next(last+n-1) != last+n {
			t.Error("what was handed out a moment ago is not gone on from")
		}
	}
	// at the end of a region, from its beginning
	a.turned(2*rotorSpan-1, 2*rotorSpan)
	if x := next(2*rotorSpan - 1); x != rotorSpan+1 {
		t.Errorf("after the end of a region: %d, not %d", x, rotorSpan+1)
	}
	// where a region is full, in the next one that has room
	for w := range rotorSpan / windowBits {
		a.free[w] = rotorRoom/(rotorSpan/windowBits) - 1
	}
	last := a.rotors[1]
	if x := next(5000); x != last+1 {
		t.Errorf("in a full region: %d, not %d", x, last+1)
	}
	for w := range a.free {
		a.free[w] = 1
	}
	if x := next(6000); x/rotorSpan != 0 {
		t.Errorf("there is room nowhere, and near 6000 it is %d", x)
	}
	for i := range uint64(2 * maxRotors) {
		a.turned(i*rotorSpan, i*rotorSpan)
	}
	if len(a.rotors) > maxRotors {
		t.Errorf("%d rotors", len(a.rotors))
	}
}
