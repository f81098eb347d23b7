package oncrpc

import (
	"net"
	"syscall"
)

// Many peers wait for each reply before they call again. To hand such a call to
// another goroutine costs a good part of what it takes to run it, and leaves this one
// with nothing to do but wait for a call that does not come. So a connection whose
// calls come one by one runs them itself. If the next call turns out to be there
// before the reply to the last one was sent, it has waited: the peer is not of that
// kind, and for the next calls not treated so.

// Calls.
const (
	loneAfter  = 16  // in a row have come one by one: run the next ones here
	loneNotFor = 256 // after one came while another ran
)

// rawOf is the descriptor of a connection, or nil.
func rawOf(nc net.Conn) syscall.RawConn {
	if s, ok := nc.(syscall.Conn); ok {
		if raw, err := s.SyscallConn(); err == nil {
			return raw
		}
	}
	return nil
}

// alone tells if the call that was just received, in a record of size bytes, is to be
// run at once.
func (c *conn) alone(proc *Proc, size int) bool {
	if c.raw == nil {
		return false
	}
	if c.rr.partial() || c.pending() {
		c.lone = min(c.lone, 0)
		return false
	}
	c.lone = min(c.lone+1, loneAfter)
	return c.lone == loneAfter && size < smallChunk && proc.Weight == nil
}

// pending tells if there are calls in flight that the peer has seen no reply to.
func (c *conn) pending() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.inFlight > c.leaving
}

// runAlone runs a call and sends its reply.
func (c *conn) runAlone(h *header, proc *Proc, cred *Cred, args Decoder) {
	c.flush()
	e := c.reply()
	c.call.Args, c.call.Cred = args, cred
	execute(c.s, proc, &c.call, h.xid)
	waited := c.readable()
	c.keep(*e)
	c.flush()
	if waited {
		c.lone = -loneNotFor
	}
}

// readable tells if the peer has sent something that was not received yet, or nothing
// more will come.
func (c *conn) readable() (yes bool) {
	var b [1]byte
	c.raw.Read(func(fd uintptr) bool {
		n, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		yes = err == nil && n >= 0
		return true
	})
	return yes
}
