package dtxn

import (
	"bytes"
	"testing"
)

// TestManyWindows: bits are handed out from more windows than are kept without need;
// all of them come back, and the count stays exact.
func TestManyWindows(t *testing.T) {
	const n = 3 * maxWindows
	a := newAlloc(Bitmap{Start: 1, First: 7, Limit: n * windowBits}, func(uint64) ([]byte, error) {
		return make([]byte, windowBits/8), nil
	})
	for range 2 {
		var took []uint64
		for w := range uint64(n) {
			want := w*windowBits + 9
			x, ok, err := a.take(want - 1)
			if err != nil || !ok || x != want {
				t.Fatalf("%d, %v, %v, want %d", x, ok, err, want)
			}
			took = append(took, x)
		}
		a.done(took[:n/2], nil)
		a.done(took[n/2:], nil)
		if free, err := a.count(); err != nil || free != n*windowBits-7 {
			t.Fatal(free, err)
		}
	}
	for w := range uint64(n) { // all come and go, so few are kept
		x, _, err := a.take(w*windowBits + 9)
		if err != nil {
			t.Fatal(err)
		}
		a.done([]uint64{x}, nil)
	}
	if len(a.win) > n {
		t.Error(len(a.win))
	}
}

// TestReportsOutOfOrder: transactions report in any order, and what they have left clear is
// offered, but not before all who had been handed it have reported.
func TestReportsOutOfOrder(t *testing.T) {
	const x = 9
	take := []uint64{x}
	set, free := []bitWrite{{x, false, true}}, []bitWrite{{x, true, false}}
	for _, c := range []struct {
		what    string
		reports []func(a *alloc)
		clear   bool
	}{
		{"set and freed", []func(*alloc){func(a *alloc) { a.done(take, set) }, func(a *alloc) { a.done(nil, free) }}, true},
		{"freed by another first",
			[]func(*alloc){func(a *alloc) { a.done(nil, free) }, func(a *alloc) { a.done(take, set) }}, true},
		{"only set", []func(*alloc){func(a *alloc) { a.done(take, set) }}, false},
		{"aborted", []func(*alloc){func(a *alloc) { a.done(take, nil) }}, true},
		{"set and freed at once", []func(*alloc){func(a *alloc) { a.done(take, append(set, free...)) }}, true},
		{"set by another", []func(*alloc){func(a *alloc) { a.done(nil, set) }, func(a *alloc) { a.done(take, nil) }}, false},
	} {
		a := newAlloc(Bitmap{First: 1, Limit: windowBits},
			func(uint64) ([]byte, error) { return make([]byte, windowBits/8), nil })
		next := func() uint64 {
			got, ok, err := a.take(x - 1)
			if err != nil || !ok {
				t.Fatal(c.what, ok, err)
			}
			return got
		}
		if got := next(); got != x {
			t.Fatalf("%s: %d, want %d", c.what, got, x)
		}
		for _, report := range c.reports {
			if got := next(); got == x {
				t.Errorf("%s: offered twice", c.what)
			} else {
				a.done([]uint64{got}, nil)
			}
			report(a)
		}
		got := next()
		if clear := got == x; clear != c.clear {
			t.Errorf("%s: offered: %v, want %v", c.what, clear, c.clear)
		}
		a.done([]uint64{got}, nil)
		want := uint64(windowBits - 1)
		if !c.clear {
			want--
		}
		if n, err := a.count(); err != nil || n != want {
			t.Errorf("%s: %d bits are clear, want %d (%v)", c.what, n, want, err)
		}
	}
}

// TestNoneLeft: what comes back behind a search, while that loads a window, is found all the same. None is refused but
// when each bit is set or handed out.
func TestNoneLeft(t *testing.T) {
	const x = windowBits + 9 // the only clear bit
	anywhere := func(a *alloc) (uint64, bool, error) { return a.take(8) }
	aborted := func(a *alloc) { a.ended([]uint64{x}, nil) }
	for _, c := range []struct {
		what string
		take func(*alloc) (uint64, bool, error)
		back func(*alloc)
	}{
		{"anywhere, aborted", anywhere, aborted},
		{"anywhere, freed", anywhere, func(a *alloc) {
			a.ended([]uint64{x}, []bitWrite{{x, false, true}, {x, true, false}})
		}},
		{"for a file", func(a *alloc) (uint64, bool, error) { return a.takeFor(place{owner: 1, near: 8}) }, aborted},
		{"within a run", func(a *alloc) (uint64, bool, error) { return a.takeIn(1, 3*windowBits) }, aborted},
	} {
		var a *alloc
		took := false
		a = newAlloc(Bitmap{First: 1, Limit: 3 * windowBits}, func(w uint64) ([]byte, error) {
			full := bytes.Repeat([]byte{0xff}, windowBits/8)
			if w == x/windowBits {
				full[x%windowBits/8] &^= 1 << (x % 8)
			}
			if w == 2 && took {
				took = false
				c.back(a) // mu is held here; while the window waited for it, it was not
			}
			return full, nil
		})
		if got, ok, err := a.takeIn(windowBits, 2*windowBits); got != x || !ok || err != nil {
			t.Fatal(c.what, got, ok, err)
		}
		took = true
		if got, ok, err := c.take(a); got != x || !ok || err != nil {
			t.Errorf("%s: %d, %v, %v, want %d", c.what, got, ok, err, x)
		}
		if got, ok, err := c.take(a); ok || err != nil {
			t.Errorf("%s: %d, %v, where none is left", c.what, got, err)
		}
	}
}

// TestNoneLeftHeld: what was held, and was let go of behind a search, is found, too.
func TestNoneLeftHeld(t *testing.T) {
	var a *alloc
	lie := false
	a = newAlloc(Bitmap{First: 1, Limit: 3 * windowBits}, func(w uint64) ([]byte, error) {
		b := bytes.Repeat([]byte{0xff}, windowBits/8)
		if w == 1 {
			clear(b[:Piece/8])
		}
		if w == 2 && lie {
			lie = false
			a.yield()
		}
		return b, nil
	})
	a.unspare = func() {}
	if runs, err := a.hold(windowBits, 1, func(Run) {}); err != nil || len(runs) != 1 {
		t.Fatal(runs, err)
	}
	lie = true
	if x, ok, err := a.take(8); !ok || err != nil || x != windowBits {
		t.Error(x, ok, err)
	}
}
