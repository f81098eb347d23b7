package oncrpc

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"tansy/internal/certificate"
	"tansy/test/kit/tlstest"
)

// who is a program whose procedure 1 says inline, and 2 on a goroutine, how the connection is protected.
var who = Program{Number: 79, Version: 1, Procs: []Proc{
	NullProc, {Name: "INLINE", Inline: true, Serve: sayWho}, {Name: "ASIDE", Serve: sayWho},
	{Name: "DENY", Inline: true, Serve: func(c *Call) Accept {
		c.Reply.Uint32(5)
		c.Deny = AuthTooWeak
		return Success
	}},
}}

func sayWho(c *Call) Accept {
	said := c.Security.String()
	if c.Security != nil && c.Security.Mutual {
		said += fmt.Sprintf(" %s %v", c.Security.CommonName, c.Security.DNSNames)
	}
	c.Reply.Opaque([]byte(said))
	return Success
}

// serveTLS serves echo and who with TLS.
func serveTLS(t *testing.T, cfg Config, g *gate) (*Server, string, *tlstest.Authority) {
	t.Helper()
	a := tlstest.New(t)
	with := a.Server()
	cfg.Programs, cfg.Log, cfg.TLS = []Program{echo(g), who}, quiet, func() *tls.Config { return with }
	s := NewServer(cfg)
	return s, listen(t, s), a
}

// secure is a connection with TLS.
func secure(t *testing.T, addr string, cfg *tls.Config) peer {
	t.Helper()
	p := connect(t, addr)
	c, err := tlstest.Start(p.Conn, 77, 1, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return peer{t, c}
}

func (p peer) says() string {
	p.t.Helper()
	var all []string
	for proc := range uint32(2) {
		p.send(mark(words(1, 0, 2, 79, 1, proc+1, 0, 0, 0, 0)))
		_, raw := p.receive()
		d := NewDecoder(raw[24:])
		all = append(all, string(d.Opaque(1<<10)))
	}
	if all[0] != all[1] {
		p.t.Errorf("inline %q, aside %q", all[0], all[1])
	}
	return all[0]
}

// echoes receives an echo of size bytes.
func (p peer) echoes(fill byte, size int) {
	p.t.Helper()
	_, raw := p.receive()
	if d := NewDecoder(raw[24:]); !bytes.Equal(d.Opaque(size), bytes.Repeat([]byte{fill}, size)) {
		p.t.Error("another echo")
	}
}

// failed waits until n handshakes have failed.
func (s *Server) failed(t *testing.T, n uint64) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); s.Stats().FailedShakes < n; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d handshakes failed, want %d", s.Stats().FailedShakes, n)
		}
	}
}

// blocked waits until n connections wait for their peers to take replies.
func (s *Server) blocked(t *testing.T, n int) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		waiting := 0
		s.mu.Lock()
		for c := range s.conns {
			if c.blockedAt.Load() != 0 {
				waiting++
			}
		}
		s.mu.Unlock()
		if waiting >= n {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d connections wait for their peers, want %d", waiting, n)
		}
	}
}

// TestTLS: calls of all kinds and sizes go through TLS as without, and procedures learn who calls.
func TestTLS(t *testing.T) {
	s, addr, a := serveTLS(t, Config{}, nil)
	if got := connect(t, addr).says(); got != "none" {
		t.Errorf("in the clear: %s", got)
	}
	p := secure(t, addr, a.Client())
	m := secure(t, addr, a.Client("Host-A.example.org", "other.example.org"))
	if got := p.says(); got != "tls" {
		t.Errorf("with TLS: %s", got)
	}
	if got, want := m.says(), "mtls Host-A.example.org [host-a.example.org other.example.org]"; got != want {
		t.Errorf("with a certificate: %s, want %s", got, want)
	}
	for _, size := range []int{0, 1, 100, 16<<10 - 28, 16 << 10, 40000, 1 << 20} {
		arg := bytes.Repeat([]byte{1, 2, 3, 5, 7}, size/5+1)[:size]
		for proc := range uint32(2) {
			p.send(mark(callBytes(9, proc+1, arg)))
			_, raw := p.receive()
			if d := NewDecoder(raw[24:]); !bytes.Equal(d.Opaque(1<<20), arg) {
				t.Errorf("procedure %d, %d bytes: another echo", proc+1, size)
			}
		}
	}
	const n = 300
	go func() {
		for xid := range uint32(n) {
			p.Write(mark(callBytes(xid, 1+xid%2, bytes.Repeat([]byte{byte(xid)}, int(xid)*11))))
		}
	}()
	seen := map[uint32]bool{}
	for range n {
		w, raw := p.receive()
		d := NewDecoder(raw[24:])
		if b := d.Opaque(1 << 20); len(b) != int(w[0])*11 || len(b) > 0 && b[len(b)-1] != byte(w[0]) || seen[w[0]] {
			t.Fatalf("call %d: %d bytes", w[0], len(b))
		}
		seen[w[0]] = true
	}
	p.send(mark(words(4, 0, 2, 79, 1, 3, 0, 0, 0, 0)))
	if w, _ := p.receive(); fmt.Sprint(w) != "[4 1 1 1 5]" {
		t.Errorf("a call that is denied: %v", w)
	}
	if got := p.says(); got != "tls" {
		t.Errorf("behind that: %q", got)
	}
	st := s.Stats()
	if st.Handshakes != [2]uint64{1, 1} || st.FailedShakes != 0 || st.RefusedCalls != 1 {
		t.Errorf("%v handshakes, %d failed, %d calls refused", st.Handshakes, st.FailedShakes, st.RefusedCalls)
	}
	transports := map[string]int{}
	for _, c := range st.Conns {
		transports[c.Transport]++
	}
	if transports["none"] != 1 || transports["tls"] != 1 || transports["mtls"] != 1 {
		t.Errorf("connections: %v", transports)
	}
}

// TestProbe: what asks for TLS wrongly is told so, and goes on as before, in the clear or within TLS.
func TestProbe(t *testing.T) {
	_, bare := serveEcho(t, Config{}, nil)
	_, addr, a := serveTLS(t, Config{}, nil)
	denied := func(why AuthStat) []uint32 { return []uint32{7, 1, 1, 1, uint32(why)} }
	for what, c := range map[string]struct {
		p     peer
		probe []byte
		want  []uint32
	}{
		"no TLS here":       {connect(t, bare), tlstest.Probe(77, 1)[4:], denied(AuthRejectedCred)},
		"not NULL":          {connect(t, addr), words(7, 0, 2, 77, 1, 1, 7, 0, 0, 0), denied(AuthBadCred)},
		"credentials":       {connect(t, addr), words(7, 0, 2, 77, 1, 0, 7, 4, 1, 0, 0), denied(AuthBadCred)},
		"arguments":         {connect(t, addr), words(7, 0, 2, 77, 1, 0, 7, 0, 0, 0, 1), denied(AuthBadCred)},
		"a verifier":        {connect(t, addr), words(7, 0, 2, 77, 1, 0, 7, 0, 0, 4, 1), denied(AuthBadVerf)},
		"a flavored one":    {connect(t, addr), words(7, 0, 2, 77, 1, 0, 7, 0, 1, 0), denied(AuthBadVerf)},
		"another program":   {connect(t, addr), tlstest.Probe(80, 1)[4:], []uint32{7, 1, 0, 0, 0, uint32(ProgUnavail)}},
		"another version":   {connect(t, addr), tlstest.Probe(77, 4)[4:], []uint32{7, 1, 0, 0, 0, 2, 1, 1}},
		"TLS within TLS":    {secure(t, addr, a.Client()), tlstest.Probe(77, 1)[4:], denied(AuthBadCred)},
		"and with a client": {secure(t, addr, a.Client("x")), tlstest.Probe(77, 1)[4:], denied(AuthBadCred)},
	} {
		for range 2 {
			c.p.send(mark(c.probe))
			if w, _ := c.p.receive(); fmt.Sprint(w) != fmt.Sprint(c.want) {
				t.Errorf("%s: %v, want %v", what, w, c.want)
			}
		}
		c.p.answers()
	}
}

// TestNothingInTheClear: what came in the clear counts for nothing behind the question for TLS.
func TestNothingInTheClear(t *testing.T) {
	g := newGate()
	s, addr, a := serveTLS(t, Config{}, g)
	p := connect(t, addr)
	p.send(append(tlstest.Probe(77, 1), mark(callBytes(8, 1, []byte("injected")))...))
	p.closed("a call behind the question")
	s.failed(t, 1)
	p = connect(t, addr)
	p.send(append(tlstest.Probe(77, 1), 22))
	p.closed("a byte behind the question")
	s.failed(t, 2)
	// What is in progress is answered in the clear, before the question is.
	p = connect(t, addr)
	p.send(mark(callBytes(5, 4, []byte("early"))))
	<-g.started
	s.sweep(s.tick.Add(2)) // another goroutine reads on
	p.send(tlstest.Probe(77, 1))
	p.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
	if n, err := p.Read(make([]byte, 1)); n > 0 || err == nil {
		t.Errorf("an answer before the call in progress has its own: %d, %v", n, err)
	}
	p.SetReadDeadline(time.Now().Add(20 * time.Second))
	g.finish <- struct{}{}
	if w, _ := p.receive(); w[0] != 5 {
		t.Errorf("call %d is answered", w[0])
	}
	if w, _ := p.receive(); w[0] != 7 || w[4] != 8 {
		t.Errorf("answer %v", w)
	}
	c := tls.Client(p.Conn, a.Client())
	if err := c.Handshake(); err != nil {
		t.Fatal(err)
	}
	peer{t, c}.answers()
	// A call in the clear in place of a handshake.
	p = connect(t, addr)
	if err := tlstest.Ask(p.Conn, 77, 1); err != nil {
		t.Fatal(err)
	}
	p.send(mark(callBytes(8, 1, []byte("in the clear"))))
	s.failed(t, 3)
	if b, _ := io.ReadAll(p.Conn); bytes.Contains(b, []byte("in the clear")) {
		t.Errorf("a call in the clear was answered: %q", b)
	}
}

// TestHandshakeRefused: old versions, other protocols, and certificates that do not count lead nowhere.
func TestHandshakeRefused(t *testing.T) {
	s, addr, a := serveTLS(t, Config{}, nil)
	foreign := tlstest.New(t)
	with := func(change func(c *tls.Config)) *tls.Config {
		c := a.Client()
		change(c)
		return c
	}
	cert := func(c tls.Certificate) *tls.Config {
		return with(func(x *tls.Config) {
			x.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &c, nil }
		})
	}
	refused := uint64(0)
	for what, c := range map[string]*tls.Config{
		"TLS 1.2":           with(func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS12, tls.VersionTLS12 }),
		"HTTP":              with(func(c *tls.Config) { c.NextProtos = []string{"h2"} }),
		"expired":           cert(a.Cert(certificate.Client, -time.Minute, "host")),
		"foreign":           cert(foreign.Cert(certificate.Client, time.Hour, "host")),
		"a server's":        cert(a.Cert(certificate.Server, time.Hour, "host")),
		"who is the server": with(func(c *tls.Config) { c.ServerName = "elsewhere" }),
		"whose server":      with(func(c *tls.Config) { c.RootCAs = foreign.Pool }),
	} {
		p := connect(t, addr)
		t1, err := tlstest.Start(p.Conn, 77, 1, c)
		if err == nil { // of certificates TLS 1.3 tells only when the client reads
			if _, err = t1.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%s: the handshake succeeds: %v", what, err)
			}
		}
		here := c.ServerName == "elsewhere" || c.RootCAs == foreign.Pool // the client refuses
		if !here && !strings.Contains(err.Error(), "remote error: tls: ") {
			t.Errorf("%s: the server does not say what is wrong: %v", what, err)
		}
		p.Close()
		refused++
		s.failed(t, refused)
	}
	if st := s.Stats(); st.Handshakes != [2]uint64{} || st.FailedShakes != refused {
		t.Errorf("%v handshakes, %d failed", st.Handshakes, st.FailedShakes)
	}
	if got := secure(t, addr, with(func(c *tls.Config) { c.NextProtos = nil })).says(); got != "tls" {
		t.Errorf("without ALPN: %s", got)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// recorded keeps what is written to a connection.
type recorded struct {
	net.Conn
	b bytes.Buffer
}

func (r *recorded) Write(p []byte) (int, error) {
	r.b.Write(p)
	return r.Conn.Write(p)
}

// received keeps what is read from a connection.
type received struct {
	net.Conn
	b bytes.Buffer
}

func (r *received) Read(p []byte) (int, error) {
	n, err := r.Conn.Read(p)
	r.b.Write(p[:n])
	return n, err
}

// TestHandshakeCut: a handshake that ends anywhere ends its connection, and nothing else.
func TestHandshakeCut(t *testing.T) {
	s, addr, a := serveTLS(t, Config{}, nil)
	r := &recorded{Conn: connect(t, addr).Conn}
	if err := tlstest.Ask(r.Conn, 77, 1); err != nil {
		t.Fatal(err)
	}
	c := tls.Client(r, a.Client("host"))
	if err := c.Handshake(); err != nil {
		t.Fatal(err)
	}
	hello := r.b.Bytes()
	for n := range uint64(40) {
		p := connect(t, addr)
		if err := tlstest.Ask(p.Conn, 77, 1); err != nil {
			t.Fatal(err)
		}
		p.send(hello[:len(hello)*int(n)/40])
		p.Conn.(*net.TCPConn).CloseWrite()
		io.Copy(io.Discard, p.Conn)
		s.failed(t, n+1)
	}
	if s.shaking != 0 {
		t.Errorf("%d handshakes are thought to be under way", s.shaking)
	}
}

// TestHandshakeTooLarge: nobody has the server keep much in a handshake.
func TestHandshakeTooLarge(t *testing.T) {
	s, addr, _ := serveTLS(t, Config{}, nil)
	p := connect(t, addr)
	if err := tlstest.Ask(p.Conn, 77, 1); err != nil {
		t.Fatal(err)
	}
	// A ClientHello that says to be long, in records of 1 KiB.
	hello := []byte{1, 0, 0xff, 0xf0}
	for len(hello) < 0xfff4 {
		hello = append(hello, 0)
	}
	for i := 0; i < maxShakeBytes+8<<10; i += 1 << 10 {
		if _, err := p.Write(append([]byte{22, 3, 1, 4, 0}, hello[i:i+1<<10]...)); err != nil {
			break
		}
	}
	s.failed(t, 1)
}

// TestChainTooLong: nor for a certificate, of which crypto/tls takes 256 KiB.
func TestChainTooLong(t *testing.T) {
	s, addr, a := serveTLS(t, Config{}, nil)
	for copies, want := range map[int]string{2: "mtls host [host]", maxShakeBytes / 300: ""} {
		c := a.Client("host")
		for range copies {
			c.Certificates[0].Certificate = append(c.Certificates[0].Certificate, c.Certificates[0].Certificate[0])
		}
		p := connect(t, addr)
		nc, err := tlstest.Start(p.Conn, 77, 1, c)
		if err != nil {
			t.Fatal(err)
		}
		if want != "" {
			if got := (peer{t, nc}).says(); got != want {
				t.Errorf("%d copies: %s", copies, got)
			}
		} else if _, err := nc.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%d copies: the handshake succeeds: %v", copies, err)
		} else {
			s.failed(t, 1)
		}
	}
}

// TestHandshakeLate drives the janitor's clock by hand.
func TestHandshakeLate(t *testing.T) {
	s, addr, a := serveTLS(t, Config{HandshakeTimeout: 30 * time.Second}, nil)
	p, done := connect(t, addr), secure(t, addr, a.Client())
	done.answers() // the server's end of the handshake is over, too
	if err := tlstest.Ask(p.Conn, 77, 1); err != nil {
		t.Fatal(err)
	}
	for shaking := 0; shaking == 0; {
		s.mu.Lock()
		shaking = s.shaking
		s.mu.Unlock()
	}
	now := s.tick.Load()
	s.sweep(now + 29)
	if n := s.Conns(); n != 2 {
		t.Errorf("%d connections before the time", n)
	}
	s.sweep(now + 40)
	p.closed("the handshake takes too long")
	s.failed(t, 1)
	done.answers()
}

// TestHalfOpen: handshakes that are never ended take no place from those who call, and end where there are too many: of
// the host that has the most, the oldest first.
func TestHalfOpen(t *testing.T) {
	s, addr, a := serveTLS(t, Config{MaxConns: 12, MaxConnsPerHost: 12, MaxHandshakes: 5}, nil)
	half := func(host int) peer {
		p := connectFrom(t, addr, host)
		if err := tlstest.Ask(p.Conn, 77, 1); err != nil {
			t.Fatal(err)
		}
		for s.of(p) == nil || s.of(p).shakingSince.Load() == 0 {
		}
		return p
	}
	busy := connectFrom(t, addr, 1)
	busy.answers()
	lone := half(2)
	var flood []peer
	for i := range 40 {
		if i%10 == 9 { // whoever means it is served meanwhile
			c, err := tlstest.Start(connectFrom(t, addr, 4).Conn, 77, 1, a.Client())
			if err != nil {
				t.Fatalf("after %d half-open handshakes: %v", i, err)
			}
			peer{t, c}.answers()
			c.Close()
		}
		flood = append(flood, half(3))
	}
	busy.answers()
	for _, p := range flood[:30] {
		p.closed("one of too many handshakes")
	}
	c := tls.Client(lone.Conn, a.Client())
	if err := c.Handshake(); err != nil {
		t.Errorf("the only one of its host: %v", err)
	}
	// Where room for connections is needed, they go first, though others are idle for longer.
	s2, addr2, _ := serveTLS(t, Config{MaxConns: 4}, nil)
	old := connectFrom(t, addr2, 1)
	old.answers()
	s2.idle(old)
	p := connectFrom(t, addr2, 2)
	if err := tlstest.Ask(p.Conn, 77, 1); err != nil {
		t.Fatal(err)
	}
	for s2.of(p).shakingSince.Load() == 0 || s2.of(p).idleSince() == 0 {
	}
	s2.pass(time.Second)
	for range 3 {
		connectFrom(t, addr2, 3).answers()
	}
	p.closed("a handshake in the way")
	old.answers()
}

// TestTLSSlowReader: a peer that takes nothing of its replies costs as little with TLS as without, and gets all.
func TestTLSSlowReader(t *testing.T) {
	s, addr, a := serveTLS(t, Config{ReplyBytes: 8 << 20}, nil)
	slow := secure(t, addr, a.Client())
	const n, size = 40, 1 << 20
	for xid := range uint32(n) {
		slow.send(mark(append(words(xid, 0, 2, 77, 1, 5, 0, 0, 0, 0), words(size)...)))
	}
	other := secure(t, addr, a.Client())
	for range 100 {
		other.answers()
	}
	if held := s.calls.Held(); held > 2<<20 {
		t.Errorf("one connection holds %d bytes", held)
	}
	s.mu.Lock()
	for c := range s.conns {
		if c.wire != nil && c.wire.sealed() > maxSealed {
			t.Errorf("%d bytes are sealed and not sent", c.wire.sealed())
		}
	}
	s.mu.Unlock()
	for range n {
		if _, raw := slow.receive(); len(raw) != 28+size {
			t.Fatalf("%d bytes", len(raw))
		}
	}
}

// TestTLSMemory: what is sealed lies in memory that is used again, and nobody gets it before it is sent.
func TestTLSMemory(t *testing.T) {
	s, addr, a := serveTLS(t, Config{}, nil)
	const size, rounds = 64 << 10, 100
	ask := func(p peer, fill byte) {
		p.send(mark(callBytes(9, 2, bytes.Repeat([]byte{fill}, size))))
		p.echoes(fill, size)
	}
	p := secure(t, addr, a.Client())
	ask(p, 1)
	var plain, before, after runtime.MemStats
	clear := connect(t, addr)
	ask(clear, 1)
	runtime.ReadMemStats(&plain)
	for range rounds {
		ask(clear, 1)
	}
	runtime.ReadMemStats(&before)
	for range rounds {
		ask(p, 1)
	}
	runtime.ReadMemStats(&after)
	without := (before.TotalAlloc - plain.TotalAlloc) / rounds
	// The client's side is crypto/tls, too. The race detector has a pool forget a quarter of what it is given.
	if with := (after.TotalAlloc - before.TotalAlloc) / rounds; with > without+size*3/2 {
		t.Errorf("%d bytes of memory for a reply, %d without TLS", with, without)
	}
	const peers, calls = 4, 100
	var its sync.WaitGroup
	var all []peer
	for fill := range byte(peers) {
		p := secure(t, addr, a.Client())
		all = append(all, p)
		its.Go(func() {
			for range calls {
				p.send(mark(callBytes(9, 2, bytes.Repeat([]byte{fill}, size))))
			}
		})
	}
	s.blocked(t, peers) // each has something sealed that waits for its peer
	for fill, p := range all {
		its.Go(func() {
			for range calls {
				p.echoes(byte(fill), size)
			}
		})
	}
	its.Wait()
}

// TestTLSEnds: the server says that it ends, so that the client knows that nobody else cut the connection.
func TestTLSEnds(t *testing.T) {
	s, addr, a := serveTLS(t, Config{}, nil)
	r := &received{Conn: connect(t, addr).Conn}
	c, err := tlstest.Start(r, 77, 1, a.Client())
	if err != nil {
		t.Fatal(err)
	}
	peer{t, c}.answers()
	r.b.Reset()
	go s.Shutdown(t.Context())
	if n, err := c.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("the end: %d, %v", n, err)
	}
	// crypto/tls gives io.EOF also if nothing says that it is the end. An alert is two bytes, its type, and 16 of the seal.
	last, alert := r.b.Bytes(), []byte{23, 3, 3, 0, 2 + 1 + 16}
	if len(last) != len(alert)+19 || !bytes.HasPrefix(last, alert) {
		t.Errorf("at the end came % x", last)
	}
}

// TestOpenSSL: another implementation of TLS has its calls answered, also behind a change of keys that it asks for.
func TestOpenSSL(t *testing.T) {
	openssl, err := exec.LookPath("openssl")
	if err != nil {
		t.Skip("there is no openssl here")
	}
	_, addr, _ := serveTLS(t, Config{}, nil)
	p := connect(t, addr)
	if err := tlstest.Ask(p.Conn, 77, 1); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() { // between it and the connection, which it does not know how to begin
		c, err := l.Accept()
		if err != nil {
			return
		}
		go io.Copy(p.Conn, c)
		io.Copy(c, p.Conn)
		c.Close()
	}()
	cmd := exec.Command(openssl, "s_client", "-connect", l.Addr().String(),
		"-alpn", "sunrpc", "-tls1_3", "-servername", tlstest.Host)
	out, said := io.Pipe()
	in := must(cmd.StdinPipe())
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		cmd.Process.Kill()
		out.Close()
		cmd.Wait()
	}()
	var seen bytes.Buffer
	until := func(what string) {
		t.Helper()
		b := make([]byte, 4096)
		for !strings.Contains(seen.String(), what) {
			n, err := out.Read(b)
			seen.Write(b[:n])
			if err != nil {
				t.Fatalf("no %q: %v\n%s", what, err, seen.String())
			}
		}
	}
	until("ALPN protocol: sunrpc")
	until("---\n")
	in.Write(mark(callBytes(1, 1, []byte("a first echo"))))
	until("a first echo")
	in.Write([]byte("K\n")) // new keys, for both directions
	until("KEYUPDATE")
	in.Write(mark(callBytes(2, 2, []byte("another echo"))))
	until("another echo")
}

// FuzzHandshake: whatever comes behind the question for TLS makes the server hang up or wait, and nobody's call fails.
func FuzzHandshake(f *testing.F) {
	f.Add([]byte{}, false)
	f.Add([]byte{22, 3, 1, 0, 1, 1}, true)
	f.Add(mark(callBytes(1, 1, []byte("x"))), false)
	f.Add(append([]byte{22, 3, 1, 0, 4, 1, 0, 0xff, 0xff}, bytes.Repeat([]byte{23, 3, 3, 0, 1, 0}, 20)...), true)
	a := tlstest.New(f)
	with := a.Server()
	r := &recorded{Conn: nowhere{}}
	tls.Client(r, a.Client("host")).Handshake()
	f.Add(r.b.Bytes(), true)
	s := NewServer(Config{Programs: []Program{echo(nil)}, Log: quiet, TLS: func() *tls.Config { return with }})
	f.Fuzz(func(t *testing.T, b []byte, within bool) {
		here, there := net.Pipe()
		s.open(there)
		defer here.Close()
		here.SetDeadline(time.Now().Add(20 * time.Second))
		if within { // in the same packet: it was said in the clear
			here.Write(append(tlstest.Probe(77, 1), b...))
		} else {
			if err := tlstest.Ask(here, 77, 1); err != nil {
				t.Fatal(err)
			}
			go func() {
				here.Write(b)
				here.Close()
			}()
		}
		replies, _ := io.ReadAll(io.LimitReader(here, 1<<16))
		if within && len(b) > 0 && len(replies) > 0 {
			t.Errorf("answered: % x", replies)
		}
		if len(replies) > 4 && binary.BigEndian.Uint32(replies)>>31 == 1 {
			t.Errorf("a reply in the clear: % x", replies)
		}
	})
}

// nowhere is a connection to nobody.
type nowhere struct{ net.Conn }

func (nowhere) Write(p []byte) (int, error)      { return len(p), nil }
func (nowhere) Read([]byte) (int, error)         { return 0, io.EOF }
func (nowhere) SetReadDeadline(time.Time) error  { return nil }
func (nowhere) SetWriteDeadline(time.Time) error { return nil }
func (nowhere) SetDeadline(time.Time) error      { return nil }
func (nowhere) Close() error                     { return nil }
