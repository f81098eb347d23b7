package oncrpc

import (
	"net"
	"syscall"
)

// Many peers wait for each reply before they call again. To hand such a call to
// another goroutine costs more than most calls do, and leaves this one with nothing
// to do but wait for a call that does not come. So a connection whose calls have
// come one by one for a while runs them itself.
//
// The price: a call that comes meanwhile waits for the one that runs. If one has, the
// peer is not of that kind, and none waits during its next loneNotFor calls.

// Calls.
const (
	loneAfter  = 8   // have come one by one: the next ones are run here
	loneNotFor = 256 // after one came while another ran
)

// lone is what a connection knows about calls that come one by one.
type lone struct {
	raw    syscall.RawConn // nil: calls are never run here
	streak int             // such calls in a row; negative: to come before they count
	look   func(fd uintptr) bool
	byte   [1]byte
	found  bool // by look
}

func newLone(nc net.Conn) *lone {
	l := new(lone)
	if s, ok := nc.(syscall.Conn); ok {
		l.raw, _ = s.SyscallConn() // nil with an error
	}
	l.look = func(fd uintptr) bool {
		n, _, err := syscall.Recvfrom(int(fd), l.byte[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		l.found = err == nil && n > 0
		return true
	}
	return l
}

// alone tells if a call with size bytes of arguments and result is to be run on the
// connection's goroutine. Large ones are not: a reply that the peer does not take at
// once must not keep the rest of its next call from being read. c.mu is held.
func (c *conn) alone(size int) bool {
	l := c.lone
	if c.unanswered > 0 || c.batch != nil || c.rr.partial() || size >= smallChunk {
		l.streak = min(l.streak, 0)
		return false
	}
	l.streak = min(l.streak+1, loneAfter+1)
	return l.streak > loneAfter && l.raw != nil
}

// runAlone runs a call here. It may wait for calls of other connections, which others
// run, and for none of this one, since none is in progress.
func (c *conn) runAlone(t *task) {
	reply := t.answer()
	l := c.lone
	l.found = false
	l.raw.Read(l.look) // before the peer sees the reply
	if l.found {
		l.streak = -loneNotFor
	}
	c.send(reply)
}
