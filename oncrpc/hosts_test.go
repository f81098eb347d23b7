package oncrpc

import (
	"fmt"
	"net"
	"testing"
)

func (p peer) answers() {
	p.t.Helper()
	p.send(mark(callBytes(1, 1, nil)))
	p.receive()
}

// idle waits until the server waits for p, and lets n ticks pass.
func (s *Server) idle(p peer, n int) {
	for {
		if c := s.of(p); c != nil && c.idleSince() != 0 {
			break
		}
	}
	for range n {
		s.tick.Add(1)
	}
}

// TestLongestIdleMakesRoom: when there are as many connections as may be, a new one takes
// the place of the one that was idle for the longest; those with a call in progress stay.
func TestLongestIdleMakesRoom(t *testing.T) {
	for what, x := range map[string]struct {
		cfg      Config
		from, at int
	}{
		"over all":         {Config{MaxConns: 4}, 1, 2},
		"from one address": {Config{MaxConnsPerHost: 4}, 1, 1},
	} {
		t.Run(what, func(t *testing.T) {
			s, addr := patient(t, x.cfg)
			g := newGate()
			s.cfg.Programs = append(s.cfg.Programs, Program{Number: 78, Version: 1, Procs: []Proc{{Name: "WAIT", Serve: func(c *Call) Accept { return waitFor(g, c) }}}})
			busy := connectFrom(t, addr, x.from)
			busy.send(mark(words(1, 0, 2, 78, 1, 0, 0, 0, 0, 0, 0)))
			<-g.started
			s.sweep(s.tick.Add(2)) // another goroutine reads on
			var idle []peer
			for range 3 {
				p := connectFrom(t, addr, x.from)
				p.answers()
				s.idle(p, 1)
				idle = append(idle, p)
			}
			idle[0].answers() // it is not the longest idle any more
			s.idle(idle[0], 1)
			p := connectFrom(t, addr, x.at)
			p.answers()
			idle[1].closed("the longest idle")
			idle[0].answers()
			idle[2].answers()
			p.answers()
			g.finish <- struct{}{}
			busy.receive()
			if n := s.Conns(); n != 4 {
				t.Errorf("%d connections", n)
			}
		})
	}
}

// TestIdleConnectionsKeepNobodyOut: who comes is served, however many there are.
func TestIdleConnectionsKeepNobodyOut(t *testing.T) {
	const limit, each = 64, 16
	s, addr := patient(t, Config{MaxConns: limit, MaxConnsPerHost: each})
	client := connectFrom(t, addr, 1)
	client.answers()
	for i := range 8 * each {
		p := connectFrom(t, addr, 2+i%8)
		p.answers()
		s.idle(p, 1)
		client.answers()
		s.idle(client, 0)
		if n := s.Conns(); n > limit {
			t.Fatalf("%d connections", n)
		}
	}
	// One address alone gets what is its own.
	for range 2 * limit {
		p := connectFrom(t, addr, 2)
		p.answers()
		s.idle(p, 1)
		client.answers()
		s.idle(client, 0)
	}
	s.mu.Lock()
	for _, h := range s.hosts {
		if h.conns > each {
			t.Errorf("%d connections from %v", h.conns, h.key)
		}
	}
	s.mu.Unlock()
	connectFrom(t, addr, 12).answers()
}

// TestStuckMakeRoom: when no connection is idle, one that its peer has kept waiting makes
// room, and if there is none, the new one is refused.
func TestStuckMakeRoom(t *testing.T) {
	s, addr := patient(t, Config{MaxConns: 2})
	call := mark(callBytes(7, 1, make([]byte, 100)))
	var half []peer
	for range 2 {
		p := connectFrom(t, addr, 1)
		p.answers()
		p.send(call[:50])
		for s.of(p).recordSince.Load() == 0 {
		}
		s.tick.Add(1)
		half = append(half, p)
	}
	connectFrom(t, addr, 1).closed("one too many")
	s.tick.Add(stuckAfter)
	p := connectFrom(t, addr, 1)
	p.answers()
	half[0].closed("the one that was stuck for the longest")
	half[1].send(call[50:])
	half[1].receive()
	p.answers()
}

// TestHostsAreForgotten: nothing is kept of an address when its last connection ends.
func TestHostsAreForgotten(t *testing.T) {
	s, addr := patient(t, Config{MaxConns: 3})
	for range 5 { // two are evicted, the others end by themselves
		p := connectFrom(t, addr, 2)
		p.answers()
		s.idle(p, 1)
		defer p.Close()
	}
	s.mu.Lock()
	for c := range s.conns {
		c.hangUp()
	}
	s.mu.Unlock()
	for n := 1; n > 0; {
		s.mu.Lock()
		n = len(s.hosts)
		s.mu.Unlock()
	}
}

func TestHostOf(t *testing.T) {
	tcp := func(s string) net.Addr {
		a, err := net.ResolveTCPAddr("tcp", s)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	for _, x := range []struct {
		a, b net.Addr
		same bool
	}{
		{tcp("192.0.2.1:1"), tcp("192.0.2.1:2"), true},
		{tcp("192.0.2.1:1"), tcp("192.0.2.2:1"), false},
		{tcp("192.0.2.1:1"), tcp("[::ffff:192.0.2.1]:1"), true},
		{tcp("[2001:db8::1]:1"), tcp("[2001:db8::2]:1"), true},
		{tcp("[2001:db8::1]:1"), tcp("[2001:db8:0:1::1]:1"), false},
		{tcp("[fe80::1]:1"), tcp("[fe80::2]:1"), false},
		{&net.UnixAddr{}, &net.UnixAddr{Name: "x"}, true},
	} {
		if same := hostOf(x.a) == hostOf(x.b); same != x.same {
			t.Error(fmt.Sprint(x.a, " and ", x.b, " one host: ", same))
		}
	}
}
