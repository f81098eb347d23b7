package oncrpc

import (
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tansy/nfs/fair"
)

func (p peer) answers() {
	p.t.Helper()
	p.send(mark(callBytes(1, 1, nil)))
	p.receive()
}

// idle waits until the server waits for p, and lets some time pass.
func (s *Server) idle(p peer) {
	for {
		if c := s.of(p); c != nil && c.idleSince() != 0 {
			break
		}
	}
	s.pass(time.Second)
}

// forget makes the server believe that what it remembers of p was d ago, and what is under way began then.
func (s *Server) forget(p peer, d time.Duration) {
	c := s.of(p)
	for _, at := range []*atomic.Int64{&c.lastUse, &c.tookAt, &c.repliedAt, &c.untakenSince, &c.blockedAt} {
		if at.Load() != 0 {
			at.Add(-int64(d))
		}
	}
}

// pass makes all that the server remembers d older.
func (s *Server) pass(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.lastUse.Add(-int64(d))
		c.tookAt.Add(-int64(d))
		if c.repliedAt.Load() != 0 {
			c.repliedAt.Add(-int64(d))
		}
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
			s.cfg.Programs = append(s.cfg.Programs, withStats([]Program{{Number: 78, Version: 1, Procs: []Proc{{Name: "WAIT", Serve: func(c *Call) Accept { return waitFor(g, c) }}}}})...)
			busy := connectFrom(t, addr, x.from)
			busy.send(mark(words(1, 0, 2, 78, 1, 0, 0, 0, 0, 0, 0)))
			<-g.started
			s.sweep(s.tick.Add(2)) // another goroutine reads on
			var idle []peer
			for range 3 {
				p := connectFrom(t, addr, x.from)
				p.answers()
				s.idle(p)
				idle = append(idle, p)
			}
			quiet := connectFrom(t, addr, x.from) // too many already, and it says nothing
			idle[0].closed("the longest idle")
			s.idle(quiet)
			idle[0] = connectFrom(t, addr, x.from)
			idle[0].answers()
			quiet.closed("the one that never made a call")
			idle[0].answers() // it is not the longest idle any more
			s.idle(idle[0])
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
		s.idle(p)
		client.answers()
		if n := s.Conns(); n > limit {
			t.Fatalf("%d connections", n)
		}
	}
	// One address alone gets what is its own.
	for range 2 * limit {
		p := connectFrom(t, addr, 2)
		p.answers()
		s.idle(p)
		client.answers()
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

// TestStuckMakeRoom: a connection that its peer keeps waiting, with half a call or by not
// taking replies, is as idle as others.
func TestStuckMakeRoom(t *testing.T) {
	s, addr := patient(t, Config{MaxConns: 3})
	half := connectFrom(t, addr, 1)
	half.answers()
	half.send(mark(callBytes(7, 1, make([]byte, 100)))[:50])
	for s.of(half).recordSince.Load() == 0 {
	}
	deaf := connectFrom(t, addr, 1)
	for xid := range uint32(30) {
		deaf.send(readCall(xid, 1<<20))
	}
	s.until(1, isSlow)
	client := connectFrom(t, addr, 1)
	client.answers()
	s.pass(time.Second)
	client.answers()
	connectFrom(t, addr, 1).answers()
	half.closed("the one that was stuck for the longest")
	client.answers()
	p := connectFrom(t, addr, 1) // the other two have just been used
	p.answers()
	s.until(0, isSlow)
	client.answers()
}

// TestBusyConnectionsStay: when the server has something to do on all connections, the new one
// is refused.
func TestBusyConnectionsStay(t *testing.T) {
	g := newGate()
	s, addr := serveEcho(t, Config{MaxConns: 2}, g)
	var busy []peer
	for range 2 {
		p := connect(t, addr)
		p.send(mark(callBytes(1, 4, nil)))
		<-g.started
		busy = append(busy, p)
	}
	connect(t, addr).closed("one too many")
	for range busy {
		g.finish <- struct{}{}
	}
	for _, p := range busy {
		p.receive()
	}
	if n := s.Conns(); n != 2 {
		t.Errorf("%d connections", n)
	}
}

// hang is how long the tests below wait for what has to happen soon.
const hang = 8 * time.Second

func connectBriefly(t *testing.T, addr string) peer {
	t.Helper()
	p := connect(t, addr)
	p.SetDeadline(time.Now().Add(hang))
	return p
}

// connectNarrow connects with room for little that is not read.
func connectNarrow(t *testing.T, addr string) peer {
	t.Helper()
	d := net.Dialer{Control: func(_, _ string, raw syscall.RawConn) error {
		return raw.Control(func(fd uintptr) { unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, 4096) })
	}}
	nc, err := d.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	nc.SetDeadline(time.Now().Add(hang))
	t.Cleanup(func() { nc.Close() })
	return peer{t, nc}
}

// TestReadersStay: a peer that takes what is being written to it is not idle, however long that takes.
func TestReadersStay(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("what a socket takes is another matter here")
	}
	s, addr := patient(t, Config{MaxConns: 1})
	reader := connectNarrow(t, addr)
	const size = 120 << 10 // one write
	reader.send(readCall(1, size))
	s.until(1, isSlow)
	s.forget(reader, time.Hour)
	c, got := s.of(reader), 0
	for c.tookAt.Load() < 0 {
		n, err := reader.Read(make([]byte, 4<<10))
		if got += n; err != nil {
			t.Fatalf("%d bytes, and the server has not noticed: %v", got, err)
		}
	}
	for c.blockedAt.Load() == 0 {
	}
	c.blockedAt.Add(-int64(time.Hour))
	c.tookAt.Add(int64(time.Hour)) // just now, however long this test is held up
	connectBriefly(t, addr).closed("one too many")
	if n, err := io.CopyN(io.Discard, reader, 4+28+size-int64(got)); err != nil {
		t.Errorf("%d bytes and then %d: %v", got, n, err)
	}
}

// TestAnswersAreUse: who was just answered is not idle, although the call came long ago.
func TestAnswersAreUse(t *testing.T) {
	g := newGate()
	s, addr := patient(t, Config{MaxConns: 2})
	s.cfg.Programs[0].Procs[4].Serve = func(c *Call) Accept { return waitFor(g, c) }
	waited := connectBriefly(t, addr)
	waited.send(mark(callBytes(1, 4, nil)))
	<-g.started
	s.forget(waited, 2*time.Hour)
	idle := connectBriefly(t, addr)
	idle.answers()
	s.idle(idle)
	s.lately.Store(s.now()) // as the janitor does
	g.finish <- struct{}{}
	waited.receive()
	connectBriefly(t, addr).answers()
	idle.closed("the longest idle")
	waited.answers()
}

// TestStuckWaitersMakeRoom: a peer that leaves its replies where they are does not keep its connection because
// that waits for memory; one that has taken all does.
func TestStuckWaitersMakeRoom(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("what a socket takes is another matter here")
	}
	s, addr := patient(t, Config{MaxConns: 2})
	const some = 24 << 10
	deaf := connectNarrow(t, addr)
	deaf.send(readCall(1, some)) // more than it takes, and no more than a socket does
	waits := connectBriefly(t, addr)
	waits.send(readCall(1, some))
	waits.receive()
	d, got := s.of(deaf), 0
	s.until(1, func(c *conn) bool { return c == d && c.link.unacknowledged() > 0 && c.waiting.Load() && c.unused() })
	all := fair.NewAccount(s.calls, new(fair.Share), fair.Proven)
	all.Take(fair.Claim{Bytes: s.cfg.ReplyBytes})
	deaf.send(readCall(2, some))
	waits.send(readCall(2, some))
	s.until(2, func(c *conn) bool { return c.parked.Load() })
	stuck := func(c *conn) bool { return c == d && c.untakenSince.Load() != 0 }
	s.until(1, stuck)
	connectBriefly(t, addr).closed("one too many, as long as nobody is stuck for long")
	s.until(0, func(c *conn) bool {
		if c == d && got < some/2 {
			n, _ := deaf.Read(make([]byte, 1024))
			got += n
		}
		return stuck(c) && got < some/2
	})
	if got >= some/2 {
		t.Fatal("a peer that takes some of its replies is stuck")
	}
	s.until(1, stuck)
	s.forget(deaf, 2*time.Hour)
	s.forget(waits, 3*time.Hour) // which does not matter
	p := connectBriefly(t, addr)
	p.answers()
	all.Give(s.cfg.ReplyBytes)
	if w, _ := waits.receive(); w[0] != 2 {
		t.Errorf("a reply to %d", w[0])
	}
	for err := error(nil); err == nil; {
		_, err = deaf.Read(make([]byte, some))
	}
}

// TestCallsOnTheirWay: a connection that has just been made, or sends its first call, does not make room as long
// as there are idle ones.
func TestCallsOnTheirWay(t *testing.T) {
	s, addr := patient(t, Config{MaxConns: 4})
	var idle []peer
	for range 2 {
		p := connectBriefly(t, addr)
		p.answers()
		s.idle(p)
		idle = append(idle, p)
	}
	quiet := connectBriefly(t, addr)
	for s.of(quiet) == nil {
	}
	call := mark(callBytes(7, 2, make([]byte, 9000)))
	half := connectBriefly(t, addr)
	half.send(call[:8000])
	s.until(1, owes)
	for i := range idle {
		p := connectBriefly(t, addr)
		p.answers()
		idle[i].closed("the longest idle")
		s.forget(p, -time.Hour) // it is used all the time
	}
	connectBriefly(t, addr).answers()
	quiet.closed("if there is no other, that without a call")
	half.send(call[8000:])
	half.receive()
}

// TestHostsAreForgotten: nothing is kept of an address when its last connection ends.
func TestHostsAreForgotten(t *testing.T) {
	s, addr := patient(t, Config{MaxConns: 3})
	for range 5 { // two are evicted, the others end by themselves
		p := connectFrom(t, addr, 2)
		p.answers()
		s.idle(p)
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

// scarce is a listener that has no descriptor for who comes as long as so many connections are open.
type scarce struct {
	net.Listener
	s     *Server
	conns int
	err   syscall.Errno
	next  net.Conn // waits
}

func (l *scarce) Accept() (nc net.Conn, err error) {
	if l.next == nil {
		if l.next, err = l.Listener.Accept(); err != nil {
			return nil, err
		}
	}
	if l.s.Conns() >= l.conns {
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", l.err)}
	}
	nc, l.next = l.next, nil
	return nc, nil
}

// TestNoDescriptors: if there is none for a new connection, it gets that of the longest idle.
func TestNoDescriptors(t *testing.T) {
	for _, err := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE} {
		s, _ := patient(t, Config{})
		l, e := net.Listen("tcp", "127.0.0.1:0")
		if e != nil {
			t.Fatal(e)
		}
		go s.Serve(&scarce{Listener: l, s: s, conns: 2, err: err})
		idle := connectBriefly(t, l.Addr().String())
		idle.answers()
		s.idle(idle)
		used := connectBriefly(t, l.Addr().String())
		used.answers()
		p := connectBriefly(t, l.Addr().String())
		p.answers()
		idle.closed("the longest idle")
		used.answers()
	}
}
