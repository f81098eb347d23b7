package oncrpc

import (
	"bytes"
	"testing"
	"time"
)

// lent is Data in pieces of one to seven bytes, that tells when nobody uses it any more.
type lent struct {
	pieces [][]byte
	n      int
	ended  chan<- struct{}
}

func newLent(n int, ended chan<- struct{}) *lent {
	l := &lent{n: n, ended: ended}
	for at := 0; at < n; {
		k := min(1+at%7, n-at)
		l.pieces = append(l.pieces, pattern(at, k))
		at += k
	}
	return l
}

// pattern is the n bytes of such Data from at on.
func pattern(at, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte((at + i) * 31)
	}
	return b
}

func (l *lent) Len() int         { return l.n }
func (l *lent) Pieces() [][]byte { return l.pieces }
func (l *lent) Done()            { clear(l.pieces); l.ended <- struct{}{} }

// lending is a program whose results are lent: 1 has as many bytes as are asked for; 2 and 3 fail afterwards; 4 waits
// at the gate before.
func lending(g *gate, ended chan<- struct{}) Program {
	lend := func(c *Call) { c.Reply.Data(newLent(int(c.Args.Uint32()), ended)) }
	return Program{Number: 77, Version: 1, Procs: []Proc{
		NullProc,
		{Name: "LEND", Serve: func(c *Call) Accept { lend(c); return Success }},
		{Name: "FAIL", Serve: func(c *Call) Accept { lend(c); return GarbageArgs }},
		{Name: "PANIC", Serve: func(c *Call) Accept { lend(c); panic("as asked") }},
		{Name: "WAIT", Serve: func(c *Call) Accept {
			g.started <- struct{}{}
			<-g.finish
			lend(c)
			return Success
		}},
		{Name: "INLINE", Inline: true, Serve: func(c *Call) Accept { lend(c); return Success }},
	}}
}

// TestData: a reply ends in the bytes of its pieces, however many there are, and what was lent for it is given back
// once, also if it is never sent.
func TestData(t *testing.T) {
	g, ended := newGate(), make(chan struct{}, 10)
	cfg := Config{Programs: []Program{lending(g, ended)}, Log: quiet}
	s := NewServer(cfg)
	addr := listen(t, s)
	p := connect(t, addr)
	back := func() {
		t.Helper()
		select {
		case <-ended:
		case <-time.After(20 * time.Second): // a test that hangs shall fail
			t.Fatal("not given back")
		}
	}
	call := func(proc, n uint32) []byte {
		return append(words(n, 0, 2, 77, 1, proc, 0, 0, 0, 0), words(n)...)
	}
	for _, proc := range []uint32{1, 5} {
		for _, n := range []uint32{0, 1, 4, 5, 1000, 100_000, 700_001} { // the last takes several calls of the system
			p.send(mark(call(proc, n)))
			_, raw := p.receive()
			if want := append(words(n), pattern(0, int(n))...); !bytes.HasPrefix(raw[24:], want) || len(raw) != (24+len(want)+3)&^3 {
				t.Errorf("%d bytes lent: %d others, or other ones", n, len(raw)-28)
			}
			back()
		}
	}
	for _, proc := range []uint32{2, 3} {
		p.send(mark(call(proc, 10)))
		p.receive()
		back()
	}
	p.send(mark(call(4, 1000)))
	<-g.started
	p.Close()
	g.finish <- struct{}{}
	back()
	packets := NewPacketServer(cfg)
	for proc, n := range map[uint32]uint32{1: 100, 2: 100, 3: 100, 5: 1 << 20} {
		packets.answer(call(proc, n), nil, nil)
		back()
	}
	if len(ended) != 0 {
		t.Error("given back more than once")
	}
}
