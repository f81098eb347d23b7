package oncrpc

import (
	"net"
	"net/netip"
)

// Connections and memory are limited for each host besides, so that one with many
// connections leaves something for the others. When there is no room for a new connection,
// it takes the place of one that is not used, or that its peer keeps waiting.

// host is what the connections from one address have together.
type host struct {
	key   netip.Prefix
	conns int // in the table
	refs  int // and those on their way out of it; both guarded by Server.mu

	records, calls share // guarded by the memory
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

// stuckAfter is for how many ticks a peer has to keep a connection waiting that is to
// make room for another one.
const stuckAfter = 5

// admit puts a connection into the table, or says why not. The caller has s.mu.
func (s *Server) admit(nc net.Conn) (c *conn, refused string) {
	if s.closing {
		return nil, "stopping"
	}
	key := hostOf(nc.RemoteAddr())
	h := s.hosts[key]
	if h != nil && h.conns >= s.cfg.MaxConnsPerHost && !s.evict(h) {
		return nil, "too many from this address, and none of them idle"
	}
	if len(s.conns) >= s.cfg.MaxConns && !s.evict(nil) {
		return nil, "too many, and none of them idle"
	}
	if h == nil {
		h = &host{key: key}
		s.hosts[key] = h
	}
	h.conns++
	h.refs++
	c = newConn(s, nc, h)
	s.conns[c] = struct{}{}
	return c, ""
}

// evict closes the connection that can be spared best: the longest idle one, and if there
// is none the one that its peer has kept waiting for the longest. With h it is one of h.
// The caller has s.mu.
func (s *Server) evict(h *host) bool {
	var idle, stuck *conn
	var idleSince, stuckSince int64
	now := s.tick.Load()
	for c := range s.conns {
		if h != nil && c.host != h {
			continue
		}
		if since := c.idleSince(); since != 0 && (idle == nil || since < idleSince) {
			idle, idleSince = c, since
		}
		if since := c.stuckSince(); since != 0 && now-since >= stuckAfter && (stuck == nil || since < stuckSince) {
			stuck, stuckSince = c, since
		}
	}
	c, why := idle, "idle, and room is needed"
	if c == nil {
		c, why = stuck, "the peer keeps it waiting, and room is needed"
	}
	if c == nil {
		return false
	}
	s.cfg.Log.Info("connection closed", "peer", c.nc.RemoteAddr(), "why", why)
	s.remove(c)
	c.evicted = true
	c.hangUp()
	return true
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

// idleSince is the tick since which nothing is in progress, 0 if something is.
func (c *conn) idleSince() int64 {
	if !c.waiting.Load() || c.recordSince.Load() != 0 || !c.unused() {
		return 0
	}
	return c.lastRead.Load()
}

// stuckSince is the tick since which the peer owes a part of a record, or does not take
// its replies; 0 if it does.
func (c *conn) stuckSince() int64 {
	if since := c.writeSince.Load(); since != 0 {
		return since
	}
	return c.recordSince.Load()
}
