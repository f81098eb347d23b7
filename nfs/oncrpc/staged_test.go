package oncrpc

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Tests of what happens while a reply is being written. They run in a bubble of
// testing/synctest, on connections without a buffer: a reply is under way until the
// test has read all of it, and synctest.Wait returns when the server has done all it
// can do meanwhile. The clock is that of the bubble.

// staged is the server's end of such a connection. What it reads comes from in, so
// that the peer can end its half.
type staged struct {
	net.Conn
	in     *io.PipeReader
	closed atomic.Bool
}

func (s *staged) Read(p []byte) (int, error) { return s.in.Read(p) }

func (s *staged) Close() error {
	s.closed.Store(true)
	s.in.Close()
	return s.Conn.Close()
}

func stagedServer(t *testing.T, cfg Config, g *gate) *Server {
	cfg.Programs, cfg.Log = []Program{echo(g)}, quiet
	s := NewServer(cfg)
	t.Cleanup(func() {
		if err := s.Shutdown(context.Background()); err != nil {
			t.Errorf("shutdown: %v", err)
		}
	})
	return s
}

// stage connects a peer to s.
func stage(t *testing.T, s *Server) (p peer, in *io.PipeWriter, end *staged) {
	near, far := net.Pipe()
	r, in := io.Pipe()
	end = &staged{Conn: far, in: r}
	s.open(end)
	t.Cleanup(func() { near.Close(); in.Close() })
	return peer{t, near}, in, end
}

// half reads the first half of a reply to an empty echo, and second the rest of it.
func (p peer) half() []byte {
	p.t.Helper()
	b := make([]byte, 16)
	if _, err := io.ReadFull(p, b); err != nil {
		p.t.Fatal(err)
	}
	return b
}

func (p peer) second(first []byte) uint32 {
	p.t.Helper()
	n := 4 + int(binary.BigEndian.Uint32(first)&^lastFragment)
	if _, err := io.ReadFull(p, make([]byte, n-len(first))); err != nil {
		p.t.Fatal(err)
	}
	return binary.BigEndian.Uint32(first[4:])
}

// workerWrites brings a connection to where another goroutine than the reader's is
// writing the reply to call 1.
func workerWrites(p peer, in io.Writer, g *gate) (first []byte) {
	in.Write(append(mark(callBytes(1, 4, nil)), mark(callBytes(2, 1, nil))...))
	p.receive()     // of the echo, which the reader wrote
	synctest.Wait() // for the reader to be done with it; it would write reply 1 as well
	<-g.started
	g.finish <- struct{}{}
	return p.half()
}

// TestRepliesBehindAWriter: replies that wait behind the one being written are not lost
// when the reader comes to its end: because the peer has no more to say, or because
// the server stops.
func TestRepliesBehindAWriter(t *testing.T) {
	for name, end := range map[string]func(s *Server, in *io.PipeWriter){
		"end of the input": func(s *Server, in *io.PipeWriter) { in.Close() },
		"shutdown": func(s *Server, in *io.PipeWriter) {
			go s.Shutdown(context.Background())
			synctest.Wait()
			in.CloseWithError(io.ErrNoProgress) // what the deadline does to a socket
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGate()
				s := stagedServer(t, Config{}, g)
				p, in, _ := stage(t, s)
				first := workerWrites(p, in, g)
				in.Write(mark(callBytes(3, 1, []byte("inline"))))
				in.Write(mark(words(4, 0, 2, 78, 1, 0, 0, 0, 0, 0))) // an error
				synctest.Wait()
				end(s, in)
				synctest.Wait()
				if xid := p.second(first); xid != 1 {
					t.Errorf("reply to %d, want 1", xid)
				}
				synctest.Wait()
				if w, raw := p.receive(); w[0] != 3 || !bytes.Contains(raw, []byte("inline")) {
					t.Errorf("reply to %d, want 3", w[0])
				}
				if w, _ := p.receive(); w[0] != 4 {
					t.Errorf("reply to %d, want 4", w[0])
				}
				p.closed("after the last reply")
			})
		})
	}
}

// one returns the only connection.
func (s *Server) one() *conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		return c
	}
	return nil
}

// crowd makes the server take the peer for one that does not wait for its answers.
func crowd(p peer, in io.Writer) {
	in.Write(append(mark(callBytes(1, 2, []byte("x"))), mark(callBytes(2, 1, nil))...))
	p.receive()
	p.receive()
	synctest.Wait()
}

// TestCallsCountForWhatTheyHold: a call whose arguments take more than half of a chunk
// holds all of it, and counts for that.
func TestCallsCountForWhatTheyHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		s := stagedServer(t, Config{ReplyBytes: 64 * (callSize + smallChunk)}, g)
		p, in, _ := stage(t, s)
		crowd(p, in)
		const calls = 40
		go func() {
			for xid := range uint32(calls) {
				in.Write(mark(callBytes(xid, 4, make([]byte, 3<<10))))
			}
		}()
		synctest.Wait()
		if n := s.one().inFlight; n != 16 { // which are a quarter of ReplyBytes
			t.Errorf("%d calls in progress, want 16", n)
		}
		for range calls {
			<-g.started
			g.finish <- struct{}{}
			p.receive()
		}
	})
}

// TestSmallArgumentsHoldNoChunk: nor does a chunk have to stay for a small call that was
// one of many in it.
func TestSmallArgumentsHoldNoChunk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		s := stagedServer(t, Config{}, g)
		p, in, _ := stage(t, s)
		crowd(p, in)
		chunk := s.one().rr.chunk
		const calls = 40
		for xid := range uint32(calls) {
			in.Write(mark(callBytes(xid, 4, []byte{byte(xid)})))
			for range 4 {
				in.Write(mark(callBytes(99, 1, make([]byte, 4000))))
				p.receive()
			}
		}
		synctest.Wait()
		if c := s.one(); c.rr.chunk != chunk || chunk.refs.Load() != 1 || c.held != calls*callSize {
			t.Errorf("%d calls with small arguments hold chunks, or count %d bytes", c.inFlight, c.held)
		}
		for range calls {
			<-g.started
			g.finish <- struct{}{}
			if w, raw := p.receive(); raw[28] != byte(w[0]) {
				t.Error("arguments were overwritten")
			}
		}
	})
}

// TestInlineRepliesAreBounded: those that wait for another goroutine to write them, and
// those that it is writing.
func TestInlineRepliesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		s := stagedServer(t, Config{}, g)
		p, in, _ := stage(t, s)
		first := workerWrites(p, in, g)
		const calls, size = 100, 1000
		var taken atomic.Int32
		go func() {
			for range calls {
				in.Write(mark(callBytes(3, 1, make([]byte, size))))
				taken.Add(1)
			}
		}()
		synctest.Wait()
		before := taken.Load()
		p.second(first)
		synctest.Wait() // the replies are being written now
		if after := taken.Load(); after != before || before != maxQueued/(size+32)+1 {
			t.Errorf("%d calls taken, then %d", before, after)
		}
		for range calls {
			p.receive()
		}
	})
}

// TestSlowPeerGetsAll: a peer that takes its replies slowly, but does, is not closed,
// however much waits for it. One that stops is.
func TestSlowPeerGetsAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stagedServer(t, Config{WriteTimeout: 10 * time.Second}, nil)
		p, in, end := stage(t, s)
		crowd(p, in)
		const calls, rate = 4, 64 << 10
		go func() {
			for xid := range uint32(calls) {
				in.Write(mark(words(xid, 0, 2, 77, 1, 5, 0, 0, 0, 0, 1<<20)))
			}
		}()
		left := calls*(1<<20+32) - rate
		for b := make([]byte, rate); left > 0; left -= rate {
			if _, err := io.ReadFull(p, b); err != nil {
				t.Fatalf("%v, with %d bytes left", err, left)
			}
			s.sweep(s.tick.Add(1)) // a second later
		}
		synctest.Wait()
		s.sweep(s.tick.Add(12))
		if !end.closed.Load() {
			t.Error("a peer that does not take its replies is not closed")
		}
	})
}

// oneConn is a listener that has one connection to accept.
type oneConn struct {
	conn   chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *oneConn) Accept() (net.Conn, error) {
	select {
	case c := <-l.conn:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *oneConn) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *oneConn) Addr() net.Addr { return &net.TCPAddr{} }

// TestShutdownOfADeafPeer: a peer that does not take its replies does not keep a
// stopping server for ever.
func TestShutdownOfADeafPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stagedServer(t, Config{WriteTimeout: 5 * time.Second}, nil)
		near, far := net.Pipe()
		defer near.Close()
		l := &oneConn{conn: make(chan net.Conn, 1), closed: make(chan struct{})}
		l.conn <- far
		go s.Serve(l)
		near.Write(mark(callBytes(1, 1, nil)))
		synctest.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	})
}

// lingering is a connection that can end its half, as a socket.
type lingering struct {
	net.Conn
	closed atomic.Bool
}

func (l *lingering) CloseWrite() error { return nil }

func (l *lingering) Close() error {
	l.closed.Store(true)
	return l.Conn.Close()
}

// TestShutdownAgain: a second Shutdown does not cut short what the first lets end.
func TestShutdownAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stagedServer(t, Config{}, nil)
		near, far := net.Pipe()
		defer near.Close()
		c := &lingering{Conn: far}
		s.open(c)
		for range 2 {
			go s.Shutdown(context.Background())
			synctest.Wait()
		}
		if c.closed.Load() {
			t.Error("closed before the peer saw the end")
		}
		time.Sleep(2 * lingerTime)
		if !c.closed.Load() {
			t.Error("still open")
		}
	})
}

// TestLateConnection: one that comes while the server stops is not one too many.
func TestLateConnection(t *testing.T) {
	var log bytes.Buffer
	s := NewServer(Config{Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err := s.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	near, far := net.Pipe()
	s.open(far)
	peer{t, near}.closed("late")
	if log.Len() > 0 {
		t.Errorf("logged: %s", log.String())
	}
}
