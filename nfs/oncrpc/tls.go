package oncrpc

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"tansy/internal/lockorder"
	"tansy/nfs/fair"
)

// TLS on a connection that began in the clear (RFC 9289). A client asks with a call of NULL whose flavor is AUTH_TLS,
// and is answered with the verifier "STARTTLS". From then on nothing but TLS is on the connection: the handshake, and
// then records of calls as before.
//
// What was received in the clear is never taken for something that was protected: a connection on which anything came
// behind the question, and before the answer left, is closed. All replies in the clear leave before the answer.
//
// A handshake costs others nothing. It runs on the goroutine of its connection, and has no turn and no memory of calls.
// What it computes has turns of its own, which hosts share. It ends after HandshakeTimeout. Until it has ended,
// the connection counts as one without a call: it goes first when room is needed (Server.evict), and at more than
// MaxHandshakes one of the host with the most of them goes (makeShakeRoom).

const (
	// startTLS is the verifier of the answer to a probe (RFC 9289, section 4.1).
	startTLS = "STARTTLS"

	// shakeRoom is the room for handshakes that compute something at a time, and shakeSize what one takes of it.
	shakeRoom = 2
	shakeSize = 2

	// maxShakeBytes is how many bytes a client may send in a handshake. A chain of certificates has few KiB.
	maxShakeBytes = 48 << 10

	// maxWireRead is how many bytes are read from the network at once, so that crypto/tls holds little that the janitor
	// does not see (ahead).
	maxWireRead = 8 << 10

	// sealedPiece is how many bytes of replies are sealed before they are written, and maxSealed is how many sealed ones
	// there may be, with what crypto/tls answers by itself. So a peer that takes nothing costs not much more with TLS.
	sealedPiece = 64 << 10
	maxSealed   = 2 * sealedPiece

	maxTLSRecord = 16 << 10 // bytes of plain text in one record of TLS (RFC 8446, section 5.1)
)

var (
	errShakeSize = errors.New("too much was sent in the handshake")
	errSealed    = errors.New("too much to be sent")
)

// Security is what protects a connection: TLS. A nil Security is none.
type Security struct {
	// Mutual: the client has a certificate of an authority that Config.TLS names. These are the names in it; without
	// a certificate there are none.
	Mutual     bool
	DNSNames   []string // of hosts, in lower case
	CommonName string
}

// String is the protection as exports(5) calls it: "none", "tls", or "mtls".
func (s *Security) String() string {
	switch {
	case s == nil:
		return "none"
	case s.Mutual:
		return "mtls"
	}
	return "tls"
}

// secured is what a connection knows of its TLS.
type secured struct {
	tls          *tls.Conn // nil: in the clear. The goroutine of run sets it while nobody else is at work
	wire         *wire
	security     *Security    // guarded by replies.mu, as call.Security is the same for run
	probed       uint32       // transaction number of the probe that run has to answer
	shakingSince atomic.Int64 // tick at which the handshake began, or 0
	plain        []byte       // what writeSealed gathers
}

// probe judges a call with the flavor AUTH_TLS that has n bytes of arguments.
func (c *conn) probe(h *header, n int) AuthStat {
	switch {
	case h.proc != 0, len(h.cred) > 0, n > 0:
		return AuthBadCred
	case Flavor(h.verfFlavor) != AuthNone, len(h.verf) > 0:
		return AuthBadVerf
	case c.tls != nil: // there is no TLS within TLS
		return AuthBadCred
	case c.s.cfg.TLS == nil:
		return AuthRejectedCred
	}
	return AuthOK
}

// source is where the bytes of calls come from.
func (c *conn) source() io.Reader {
	if c.tls != nil {
		return c.tls
	}
	return c.nc
}

// ahead is how many bytes of calls may have left the socket that nobody has asked crypto/tls for yet, at most.
func (c *conn) ahead() int {
	if c.tls == nil {
		return 0
	}
	return maxTLSRecord + maxWireRead
}

// startTLS answers a probe and makes the handshake. It returns false if the connection is of no use any more.
func (c *conn) startTLS() bool {
	c.flush()
	c.settle()
	if c.rr.partial() {
		c.s.shakeFailed(c, errors.New("something came in the clear behind the call that asked for TLS"))
		return false
	}
	c.rr.giveUp()
	e := c.reply()
	begin := e.Len()
	beginReplyWith(e, c.probed, startTLS, Success)
	endReply(e, begin)
	c.keep(*e)
	c.flush()
	c.settle()
	if err := c.shakeHands(); err != nil {
		c.s.shakeFailed(c, err)
		return false
	}
	return true
}

// settle waits until no call is in progress and all replies have left.
func (c *conn) settle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.inFlight > 0 || c.writing {
		lockorder.WaitWith[lockorder.Fewer, lockorder.Connection]()
		c.changed.Wait()
	}
}

// shakeHands makes the handshake.
func (c *conn) shakeHands() error {
	s := c.s
	if !s.beginShake(c) {
		return net.ErrClosed
	}
	defer s.endShake(c)
	w := &wire{Conn: c.nc, c: c, shake: &shake{flow: fair.Flow{Host: &c.host.shakes}}}
	t := tls.Server(w, s.cfg.TLS())
	w.compute()
	err := t.Handshake()
	w.rest()
	if e := w.flush(); err == nil { // what is left is an alert that says what is wrong
		err = e
	}
	if err != nil {
		return err
	}
	w.shake = nil
	state := t.ConnectionState()
	security := &Security{Mutual: len(state.VerifiedChains) > 0}
	n := 0
	if security.Mutual {
		n = 1
		leaf := state.VerifiedChains[0][0]
		security.CommonName = leaf.Subject.CommonName
		for _, name := range leaf.DNSNames {
			security.DNSNames = append(security.DNSNames, strings.TrimSuffix(strings.ToLower(name), "."))
		}
	}
	s.count.shaken[n].Add(1)
	c.call.Security = security
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tls, c.wire, c.security = t, w, security
	return nil
}

// shakeFailed counts and tells that there is no TLS.
func (s *Server) shakeFailed(c *conn, err error) {
	s.count.failedShakes.Add(1)
	if !c.draining.Load() {
		s.cfg.Log.Info("TLS handshake failed", "peer", c.nc.RemoteAddr(), "err", err)
	}
}

// beginShake counts a handshake. It returns false if the connection is closed already.
func (s *Server) beginShake(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.evicted {
		return false
	}
	if s.shaking >= s.cfg.MaxHandshakes {
		s.makeShakeRoom()
	}
	s.shaking++
	c.host.shaking++
	c.called.Store(false) // so that it goes first when room is needed
	c.shakingSince.Store(s.tick.Load())
	return true
}

// endShake is the end of beginShake.
func (s *Server) endShake(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shaking--
	c.host.shaking--
	c.shakingSince.Store(0)
}

// makeShakeRoom closes the connection whose handshake lasts longest, of the host with the most handshakes: so nobody
// else pays for many. The caller has s.mu.
func (s *Server) makeShakeRoom() {
	var worst *conn
	for c := range s.conns {
		if c.shakingSince.Load() == 0 {
			continue
		}
		if worst == nil || c.host.shaking > worst.host.shaking ||
			c.host == worst.host && c.since.Before(worst.since) {
			worst = c
		}
	}
	if worst != nil {
		s.expel(worst, "too many handshakes of TLS")
	}
}

// wire is the network below TLS. What is written waits until somebody takes it, for crypto/tls may write at any time,
// and must not wait for the peer: whoever writes replies writes it, in the way in which replies are written.
type wire struct {
	net.Conn
	c *conn

	mu  sync.Mutex
	out []byte // sealed, and not taken yet

	shake *shake // nil: the handshake has ended
}

// shake is a handshake under way.
type shake struct {
	flow fair.Flow
	turn fair.Turn
	read int // bytes that came
}

// Read implements net.Conn. During the handshake it writes what there is first, and has no turn while it waits.
func (w *wire) Read(p []byte) (int, error) {
	p = p[:min(len(p), maxWireRead)]
	if w.shake == nil {
		return w.Conn.Read(p)
	}
	w.rest()
	if err := w.flush(); err != nil {
		return 0, err
	}
	w.c.lastUse.Store(w.c.s.now())
	w.c.waiting.Store(true)
	n, err := w.Conn.Read(p)
	w.c.waiting.Store(false)
	if w.shake.read += n; w.shake.read > maxShakeBytes {
		return 0, errShakeSize
	}
	w.compute()
	return n, err
}

// compute waits for a turn of the handshake to compute something.
func (w *wire) compute() {
	if t := w.c.s.shakes; !t.Take(&w.shake.flow, &w.shake.turn, shakeSize, 1) {
		t.Wait(&w.shake.flow, &w.shake.turn, shakeSize, 1)
	}
}

// rest is the end of compute. It may be called again.
func (w *wire) rest() {
	w.c.s.shakes.End(&w.shake.turn)
	w.shake.turn.Reset()
}

// Write implements net.Conn. It never waits.
func (w *wire) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.out)+len(p) > maxSealed {
		return 0, errSealed
	}
	if w.out == nil {
		w.out = *sealedBuffers.Get().(*[]byte)
	}
	w.out = append(w.out, p...)
	return len(p), nil
}

// SetWriteDeadline implements net.Conn. Write never waits. crypto/tls ends all writes so after its last alert, which is
// still to be sent then.
func (w *wire) SetWriteDeadline(time.Time) error { return nil }

// take returns what is to be sent, or nil. The caller passes it to recycle once it is sent.
func (w *wire) take() (b []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	b, w.out = w.out, nil
	return b
}

// sealedBuffers are for wire.out. To let each grow anew would copy all that is sent once more.
var sealedBuffers = sync.Pool{New: func() any {
	b := make([]byte, 0, sealedPiece+maxTLSRecord)
	return &b
}}

// recycle has others use b, which take returned.
func recycle(b []byte) {
	if b = b[:0]; cap(b) == sealedPiece+maxTLSRecord {
		sealedBuffers.Put(&b)
	}
}

// sealed is how many bytes are to be sent.
func (w *wire) sealed() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.out)
}

// flush writes what is to be sent, as long as nobody else writes.
func (w *wire) flush() error {
	b := w.take()
	if len(b) == 0 {
		return nil
	}
	defer recycle(b)
	n, err := w.Conn.Write(b)
	w.c.link.sent.Add(uint64(n))
	return err
}

// writeSealed is write with TLS.
func (c *conn) writeSealed(batch []outgoing) error {
	if c.plain == nil {
		c.plain = make([]byte, 0, maxTLSRecord)
	}
	put := func(b []byte) error {
		for len(b) > 0 {
			n := min(len(b), maxTLSRecord-len(c.plain))
			c.plain, b = append(c.plain, b[:n]...), b[n:]
			if len(c.plain) < maxTLSRecord {
				continue
			}
			if err := c.seal(); err != nil {
				return err
			}
			if c.wire.sealed() < sealedPiece {
				continue
			}
			if err := c.writeTaken(c.wire.take()); err != nil {
				return err
			}
		}
		return nil
	}
	for _, o := range batch {
		if err := put(o.buf.b); err != nil {
			return err
		}
		if o.data == nil {
			continue
		}
		for _, p := range o.data.Pieces() {
			if err := put(p); err != nil {
				return err
			}
		}
		if err := put(padding[:-o.data.Len()&3]); err != nil {
			return err
		}
	}
	if err := c.seal(); err != nil {
		return err
	}
	last := c.wire.take()
	c.link.numberAll(batch, len(last))
	return c.writeTaken(last)
}

// writeTaken is writePiece of what wire.take returned.
func (c *conn) writeTaken(b []byte) error {
	defer recycle(b)
	c.one[0] = b
	return c.writePiece(c.one[:])
}

// seal makes a record of TLS of what was gathered.
func (c *conn) seal() error {
	_, err := c.tls.Write(c.plain)
	c.plain = c.plain[:0]
	return err
}

// sayGoodbye tells a peer with TLS that nothing more comes, so that it can tell the end from one that somebody else
// made. It does not wait for the peer. Nobody writes to the connection any more.
func (c *conn) sayGoodbye() {
	if c.tls == nil {
		return
	}
	c.tls.CloseWrite()
	b := c.wire.take()
	defer recycle(b)
	c.sock.write(net.Buffers{b}, c.sock.send)
}
