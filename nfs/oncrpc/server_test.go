package oncrpc

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"
)

// echo is a program for the tests: procedure 0 NULL, 1 returns its opaque
// inline, 2 on a goroutine and without copying it, 3 panics, 4 waits for gate, 5
// returns as many zeros as asked for.
func echo(g *gate) Program {
	serve := func(c *Call) Accept {
		b := c.Args.Opaque(1 << 20)
		if !c.Args.Ok() {
			return GarbageArgs
		}
		c.Reply.Opaque(b)
		return Success
	}
	return Program{Number: 77, Version: 1, Procs: []Proc{
		NullProc,
		{Name: "ECHO", Inline: true, Serve: serve},
		{Name: "SLOWECHO", Serve: func(c *Call) Accept {
			b := append([]byte(nil), c.Args.Opaque(1<<20)...)
			if !c.Args.Ok() {
				return GarbageArgs
			}
			c.Reply.Data(Bytes(b))
			return Success
		}},
		{Name: "PANIC", Serve: func(c *Call) Accept { panic("as asked") }},
		{Name: "WAIT", Serve: func(c *Call) Accept { return waitFor(g, c) }},
		{Name: "ZEROS", Serve: func(c *Call) Accept {
			c.Reply.Data(Bytes(make([]byte, c.Args.Uint32())))
			return Success
		}, Weight: func(d Decoder) int { return int(d.Uint32()) }},
	}}
}

// gate holds calls of procedure 4: each says that it started and waits until it
// may finish.
type gate struct{ started, finish chan struct{} }

func newGate() *gate { return &gate{make(chan struct{}), make(chan struct{})} }

func waitFor(g *gate, c *Call) Accept {
	g.started <- struct{}{}
	<-g.finish
	// The arguments must still be what was sent.
	c.Reply.Opaque(c.Args.Opaque(1 << 20))
	return Success
}

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

func serveEcho(t *testing.T, cfg Config, g *gate) (*Server, string) {
	t.Helper()
	cfg.Programs, cfg.Log = []Program{echo(g)}, quiet
	s := NewServer(cfg)
	return s, listen(t, s)
}

// listen starts a server on a port of its own, and returns its address.
func listen(t *testing.T, s *Server) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(l)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
	})
	return l.Addr().String()
}

// peer is the client's end of a connection.
type peer struct {
	t *testing.T
	net.Conn
}

func connect(t *testing.T, addr string) peer {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	nc.SetDeadline(time.Now().Add(20 * time.Second)) // a test that hangs shall fail
	t.Cleanup(func() { nc.Close() })
	return peer{t, nc}
}

func (p peer) send(b []byte) {
	p.t.Helper()
	if _, err := p.Write(b); err != nil {
		p.t.Fatal(err)
	}
}

// receive returns the next reply's words and raw bytes.
func (p peer) receive() (words []uint32, raw []byte) {
	p.t.Helper()
	var m [4]byte
	if _, err := io.ReadFull(p, m[:]); err != nil {
		p.t.Fatal(err)
	}
	raw = make([]byte, binary.BigEndian.Uint32(m[:])&^lastFragment)
	if _, err := io.ReadFull(p, raw); err != nil {
		p.t.Fatal(err)
	}
	for i := 0; i+4 <= len(raw); i += 4 {
		words = append(words, binary.BigEndian.Uint32(raw[i:]))
	}
	return words, raw
}

// closed checks that the server hangs up without another word.
func (p peer) closed(what string) {
	p.t.Helper()
	n, err := p.Read(make([]byte, 1))
	var ne net.Error
	if n != 0 || err == nil || errors.As(err, &ne) && ne.Timeout() {
		p.t.Errorf("%s: the connection is still open (%d, %v)", what, n, err)
	}
}

func words(w ...uint32) []byte {
	e := NewEncoder(nil)
	for _, x := range w {
		e.Uint32(x)
	}
	return e.Bytes()
}

// callBytes is a call of echo with AUTH_NONE, without its mark.
func callBytes(xid, proc uint32, arg []byte) []byte {
	e := NewEncoder(words(xid, 0, 2, 77, 1, proc, 0, 0, 0, 0))
	e.Opaque(arg)
	return e.Bytes()
}

func TestAnswers(t *testing.T) {
	_, addr := serveEcho(t, Config{}, nil)
	p := connect(t, addr)
	for _, x := range []struct {
		name string
		call []byte
		want []uint32 // behind the xid
	}{
		{"null", words(9, 0, 2, 77, 1, 0, 0, 0, 0, 0), []uint32{1, 0, 0, 0, 0}},
		{"echo", callBytes(9, 1, []byte("abc")), []uint32{1, 0, 0, 0, 0, 3, 0x61626300}},
		{"echo on a goroutine", callBytes(9, 2, []byte("abc")), []uint32{1, 0, 0, 0, 0, 3, 0x61626300}},
		{"no such program", words(9, 0, 2, 78, 1, 0, 0, 0, 0, 0), []uint32{1, 0, 0, 0, 1}},
		{"no such version", words(9, 0, 2, 77, 2, 0, 0, 0, 0, 0), []uint32{1, 0, 0, 0, 2, 1, 1}},
		{"no such procedure", words(9, 0, 2, 77, 1, 6, 0, 0, 0, 0), []uint32{1, 0, 0, 0, 3}},
		{"string too long", words(9, 0, 2, 77, 1, 1, 0, 0, 0, 0, 0xffffffff, 1), []uint32{1, 0, 0, 0, 4}},
		{"string too long, on a goroutine", words(9, 0, 2, 77, 1, 2, 0, 0, 0, 0, 0xffffffff, 1), []uint32{1, 0, 0, 0, 4}},
		{"no arguments", words(9, 0, 2, 77, 1, 1, 0, 0, 0, 0), []uint32{1, 0, 0, 0, 4}},
		{"panic", words(9, 0, 2, 77, 1, 3, 0, 0, 0, 0), []uint32{1, 0, 0, 0, 5}},
		{"rpc version", words(9, 0, 3), []uint32{1, 1, 0, 2, 2}},
		{"header too short", words(9, 0, 2, 77), []uint32{1, 0, 0, 0, 4}},
		{"no credentials", words(9, 0, 2, 77, 1, 0), []uint32{1, 0, 0, 0, 4}},
		{"unknown flavor", words(9, 0, 2, 77, 1, 0, 6, 0, 0, 0), []uint32{1, 1, 1, 2}},
		{"bad credentials", words(9, 0, 2, 77, 1, 0, 1, 4, 5, 0, 0), []uint32{1, 1, 1, 1}},
		{"credentials too long", words(9, 0, 2, 77, 1, 0, 1, 404), []uint32{1, 1, 1, 1}},
		{"verifier too long", words(9, 0, 2, 77, 1, 0, 0, 0, 0, 404), []uint32{1, 1, 1, 3}},
	} {
		p.send(mark(x.call))
		got, _ := p.receive()
		if want := append([]uint32{9}, x.want...); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", x.name, got, want)
		}
	}
}

func TestFragments(t *testing.T) {
	_, addr := serveEcho(t, Config{}, nil)
	p := connect(t, addr)
	call := callBytes(5, 1, bytes.Repeat([]byte("fragment"), 100))
	var one [][]byte
	for i := range call {
		one = append(one, call[i:i+1])
	}
	for _, stream := range [][]byte{mark(one...), mark(nil, call[:10], nil, call[10:], nil)} {
		p.send(stream)
		if _, raw := p.receive(); !bytes.Equal(raw[28:], call[44:]) {
			t.Errorf("wrong echo of %d bytes", len(raw))
		}
	}
	// Byte by byte on the wire, too.
	for _, b := range mark(call) {
		p.send([]byte{b})
	}
	if _, raw := p.receive(); !bytes.Equal(raw[28:], call[44:]) {
		t.Errorf("wrong echo of %d bytes", len(raw))
	}
}

func TestHangsUp(t *testing.T) {
	_, addr := serveEcho(t, Config{}, nil)
	for name, b := range map[string][]byte{
		"oversize record": {0xff, 0xff, 0xff, 0xff},
		"a reply":         mark(words(1, 1, 0, 0, 0, 0)),
		"empty record":    mark(nil),
		"http":            []byte("GET / HTTP/1.0\r\n\r\n"),
	} {
		p := connect(t, addr)
		p.send(b)
		p.closed(name)
	}
	// Others are not disturbed.
	p := connect(t, addr)
	p.send(mark(callBytes(1, 1, nil)))
	p.receive()
}

// TestPipelining sends calls of all kinds and sizes at once, from several
// connections, and checks that each gets its own answer.
func TestPipelining(t *testing.T) {
	_, addr := serveEcho(t, Config{RecordBytes: 2 << 20, ReplyBytes: 4 << 20}, nil)
	var wg sync.WaitGroup
	for k := range 4 {
		p := connect(t, addr)
		const n = 400
		arg := func(xid uint32) []byte {
			size := int(xid*7919) % 500
			if xid%16 == 0 {
				size *= 600
			}
			return bytes.Repeat([]byte{byte(xid), byte(k)}, size)
		}
		wg.Add(2)
		go func() {
			defer wg.Done()
			for xid := uint32(1); xid <= n; xid++ {
				if _, err := p.Write(mark(callBytes(xid, 1+xid%2, arg(xid)))); err != nil {
					t.Error(err)
					return
				}
			}
		}()
		go func() {
			defer wg.Done()
			seen := map[uint32]bool{}
			for range n {
				var m [4]byte
				if _, err := io.ReadFull(p, m[:]); err != nil {
					t.Error(err)
					return
				}
				raw := make([]byte, binary.BigEndian.Uint32(m[:])&^lastFragment)
				if _, err := io.ReadFull(p, raw); err != nil {
					t.Error(err)
					return
				}
				xid := binary.BigEndian.Uint32(raw)
				if seen[xid] {
					t.Errorf("two answers to %d", xid)
				}
				seen[xid] = true
				if want := callBytes(0, 0, arg(xid))[40:]; !bytes.Equal(raw[24:], want) {
					t.Errorf("answer to %d is wrong", xid)
				}
			}
		}()
	}
	wg.Wait()
}

// TestArgumentsStay holds calls in progress while the connection receives much
// more: their arguments must not change.
func TestArgumentsStay(t *testing.T) {
	g := newGate()
	s, addr := serveEcho(t, Config{}, g)
	p := connect(t, addr)
	for xid, size := range []int{10, 3000, 10000, 100000, 1 << 20} {
		arg := bytes.Repeat([]byte{byte(xid + 1)}, size)
		p.send(mark(callBytes(uint32(xid), 4, arg)))
		<-g.started
		s.sweep(s.tick.Add(2)) // the first is alone until then
		for range 40 {
			p.send(mark(callBytes(99, 1, make([]byte, size/8))))
			p.receive()
		}
		g.finish <- struct{}{}
		if words, raw := p.receive(); words[0] != uint32(xid) || !bytes.Equal(raw[28:28+size], arg) {
			t.Errorf("arguments of %d bytes were overwritten", size)
		}
	}
}

// TestCallsInFlight checks that calls of one connection run at the same time, and
// that the bound holds.
func TestCallsInFlight(t *testing.T) {
	g := newGate()
	s, addr := serveEcho(t, Config{MaxInFlight: 3}, g)
	p := connect(t, addr)
	for xid := range uint32(5) {
		p.send(mark(callBytes(xid, 4, nil)))
	}
	p.send(mark(callBytes(9, 1, nil)))
	<-g.started
	s.sweep(s.tick.Add(2)) // if the first came alone
	for range 2 {
		<-g.started
	}
	// The fourth waits for one of these three. Let all pass, one by one: each
	// send ends a call, each receive is a start.
	starts, ends := 3, 0
	for ends < 5 {
		select {
		case g.finish <- struct{}{}:
			ends++
		case <-g.started:
			starts++
		}
		if starts-ends > 3 {
			t.Fatal("more than three at a time")
		}
	}
	seen := map[uint32]bool{}
	for range 6 {
		w, _ := p.receive()
		seen[w[0]] = true
	}
	if len(seen) != 6 {
		t.Errorf("answers: %v", seen)
	}
}

// TestLoneCall holds a call that came alone, time and again: at the next tick but
// one the connection goes on without it, and its answer comes when it is done.
func TestLoneCall(t *testing.T) {
	g := newGate()
	s, addr := serveEcho(t, Config{}, g)
	p := connect(t, addr)
	for range 10 {
		for range crowdCalls { // until the connection has forgotten the last round
			p.send(mark(callBytes(3, 2, nil)))
			p.receive()
		}
		p.send(mark(callBytes(1, 4, []byte("first"))))
		<-g.started
		p.send(mark(callBytes(2, 2, []byte("next"))))
		s.sweep(s.tick.Add(2))
		if w, _ := p.receive(); w[0] != 2 {
			t.Fatalf("answer to %d, want that to 2", w[0])
		}
		g.finish <- struct{}{}
		if w, raw := p.receive(); w[0] != 1 || string(raw[28:33]) != "first" {
			t.Fatalf("answer to %d, want that to 1", w[0])
		}
	}
}

// TestNotAlone: a peer that sends its next call while one is in progress has its
// calls run at the same time, from the second on.
func TestNotAlone(t *testing.T) {
	g := newGate()
	s := NewServer(Config{Programs: []Program{echo(g)}, Log: quiet})
	s.janitor.Do(func() {}) // nobody else reads on
	p := connect(t, listen(t, s))
	p.send(mark(callBytes(1, 4, nil)))
	<-g.started
	p.send(mark(callBytes(2, 4, nil)))
	for at := time.Now(); time.Since(at) <= inPassing; { // else nobody asks whether more has come
		runtime.Gosched()
	}
	g.finish <- struct{}{}
	p.receive()
	<-g.started
	p.send(append(mark(callBytes(9, 1, nil)), mark(callBytes(3, 4, nil))...))
	p.receive() // the echo
	<-g.started
	for range 2 {
		g.finish <- struct{}{}
		p.receive()
	}
}

// TestSlowReader asks for much and reads nothing: the memory held stays below
// the budget, other connections go on, and the answers come when it reads.
func TestSlowReader(t *testing.T) {
	s, addr := serveEcho(t, Config{ReplyBytes: 8 << 20}, nil)
	slow := connect(t, addr)
	const n, size = 40, 1 << 20
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for xid := range uint32(n) {
			slow.Write(mark(append(words(xid, 0, 2, 77, 1, 5, 0, 0, 0, 0), words(size)...)))
		}
	}()
	<-sent
	other := connect(t, addr)
	for xid := range uint32(100) {
		other.send(mark(callBytes(xid, 2, []byte("x"))))
		other.receive()
	}
	if held := s.calls.Held(); held > 2<<20 {
		t.Errorf("one connection holds %d bytes", held)
	}
	for range n {
		if _, raw := slow.receive(); len(raw) != 28+size {
			t.Fatalf("%d bytes", len(raw))
		}
	}
}

// TestHalfClose: a client that has said all it has to say gets its answers.
func TestHalfClose(t *testing.T) {
	_, addr := serveEcho(t, Config{}, nil)
	p := connect(t, addr)
	for xid := range uint32(20) {
		p.send(mark(callBytes(xid, 1+xid%2, []byte("x"))))
	}
	p.Conn.(*net.TCPConn).CloseWrite()
	for range 20 {
		p.receive()
	}
	p.closed("after the answers")
}

// TestOverdue drives the janitor's clock by hand.
func TestOverdue(t *testing.T) {
	g := newGate()
	s, addr := serveEcho(t, Config{IdleTimeout: 500 * time.Second, RecordTimeout: 50 * time.Second}, g)
	// settled waits until all n connections wait in Read.
	settled := func(n int) {
		for waiting := 0; waiting != n; {
			waiting = 0
			s.mu.Lock()
			for c := range s.conns {
				if c.waiting.Load() {
					waiting++
				}
			}
			s.mu.Unlock()
		}
	}
	idle, partial, busy := connect(t, addr), connect(t, addr), connect(t, addr)
	busy.send(mark(callBytes(1, 4, []byte("x"))))
	<-g.started
	s.sweep(s.tick.Add(2)) // another goroutine reads on
	idle.send(mark(callBytes(1, 1, nil)))
	idle.receive()
	partial.send(mark(callBytes(1, 1, nil)))
	partial.receive()
	call := mark(callBytes(2, 1, nil))
	partial.send(call[:10])
	// Wait until the ten bytes arrived.
	for since := int64(0); since == 0; {
		s.mu.Lock()
		for c := range s.conns {
			since += c.recordSince.Load()
		}
		s.mu.Unlock()
	}
	settled(3)
	now := s.tick.Load()
	s.sweep(now + 49)
	partial.send(call[10:20]) // this does not win time
	settled(3)
	s.sweep(now + 60)
	partial.closed("record not finished")
	idle.send(mark(callBytes(1, 1, nil)))
	idle.receive()
	settled(2)
	s.sweep(s.tick.Load() + 510)
	idle.closed("idle")
	g.finish <- struct{}{}
	if w, _ := busy.receive(); w[0] != 1 {
		t.Error("a connection with a call in progress was closed")
	}
}

// TestShutdown finishes what was started and nothing else.
func TestShutdown(t *testing.T) {
	g := newGate()
	s, addr := serveEcho(t, Config{}, g)
	p, q := connect(t, addr), connect(t, addr)
	p.send(mark(callBytes(1, 4, []byte("keep me"))))
	<-g.started

	// The context is over before the call is.
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.Shutdown(ctx) }()
	q.closed("idle connection")
	if _, err := net.Dial("tcp", addr); err == nil {
		t.Error("still listening")
	}
	select {
	case err := <-done:
		t.Fatalf("shutdown did not wait: %v", err)
	default:
	}
	g.finish <- struct{}{}
	if w, raw := p.receive(); w[0] != 1 || string(raw[28:35]) != "keep me" {
		t.Errorf("the reply was lost: %v", w)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	cancel()
	p.closed("after its reply")
	if l, err := net.Listen("tcp", "127.0.0.1:0"); err == nil {
		if err := s.Serve(l); err != ErrClosed {
			t.Errorf("Serve after Shutdown: %v", err)
		}
	}
}

// TestShutdownDelivers: what the peer has sent and nobody will read does not cost it
// the replies on their way: it sees them, and then the end, not a reset.
func TestShutdownDelivers(t *testing.T) {
	g := newGate()
	s, addr := serveEcho(t, Config{MaxInFlight: 1}, g)
	p := connect(t, addr)
	p.send(mark(callBytes(1, 4, nil)))
	<-g.started
	for i := range 20 {
		p.send(mark(callBytes(uint32(2+i), 2, make([]byte, 4000)))) // these wait, most of them unread
	}
	down := make(chan error)
	go func() { down <- s.Shutdown(context.Background()) }()
	<-s.stop
	g.finish <- struct{}{}
	var got []uint32
	for {
		var m [4]byte
		if _, err := io.ReadFull(p, m[:]); err != nil {
			if err != io.EOF {
				t.Errorf("after the replies %d: %v", got, err)
			}
			break
		}
		raw := make([]byte, binary.BigEndian.Uint32(m[:])&^lastFragment)
		if _, err := io.ReadFull(p, raw); err != nil {
			t.Fatal(err)
		}
		got = append(got, binary.BigEndian.Uint32(raw))
	}
	if len(got) == 0 || got[0] != 1 {
		t.Errorf("replies %d", got)
	}
	p.Close()
	if err := <-down; err != nil {
		t.Error(err)
	}
}

func TestShutdownDeadline(t *testing.T) {
	g := newGate()
	s, addr := serveEcho(t, Config{}, g)
	p := connect(t, addr)
	p.send(mark(callBytes(1, 4, nil)))
	<-g.started
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Shutdown(ctx); err != context.Canceled {
		t.Errorf("shutdown: %v", err)
	}
	p.closed("after the deadline")
	g.finish <- struct{}{}
}

// A peer that takes nothing of its replies does not keep a server from stopping.
func TestShutdownStalled(t *testing.T) {
	s, addr := serveEcho(t, Config{WriteTimeout: time.Hour}, nil)
	p := connect(t, addr)
	for i := range 32 {
		p.send(mark(append(words(uint32(i), 0, 2, 77, 1, 5, 0, 0, 0, 0), words(1<<20)...)))
	}
	stalled := func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		for c := range s.conns {
			if c.mu.TryLock() {
				full := c.writing && c.blocked
				c.mu.Unlock()
				return full
			}
		}
		return false
	}
	for !stalled() {
		time.Sleep(time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		t.Errorf("shutdown: %v", err)
	}
}

// TestInlineThatWaits: an inline procedure that waits for another call must not
// keep that call from being read for ever after: the connection learns.
func TestInlineThatWaits(t *testing.T) {
	wait, over := make(chan struct{}), make(chan struct{})
	s := NewServer(Config{Log: quiet, Programs: []Program{{Number: 77, Version: 1, Procs: []Proc{
		NullProc,
		{Name: "SLEEP", Inline: true, Serve: func(*Call) Accept { time.Sleep(2 * slowInline); return Success }},
		{Name: "WAIT", Inline: true, Serve: func(*Call) Accept {
			select {
			case <-wait:
			case <-over:
			}
			return Success
		}},
		{Name: "GO", Inline: true, Serve: func(*Call) Accept { wait <- struct{}{}; return Success }},
	}}}})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(l)
	defer s.Shutdown(context.Background())
	defer close(over)
	p := connectBriefly(t, l.Addr().String())
	for range 2 { // once might be by chance
		p.send(mark(callBytes(1, 1, nil)))
		p.receive()
	}
	p.send(append(mark(callBytes(2, 2, nil)), mark(callBytes(3, 3, nil))...))
	p.receive()
	p.receive()
}

// TestShy: inline calls are run like all others for a while when they took long twice in succession, not when they did
// once, and not while others wait for the processors.
func TestShy(t *testing.T) {
	const long, short, crowded = 2 * slowInline, slowInline, true
	var c conn
	for i, x := range []struct {
		took    time.Duration
		crowded bool
		shy     bool
	}{
		{long, !crowded, false}, {short, !crowded, false}, {long, !crowded, false}, {long, crowded, false},
		{long, !crowded, false}, {long, !crowded, true}, {long, !crowded, true}, {short, !crowded, false},
		{long, !crowded, false}, {short, !crowded, false},
	} {
		c.shy = 0
		before := time.Now()
		c.woke = before.Add(-x.took)
		if c.ranFor(x.took, x.crowded); (c.shy == shyCalls) != x.shy {
			t.Errorf("step %d: %d calls are run like others", i, c.shy)
		}
		if slow := x.took == long && !x.crowded; slow == c.woke.Before(before) {
			t.Errorf("step %d: what came with these calls is judged from %v on", i, c.woke.Sub(before))
		}
	}
}
