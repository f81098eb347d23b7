package peers

import (
	"errors"
	"testing"
)

type line struct{ got bool }

func (l *line) Connection() any { return l }
func (l *line) Delivered() bool { return l.got }

// TestPeers: what is said of a place is of the reply that was sent last of what is there; a call that begins over the
// connection of that reply has not got it elsewhere, one over another, or over one that is not known, has; and room
// that was made once is there, whatever the host says later.
func TestPeers(t *testing.T) {
	asked := 0
	full := errors.New("full")
	answers := []error{full, nil, full}
	p := New(2, 32, func(chunk uint64) error {
		if chunk != 1 {
			t.Errorf("chunk %d", chunk)
		}
		asked++
		return answers[asked-1]
	})
	a, b := &line{}, &line{got: true}
	for _, c := range []struct {
		what               string
		do                 func()
		arrived, elsewhere bool
	}{
		{"nothing is known", func() {}, false, false},
		{"sent", func() { p.Sent(17, a) }, false, false},
		{"arrived", func() { a.got = true }, true, true},
		{"asked over the same", func() { p.Begins(a) }, true, false},
		{"asked over another", func() { p.Begins(b) }, true, true},
		{"asked over none that is known", func() { p.Begins(nil) }, true, true},
		{"gone", func() { a.got = false }, false, false},
		{"sent over another", func() { p.Sent(17, b) }, true, true},
		{"asked over that", func() { p.Begins(b) }, true, false},
		{"forgotten", func() { p.Forget(17) }, false, false},
	} {
		c.do()
		if p.Arrived(17) != c.arrived || p.Elsewhere(17) != c.elsewhere || p.Arrived(16) || p.Elsewhere(16) {
			t.Errorf("%s: %v %v, others %v", c.what, p.Arrived(17), p.Elsewhere(17), p.Arrived(16))
		}
	}
	if p.Room(1) || !p.Room(1) || !p.Room(1) || asked != 2 {
		t.Errorf("room: asked %d times", asked)
	}
}
