package oncrpc

import (
	"net"
	"sync/atomic"
	"syscall"

	"tansy/internal/lockorder"
)

// link is a connection as far as its replies know it. It may be kept when the connection is closed, and
// used concurrently.
type link struct {
	raw syscall.RawConn // nil: not a socket

	mu   lockorder.Mutex[lockorder.Link] // held while a write that does not wait is made and counted
	sent atomic.Uint64                   // bytes
}

// Receipt tells if the reply to a call has arrived. It may be kept when the connection is closed, and used
// concurrently.
type Receipt struct {
	link *link
	ends atomic.Uint64 // the reply, in the bytes that are sent; 0: it waits until others are written
}

// Receipt returns the receipt of the call's reply. It is nil for packets and inline calls, of which nothing is known.
func (c *Call) Receipt() *Receipt {
	if c.receipt == nil && c.link != nil {
		c.receipt = &Receipt{link: c.link}
	}
	return c.receipt
}

// Connection identifies the connection: it is equal for all its calls.
func (r *Receipt) Connection() any { return r.link }

// Delivered tells that the peer has the reply, and is still there: the connection stands at both ends, and TCP was told
// the arrival of all up to the end of the reply. No: that is not so, or not known, as for a moment after a write that
// had to wait for the peer.
func (r *Receipt) Delivered() (yes bool) {
	ends := r.ends.Load()
	if ends == 0 || r.link.raw == nil {
		return false
	}
	r.link.mu.Lock() // else what was written may not be counted yet, and who has the reply is taken for one who has not
	sent := r.link.sent.Load()
	r.link.mu.Unlock()
	err := r.link.raw.Control(func(fd uintptr) {
		if n := unacknowledged(int(fd)); n >= 0 && standing(int(fd)) {
			yes = sent >= ends+uint64(n) // of what was written since, nothing more can seem to have arrived
		}
	})
	return err == nil && yes
}

// number gives the receipts of a batch that is about to be written the ends of their replies.
func (l *link) number(batch []outgoing) {
	at := l.sent.Load()
	for _, o := range batch {
		at += uint64(len(o.buf.b) + (lenOf(o.data)+3)&^3)
		if o.receipt != nil {
			o.receipt.ends.Store(at)
		}
	}
}

// numberAll gives all receipts of a batch the same end: what is sent up to the last n bytes, which are about to be
// written. So no reply of it counts as delivered before all are.
func (l *link) numberAll(batch []outgoing, n int) {
	at := l.sent.Load() + uint64(n)
	for _, o := range batch {
		if o.receipt != nil {
			o.receipt.ends.Store(at)
		}
	}
}

// write has a sender write, and counts it.
func (l *link) write(s *sender, bufs net.Buffers) (rest net.Buffers, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	rest, n, err := s.write(bufs, s.send)
	l.sent.Add(uint64(n))
	return rest, err
}

// writeSome waits until a sender writes something, or where there is none writes all to nc, and counts it.
func (l *link) writeSome(s *sender, nc net.Conn, bufs net.Buffers) (rest net.Buffers, err error) {
	if s.raw == nil {
		n, err := bufs.WriteTo(nc)
		l.sent.Add(uint64(n))
		return bufs, err
	}
	rest, n, err := s.write(bufs, s.wait)
	l.sent.Add(uint64(n))
	return rest, err
}

// unacknowledged is how many bytes were sent whose arrival is not known; 0 if that cannot be told.
func (l *link) unacknowledged() (n int) {
	if l.raw != nil {
		l.raw.Control(func(fd uintptr) { n = max(0, unacknowledged(int(fd))) })
	}
	return n
}
