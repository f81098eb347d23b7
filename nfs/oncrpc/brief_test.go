package oncrpc

import (
	"testing"
	"time"
)

// TestBrief: a brief call is run by the connection's goroutine, though others are behind it; it keeps these waiting
// until the janitor lets another goroutine read on. When two were not brief, those after it keep nobody waiting, until
// as many have come as are remembered.
func TestBrief(t *testing.T) {
	g := newGate()
	s := NewServer(Config{Programs: []Program{{Number: 77, Version: 1, Procs: []Proc{
		NullProc,
		{Name: "BRIEF", Brief: true, Serve: func(*Call) Accept { return Success }},
		{Name: "WAIT", Brief: true, Serve: func(c *Call) Accept { return waitFor(g, c) }},
	}}}, Log: quiet})
	s.janitor.Do(func() {}) // nobody else reads on, unless this test says so
	p := connect(t, listen(t, s))
	// here says that the call which has started is run where calls are read.
	here := func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		for c := range s.conns {
			return c.here.Load() != 0
		}
		return false
	}
	// both sends a call that waits and one that comes with it.
	both := func() {
		p.send(append(mark(callBytes(1, 2, nil)), mark(callBytes(2, 0, nil))...))
		<-g.started
	}
	receive := func(xid uint32) {
		t.Helper()
		if w, _ := p.receive(); w[0] != xid {
			t.Fatalf("answer to %d, want that to %d", w[0], xid)
		}
	}
	for tries := 1; ; tries++ { // those before may have been held up by chance
		for range tardyCalls {
			p.send(mark(callBytes(9, 1, nil)))
			receive(9)
		}
		both()
		if here() {
			break
		}
		if tries == 100 {
			t.Fatal("not run where calls are read")
		}
		receive(2)
		g.finish <- struct{}{}
		receive(1)
	}
	s.sweep(s.tick.Add(2))
	receive(2)
	g.finish <- struct{}{}
	receive(1)

	for rounds := 0; ; rounds++ { // two at most, and those that are left of calls held up by chance
		both()
		if !here() {
			break
		}
		if rounds == tardyCalls {
			t.Fatal("run where calls are read, however long it takes")
		}
		for begin := time.Now(); time.Since(begin) <= atMost(0); {
		}
		g.finish <- struct{}{}
		receive(1)
		receive(2)
	}
	receive(2)
	g.finish <- struct{}{}
	receive(1)
}
