package oncrpc

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"runtime"
	"testing"
	"time"
)

// Procedures of lonely, none of them inline but NULL.
const (
	procWhere = 1 + iota // tells if it runs on the connection's goroutine
	procWait             // says so, too, when it may finish
	procPanic
	procBytes // returns as many as asked for
	procOpen  // lets a call of procWait finish
)

// lonely is a program for these tests.
func lonely(g *gate) Program {
	where := func(c *Call) Accept {
		stack := make([]byte, 16<<10)
		c.Reply.Bool(bytes.Contains(stack[:runtime.Stack(stack, false)], []byte("(*conn).run(")))
		return Success
	}
	return Program{Number: 77, Version: 1, Procs: []Proc{
		NullProc,
		procWhere: {Name: "WHERE", Serve: where},
		procWait: {Name: "WAIT", Serve: func(c *Call) Accept {
			g.started <- struct{}{}
			<-g.finish
			return where(c)
		}},
		procPanic: {Name: "PANIC", Serve: func(*Call) Accept { panic("as asked") }},
		procBytes: {Name: "BYTES", Serve: func(c *Call) Accept {
			g.started <- struct{}{}
			c.Reply.Data(make([]byte, c.Args.Uint32()))
			return Success
		}},
		procOpen: {Name: "OPEN", Serve: func(*Call) Accept { g.finish <- struct{}{}; return Success }},
	}}
}

func loneCall(xid, proc uint32, args ...uint32) []byte {
	return mark(append(words(xid, 0, 2, 77, 1, proc, 0, 0, 0, 0), words(args...)...))
}

// calls makes n calls one by one, and returns how many ran on the connection's
// goroutine.
func (p peer) calls(n int) (here int) {
	p.t.Helper()
	for i := range n {
		p.send(loneCall(uint32(i), procWhere))
		w, _ := p.receive()
		if w[0] != uint32(i) || len(w) != 7 {
			p.t.Fatalf("answer %v to call %d", w, i)
		}
		here += int(w[6])
	}
	return here
}

// makeLone makes calls one by one for long enough, whatever came before.
func (p peer) makeLone() {
	p.t.Helper()
	p.calls(loneNotFor + loneAfter)
	if p.calls(3) != 3 {
		p.t.Fatal("calls that come one by one are handed over")
	}
}

func (p peer) answer(xid, here uint32) {
	p.t.Helper()
	if w, _ := p.receive(); w[0] != xid || len(w) != 7 || w[6] != here {
		p.t.Errorf("answer %v to call %d, on the connection's goroutine: %d", w, xid, here)
	}
}

// onlyConn is the server's end of its one connection.
func onlyConn(t *testing.T, s *Server) *conn {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		return c
	}
	t.Fatal("no connection")
	return nil
}

// Calls that come one by one run on the goroutine of their connection after a while,
// and not after calls of another kind.
func TestCallsOneByOne(t *testing.T) {
	_, addr := serveProgram(t, Config{}, lonely(nil))
	p := connect(t, addr)
	if n := p.calls(loneAfter); n != 0 {
		t.Errorf("%d of the first calls run on the connection's goroutine", n)
	}
	for name, between := range map[string]func(){
		"inline calls": func() {
			p.send(append(loneCall(1, 0), loneCall(2, 0)...))
			p.receive()
			p.receive()
		},
		"a panic": func() {
			p.send(loneCall(1, procPanic))
			if w, _ := p.receive(); fmt.Sprint(w) != "[1 1 0 0 0 5]" {
				t.Errorf("answer %v to a call that panics", w)
			}
		},
	} {
		p.makeLone()
		between()
		if n := p.calls(5); n != 5 {
			t.Errorf("%d of 5 calls run on the connection's goroutine after %s", n, name)
		}
	}
	for name, between := range map[string]func(){
		"two calls together": func() {
			p.send(append(loneCall(1, procWhere), loneCall(2, procWhere)...))
			p.receive()
			p.receive()
		},
		"an inline call before another": func() {
			p.send(append(loneCall(1, 0), loneCall(2, procWhere)...))
			p.receive()
			p.receive()
		},
		"a large call": func() {
			p.send(mark(callBytes(1, procWhere, make([]byte, smallChunk))))
			p.receive()
		},
	} {
		p.makeLone()
		between()
		if n := p.calls(loneAfter); n > 1 { // the last call together with another may count
			t.Errorf("%d of the calls after %s run on the connection's goroutine", n, name)
		}
	}
}

// Calls do not come one by one while another is in progress.
func TestCallsBesideAnother(t *testing.T) {
	g := newGate()
	_, addr := serveProgram(t, Config{}, lonely(g))
	p := connect(t, addr)
	p.send(loneCall(1, procWait))
	<-g.started
	if n := p.calls(2 * loneAfter); n != 0 {
		t.Errorf("%d calls run on the connection's goroutine", n)
	}
	g.finish <- struct{}{}
	p.answer(1, 0)
}

// When a call comes while another runs on the connection's goroutine, it is served
// after that, and the next ones run at the same time again.
func TestCallBehindLoneCall(t *testing.T) {
	g := newGate()
	s, addr := serveProgram(t, Config{}, lonely(g))
	p := connect(t, addr)
	p.makeLone()
	p.send(loneCall(1, procWait))
	<-g.started
	p.send(loneCall(2, procWait))
	for c := onlyConn(t, s); !peeked(c); { // it is on its way
	}
	g.finish <- struct{}{}
	p.answer(1, 1)
	<-g.started
	p.send(loneCall(3, procWait))
	<-g.started // beside the second
	g.finish <- struct{}{}
	g.finish <- struct{}{}
	p.receive()
	p.receive()
	if n := p.calls(loneNotFor - 3); n != 0 {
		t.Errorf("%d of the next calls run on the connection's goroutine", n)
	}
	p.makeLone()
}

// peeked tells if there is something to receive; the connection does not receive now.
func peeked(c *conn) bool {
	l := newLone(c.nc)
	l.raw.Read(l.look)
	return l.found
}

// A call on its connection's goroutine may wait for one of another connection, also
// if that runs on its own connection's goroutine.
func TestLoneCallWaitsForAnother(t *testing.T) {
	g := newGate()
	_, addr := serveProgram(t, Config{}, lonely(g))
	p, q := connect(t, addr), connect(t, addr)
	p.makeLone()
	q.makeLone()
	p.send(loneCall(1, procWait))
	<-g.started
	if q.calls(5) != 5 {
		t.Error("another connection's calls are handed over")
	}
	q.send(loneCall(2, procOpen))
	q.receive()
	p.answer(1, 1)
}

// A connection whose goroutine runs a call is not idle, and shuts down like others.
func TestLoneCallInProgress(t *testing.T) {
	g := newGate()
	s, addr := serveProgram(t, Config{}, lonely(g))
	p := connect(t, addr)
	p.makeLone()
	p.send(loneCall(1, procWait))
	<-g.started
	s.sweep(s.tick.Load() + 1<<20)
	down := make(chan error)
	go func() { down <- s.Shutdown(context.Background()) }()
	<-s.stop
	g.finish <- struct{}{}
	p.answer(1, 1)
	p.closed("after its reply")
	p.Close()
	if err := <-down; err != nil {
		t.Error(err)
	}
}

// A peer that calls one by one and takes no replies is not read, then closed; one that
// takes them late gets them all.
func TestLoneCallsUnread(t *testing.T) {
	g := newGate()
	s, addr := serveProgram(t, Config{}, lonely(g))
	const size = smallChunk / 2
	for _, late := range []bool{true, false} {
		p := connect(t, addr)
		p.Conn.(*net.TCPConn).SetReadBuffer(4 << 10)
		p.makeLone()
		c := onlyConn(t, s)
		c.nc.(*net.TCPConn).SetWriteBuffer(4 << 10)
		sent := uint32(0)
		for read := true; read; sent++ {
			p.send(loneCall(sent, procBytes, size))
			<-g.started
			read = !stuck(c)
		}
		if late {
			for xid := range sent {
				if w, raw := p.receive(); w[0] != xid || len(raw) != 28+size {
					t.Fatalf("answer %d of %d bytes to call %d", w[0], len(raw), xid)
				}
			}
			p.calls(3)
			p.Close()
		} else {
			s.sweep(s.tick.Load() + int64(s.cfg.WriteTimeout/time.Second) + 2)
		}
		for s.Conns() > 0 {
			time.Sleep(time.Millisecond)
		}
	}
	s.budget.mu.Lock()
	defer s.budget.mu.Unlock()
	if s.budget.left != s.budget.all {
		t.Errorf("%d bytes of %d left", s.budget.left, s.budget.all)
	}
}

// stuck waits until the connection waits, for its peer to call (false) or to take a reply.
func stuck(c *conn) bool {
	for writes := 0; writes < 50; writes++ {
		if c.waiting.Load() {
			return false
		}
		if c.writeSince.Load() == 0 {
			writes = 0
		}
		time.Sleep(time.Millisecond)
	}
	return true
}

// BenchmarkOneByOne is the time from a call to its reply, the next call waiting for
// it, when calls are handed over to another goroutine and when not.
func BenchmarkOneByOne(b *testing.B) {
	for _, alone := range []bool{false, true} {
		b.Run(map[bool]string{false: "handed over", true: "alone"}[alone], func(b *testing.B) {
			s := NewServer(Config{Programs: []Program{echo(nil)}, Log: quiet})
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				b.Fatal(err)
			}
			addr := l.Addr().String()
			if !alone {
				l = plainListener{l}
			}
			go s.Serve(l)
			defer s.Shutdown(context.Background())
			nc, err := net.Dial("tcp", addr)
			if err != nil {
				b.Fatal(err)
			}
			defer nc.Close()
			call, reply := mark(callBytes(1, 2, []byte("abc"))), make([]byte, 4+28+4)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := nc.Write(call); err != nil {
					b.Fatal(err)
				}
				if _, err := io.ReadFull(nc, reply); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// plainListener's connections do not let one look at what is to be received.
type plainListener struct{ net.Listener }

func (l plainListener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	return struct{ net.Conn }{nc}, err
}
