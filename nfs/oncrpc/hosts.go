package oncrpc

import (
	"math"
	"net"
	"net/netip"
	"time"

	"tansy/nfs/fair"
)

// Connections and memory are limited for each host besides, so that one with many
// connections leaves something for the others. When there is no room for a new connection,
// it takes the place of the one that is idle for the longest.

// host is what the connections from one address have together.
type host struct {
	key     netip.Prefix
	conns   int // in the table
	refs    int // and those on their way out of it
	shaking int // handshakes of TLS that have not ended; all three guarded by Server.mu

	records, small, calls, copies fair.Share // guarded by the memory
	turns, shakes                 fair.HostTurns
	changes                       fair.Places
}

// hostOf is the address that counts as one host: of IPv6 the network that one customer
// gets. Peers that have no address, as those on UNIX sockets, are one host together.
func hostOf(addr net.Addr) netip.Prefix {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}
	}
	ip := tcp.AddrPort().Addr().Unmap().WithZone("")
	bits := ip.BitLen()
	if ip.Is6() && ip.IsGlobalUnicast() {
		bits = 64
	}
	p, _ := ip.Prefix(bits)
	return p
}

// admit puts a connection into the table, or says why not. The caller has s.mu.
func (s *Server) admit(nc net.Conn) (c *conn, refused string) {
	if s.closing {
		return nil, "stopping"
	}
	key := hostOf(nc.RemoteAddr())
	h := s.hosts[key]
	if h != nil && h.conns >= s.cfg.MaxConnsPerHost && !s.evict(h) {
		return nil, "too many from this address, none of them idle"
	}
	if len(s.conns) >= s.cfg.MaxConns && !s.evict(nil) {
		return nil, "too many, none of them idle"
	}
	if h == nil {
		h = &host{key: key}
		s.hosts[key] = h
	}
	h.conns++
	h.refs++
	c = newConn(s, nc, h)
	c.id = s.count.accepted.Add(1)
	s.conns[c] = struct{}{}
	return c, ""
}

// thinkTime is how long a peer that is not idle may take for its next call, for more of a call, or to take more of its
// replies.
const thinkTime = 500 * time.Millisecond

// evict closes the connection whose peer has done nothing for the longest time: has sent no
// call and no more of a call, or has not taken replies. Those that never made a call go
// first; but where they came just now, and their call may be on its way, last. With h it is one of h. If the
// server has something to do for each of them, or had just now, evict returns false. The caller has s.mu.
func (s *Server) evict(h *host) bool {
	var longest *conn
	var since int64
	now := s.now()
	for c := range s.conns {
		if h != nil && c.host != h {
			continue
		}
		at := c.idleSince()
		switch called := c.called.Load(); {
		case at == 0:
			continue
		case !called && now-at >= int64(thinkTime):
			at -= math.MaxInt64 / 2
		case !called && c.received.Load() == 0:
			at += math.MaxInt64 / 2
		case now-at < int64(thinkTime):
			continue
		}
		if longest == nil || at < since {
			longest, since = c, at
		}
	}
	if longest == nil {
		return false
	}
	s.expel(longest, "longest idle, and room is needed")
	return true
}

// expel closes a connection in whose place another comes. The caller has s.mu.
func (s *Server) expel(c *conn, why string) {
	s.cfg.Log.Info("connection closed", "peer", c.nc.RemoteAddr(), "why", why)
	s.count.refusedConns.Add(1)
	s.remove(c)
	s.countEnded(c)
	c.evicted = true
	c.hangUp()
}

// remove takes a connection out of the table. The caller has s.mu.
func (s *Server) remove(c *conn) {
	if c.evicted {
		return
	}
	delete(s.conns, c)
	c.host.conns--
}

// leave forgets a connection that has ended. The caller has s.mu.
func (s *Server) leave(c *conn) {
	s.remove(c)
	if c.host.refs--; c.host.refs == 0 {
		delete(s.hosts, c.host.key)
	}
}

// idleSince is the time (Server.now) since which nothing happens because of the peer, 0 if
// that is not so.
func (c *conn) idleSince() int64 {
	switch {
	case c.blockedAt.Load() != 0:
		return c.tookAt.Load()
	case c.parked.Load():
		return c.untakenSince.Load()
	case !c.waiting.Load() || !c.unused():
		return 0
	}
	since := c.lastUse.Load()
	if at := c.repliedAt.Load(); at != 0 {
		since = max(since, at+int64(time.Second/judgements)) // lately may be that long ago
	}
	return since
}
