package oncrpc

import (
	"fmt"
	"net"
	"runtime"
	"syscall"
	"testing"
	"time"

	"tansy/nfs/fair"
)

// Tests of peers that keep the server waiting: the calls of others go on meanwhile. The
// timeouts of the server are such that nothing but its shares helps, and its clock is
// driven by the tests. What is checked is that calls are answered at all while the others
// stay as they are.

const hours = 1000 * time.Hour

// patient is a server that waits for its peers, and has no janitor.
func patient(t *testing.T, cfg Config) (*Server, string) {
	cfg.IdleTimeout, cfg.RecordTimeout, cfg.WriteTimeout = hours, hours, hours
	if cfg.CrowdedTimeout == 0 {
		cfg.CrowdedTimeout = hours
	}
	zeros := func(c *Call) Accept {
		n := c.Args.Uint32()
		if c.Limit > 0 {
			n = min(n, uint32(c.Limit))
		}
		c.Reply.Data(Bytes(make([]byte, n)))
		return Success
	}
	p := echo(nil)
	p.Procs = append(p.Procs, Proc{Name: "READ", Serve: zeros, Partial: true, Weight: p.Procs[5].Weight})
	cfg.Programs, cfg.Log = []Program{p}, quiet
	s := NewServer(cfg)
	s.janitor.Do(func() {})
	return s, listen(t, s)
}

// connectFrom connects from one of the addresses of this host, 127.0.0.n.
func connectFrom(t *testing.T, addr string, n int) peer {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(n))}}
	nc, err := d.Dial("tcp", addr)
	if err != nil {
		t.Skip("no second address of this host: ", err)
	}
	nc.SetDeadline(time.Now().Add(time.Minute)) // a test that hangs shall fail
	t.Cleanup(func() { nc.Close() })
	return peer{t, nc}
}

// until waits for n connections to be in a state, while it tells the server that time passes. A test that waits for
// what cannot come ends soon, and says where.
func (s *Server) until(n int, state func(c *conn) bool) {
	begun := time.Now()
	for count := -1; count != n; {
		if count >= 0 && time.Since(begun) > time.Minute {
			panic(fmt.Sprintf("%d connections came to be in the state that %d shall be in", count, n))
		}
		count = 0
		s.mu.Lock()
		for c := range s.conns {
			if state(c) {
				count++
			}
		}
		s.mu.Unlock()
		s.judge(s.now() + int64(time.Hour))
	}
}

// isSlow tells if the server waits for the peer to take replies, and knows it to be slow.
func isSlow(c *conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.blockedAt.Load() != 0 && c.pace == fair.Slow
}

// owes tells if the server waits for more of a record, with or without room for it.
func owes(c *conn) bool { return c.recordDue.Load() != 0 && c.waiting.Load() }

func readCall(xid uint32, n uint32) []byte {
	return mark(words(xid, 0, 2, 77, 1, 6, 0, 0, 0, 0, n))
}

// works makes calls as a client does, of which the server must answer all: reads of 1 MiB,
// which may be answered in parts, large writes, and small calls.
func works(t *testing.T, p peer) {
	t.Helper()
	const size = 1 << 20
	data := make([]byte, size)
	for xid := range uint32(5) {
		for left := uint32(size); left > 0; {
			p.send(readCall(xid, left))
			w, _ := p.receive()
			if w[0] != xid || w[6] == 0 || w[6] > left {
				t.Fatalf("a reply to %d with %d of %d bytes", w[0], w[6], left)
			}
			left -= w[6]
		}
		for _, proc := range []uint32{1, 2} {
			p.send(mark(callBytes(xid, proc, data[:1000])))
			p.receive()
		}
		p.send(mark(callBytes(xid, 2, data)))
		if _, raw := p.receive(); len(raw) != 28+size {
			t.Fatalf("%d bytes", len(raw))
		}
	}
}

// others are clients that have nothing to do with an attack: one from the same address that
// was there before, one that was not, and one from another address.
func others(t *testing.T, addr string, attack func()) {
	t.Helper()
	known := connectFrom(t, addr, 1)
	works(t, known)
	works(t, known) // enough to be known
	attack()
	for what, p := range map[string]peer{
		"known": known, "new": connectFrom(t, addr, 1), "elsewhere": connectFrom(t, addr, 3),
	} {
		t.Run(what, func(t *testing.T) {
			p.t = t
			works(t, p)
		})
	}
}

// TestPeersThatDoNotRead: they ask for much and take nothing.
func TestPeersThatDoNotRead(t *testing.T) {
	for _, from := range []int{1, 2} {
		t.Run(fmt.Sprintf("from address %d", from), func(t *testing.T) {
			s, addr := patient(t, Config{})
			const n = 48
			others(t, addr, func() {
				for range n {
					p := connectFrom(t, addr, from)
					p.Conn.(*net.TCPConn).SetReadBuffer(4096)
					var calls []byte
					for xid := range uint32(1000) { // more than a socket takes, although most get little
						calls = append(calls, readCall(xid, 1<<20)...)
					}
					p.send(calls)
				}
				s.until(n, isSlow)
			})
			s.until(n, isSlow) // as before
			if n := s.calls.Held(); n > s.cfg.ReplyBytes*3/4 {
				t.Errorf("%d of %d bytes are held", n, s.cfg.ReplyBytes)
			}
		})
	}
}

// TestNoCallForABlockedPeer: while a peer does not take its replies nothing is started for it.
func TestNoCallForABlockedPeer(t *testing.T) {
	s, addr := patient(t, Config{})
	p := connectFrom(t, addr, 1)
	const n = 30
	for xid := range uint32(n) {
		p.send(readCall(xid, 1<<20))
	}
	s.until(1, isSlow)
	c := s.one()
	c.mu.Lock()
	if c.inFlight != 1 || c.held > 1<<20+callSize {
		t.Errorf("%d calls are in progress, with %d bytes", c.inFlight, c.held)
	}
	c.mu.Unlock()
	for range n {
		p.receive()
	}
}

// TestFewCallsForADeafPeer: of a flood of small calls whose replies nobody takes, no more is carried out
// than the peer has room for, and a little: the kernel's buffers do not make up for it.
func TestFewCallsForADeafPeer(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the kernel takes what it likes here")
	}
	s, addr := patient(t, Config{})
	p := connectFrom(t, addr, 1)
	const n = 50_000
	var flood []byte
	for xid := range uint32(n) {
		flood = append(flood, mark(callBytes(xid, 0, nil))...)
	}
	sent := make(chan struct{})
	go func() { // the server does not take all of it
		p.Write(flood)
		close(sent)
	}()
	var c *conn
	s.until(1, func(x *conn) bool { c = x; return x.blockedAt.Load() != 0 || x.calls.Load() == n })
	if calls := c.calls.Load(); calls > n/3 {
		t.Errorf("%d calls of %d were carried out", calls, n)
	}
	for range n { // who takes replies after all gets them
		p.receive()
	}
	<-sent
}

// TestLargeCallsAtATime: of large calls that have come a third as many are carried out at a time as may come, as
// each takes as much memory once more.
func TestLargeCallsAtATime(t *testing.T) {
	const may = 4
	record := chunkSize(1 << 20)
	running, open := make(chan bool, 2*may), make(chan struct{})
	s := NewServer(Config{Log: quiet, RecordBytes: 3 * may * record,
		Programs: []Program{{Number: 77, Version: 1, Procs: []Proc{
			NullProc, {Name: "STORE", Serve: func(*Call) Accept {
				running <- true
				<-open
				return Success
			}},
		}}}})
	s.janitor.Do(func() {})
	s.turns.Hold(1 << 20) // what is looked at is not the processor
	addr := listen(t, s)
	var peers []peer
	for i := range 2 * may {
		p := connectFrom(t, addr, 1+i)
		p.send(mark(callBytes(6, 0, nil)))
		p.receive()
		s.of(p).in.Judge(fair.Proven) // or an eighth is not for it, or half if this machine is slow
		p.send(mark(callBytes(7, 1, make([]byte, 1<<20-1000))))
		peers = append(peers, p)
	}
	for range may {
		<-running
	}
	for s.copies.Waiting()+len(running) < may {
		runtime.Gosched()
	}
	if len(running) > 0 {
		t.Errorf("more than %d are carried out", may)
	}
	close(open)
	for _, p := range peers {
		p.receive()
	}
	if n := s.copies.Held(); n != 0 {
		t.Errorf("%d bytes are not given back", n)
	}
}

// TestHalfRecords: peers send a part of a large call and no more.
func TestHalfRecords(t *testing.T) {
	call := mark(callBytes(7, 2, make([]byte, 1<<20)))
	for _, x := range []struct{ from, n, room int }{{1, 8, 8}, {2, 100, 10}} {
		t.Run(fmt.Sprintf("%d from address %d", x.n, x.from), func(t *testing.T) {
			s, addr := patient(t, Config{})
			others(t, addr, func() {
				for range x.n {
					connectFrom(t, addr, x.from).send(call[:100000])
				}
				s.until(x.room, owes) // the rest waits for room
			})
			s.until(x.room, owes)
		})
	}
}

// of is the server's end of p's connection.
func (s *Server) of(p peer) *conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		if c.nc.RemoteAddr().String() == p.LocalAddr().String() {
			return c
		}
	}
	return nil
}

// settled waits until the server has received all that came on a connection, or does not
// as it has no room for that. It tells which.
func settled(c *conn) (room bool) {
	raw, _ := c.nc.(syscall.Conn).SyscallConn()
	var u unread
	u.init(raw)
	for {
		if owes(c) && !u.some() && owes(c) {
			return true
		}
		if asks(c) {
			return false
		}
	}
}

// TestSlowUploads: peers that send 20 KB/s are never closed, although others wait for the
// memory that they have, and all that they send is carried out. One that stops is closed.
func TestSlowUploads(t *testing.T) {
	s, addr := patient(t, Config{CrowdedTimeout: 5 * time.Second})
	s.cfg.RecordTimeout = time.Minute
	known := connectFrom(t, addr, 1)
	works(t, known)
	works(t, known)
	const n, rate = 16, 20000
	call := mark(callBytes(7, 2, make([]byte, 1<<20)))
	type upload struct {
		peer
		c    *conn
		left []byte
	}
	var stopped peer
	var uploads []*upload
	for i := range n + 1 {
		p := connectFrom(t, addr, 2)
		p.send(call[:10000])
		if i == 0 {
			s.until(1, owes)
			stopped = p
		} else {
			uploads = append(uploads, &upload{p, nil, call[10000:]})
		}
	}
	crowded := false
	for second := 0; len(uploads) > 0; second++ {
		if second == 3 {
			works(t, connectFrom(t, addr, 2)) // a new one from the same address
		}
		for i := 0; i < len(uploads); {
			u := uploads[i]
			u.SetDeadline(time.Now().Add(time.Minute))
			for u.c == nil {
				u.c = s.of(u.peer)
			}
			if settled(u.c) {
				k := min(rate, len(u.left))
				u.send(u.left[:k])
				u.left = u.left[k:]
			} else {
				crowded = true
			}
			if len(u.left) > 0 {
				settled(u.c)
				i++
				continue
			}
			if _, raw := u.receive(); len(raw) != 28+1<<20 {
				t.Errorf("%d bytes", len(raw))
			}
			uploads = append(uploads[:i], uploads[i+1:]...)
		}
		s.judge(s.now() + int64(time.Hour))
		s.sweep(s.tick.Add(1))
		if second == 10 {
			works(t, known)
			stopped.closed("the record that does not go on")
		}
	}
	if !crowded {
		t.Error("nobody waited")
	}
}

// TestFirstWriteBesideHalfRecords: a call of a new client that has come whole is carried out, although as
// many large ones as there is room for stand still, and small ones that stand still do not take what is
// left for it.
func TestFirstWriteBesideHalfRecords(t *testing.T) {
	large := mark(callBytes(7, 2, make([]byte, 1<<20)))
	little := mark(callBytes(7, 2, make([]byte, 5000)))
	for _, x := range []struct{ halves, small, size int }{
		{8, 0, 4096}, {32, 0, 4096}, {32, 90, 4096}, {32, 0, 16 << 10}, {8, 0, 32 << 10},
	} {
		t.Run(fmt.Sprintf("%d bytes beside %d and %d", x.size, x.halves, x.small), func(t *testing.T) {
			s, addr := patient(t, Config{RecordBytes: 10 << 20})
			for range x.halves {
				connectFrom(t, addr, 1).send(large[:100_000])
			}
			s.until(x.halves, func(c *conn) bool { return asks(c) || owes(c) })
			for i := range x.small {
				part := little[:4500]
				if i%2 == 0 {
					part = append([]byte{0, 0, 19, 136}, make([]byte, 5000)...) // a fragment, not the last
				}
				connectFrom(t, addr, 1).send(part)
			}
			s.until(x.halves+x.small, func(c *conn) bool { return asks(c) || owes(c) })
			p := connectFrom(t, addr, 1)
			p.SetDeadline(time.Now().Add(10 * time.Second))
			p.send(mark(callBytes(9, 2, make([]byte, x.size))))
			if _, raw := p.receive(); len(raw) != 28+x.size {
				t.Errorf("%d bytes", len(raw))
			}
			if s.of(p).in.Is(fair.Slow) {
				t.Error("a peer that has sent all is taken for slow")
			}
			for _, m := range []*fair.Memory{s.small, s.copies} {
				if n := m.Held(); n != 0 {
					t.Errorf("%d bytes are not given back", n)
				}
			}
		})
	}
}

// asks tells if a connection waits for the room for a record.
func asks(c *conn) bool {
	for _, a := range []*fair.Account{&c.in, &c.small} {
		if a.Waits() {
			return true
		}
	}
	return false
}
