package oncrpc

import (
	"context"
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
)

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

// A peer that calls one by one is served by the goroutine of its connection. When
// it begins to call while another call runs, its calls run at the same time again.
func TestCallsOneByOne(t *testing.T) {
	g := newGate()
	s, addr := serveEcho(t, Config{}, g)
	p := connect(t, addr)
	for range 3 {
		for range loneNotFor + loneAfter {
			p.send(mark(callBytes(7, 2, []byte("abc"))))
			p.receive()
		}
		p.send(mark(callBytes(1, 4, []byte("one"))))
		<-g.started
		c := onlyConn(t, s)
		if c.pending() {
			t.Fatal("a lone call runs on another goroutine")
		}
		p.send(mark(callBytes(2, 4, []byte("two"))))
		for !c.readable() { // it is on its way
		}
		g.finish <- struct{}{}
		<-g.started
		p.send(mark(callBytes(3, 4, []byte("three"))))
		<-g.started // beside the second
		g.finish <- struct{}{}
		g.finish <- struct{}{}
		seen := map[uint32]bool{}
		for range 3 {
			w, _ := p.receive()
			seen[w[0]] = true
		}
		if len(seen) != 3 {
			t.Errorf("answers %v", seen)
		}
	}
}

// Calls that come together are answered, alone or not; so is one that panics.
func TestLoneCallsAnswered(t *testing.T) {
	_, addr := serveEcho(t, Config{}, nil)
	p := connect(t, addr)
	for i := range uint32(200) {
		proc := 2 + i%50/49 // SLOWECHO, at times PANIC
		p.send(mark(callBytes(i, proc, []byte("abc"))))
		w, _ := p.receive()
		if w[0] != i || w[5] != (proc-2)*5 {
			t.Fatalf("answer %v to call %d of procedure %d", w, i, proc)
		}
		if i%20 == 19 {
			p.send(append(mark(callBytes(i, 1, nil)), mark(callBytes(i, 2, nil))...))
			p.receive()
			p.receive()
		}
	}
}

// plainListener hides the descriptors of its connections, so that no call runs alone.
type plainListener struct{ net.Listener }

type plainConn struct{ *net.TCPConn }

func (plainConn) SyscallConn() (syscall.RawConn, error) { return nil, errors.ErrUnsupported }

func (l plainListener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return plainConn{nc.(*net.TCPConn)}, nil
}

// BenchmarkOneByOne is the time from a call to its reply, the next call waiting for
// it, with a second goroutine for each call and without.
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
