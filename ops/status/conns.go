package status

import (
	"net"
	"net/http"
	"sync"
	"time"
)

// maxConns bounds the connections of the status at a time.
const maxConns = 64

// bounded is a listener with at most limit connections open. One more closes another, so that a probe always finds a
// place: one of the host that has the most, an idle one if there is one, and of these the one that has been so longest.
type bounded struct {
	net.Listener
	limit int

	mu   sync.Mutex
	open map[*boundedConn]struct{}
}

// boundedConn is a connection of a bounded listener, which its mutex guards.
type boundedConn struct {
	net.Conn
	of    *bounded
	host  string
	state http.ConnState
	since time.Time // when it got to this state
}

func newBounded(l net.Listener, limit int) *bounded {
	return &bounded{Listener: l, limit: limit, open: map[*boundedConn]struct{}{}}
}

func (b *bounded) Accept() (net.Conn, error) {
	conn, err := b.Listener.Accept()
	if err != nil {
		return nil, err
	}
	host, _, err := net.SplitHostPort(conn.RemoteAddr().String())
	if err != nil {
		host = conn.RemoteAddr().String()
	}
	c := &boundedConn{Conn: conn, of: b, host: host, state: http.StateNew, since: time.Now()}
	b.mu.Lock()
	b.open[c] = struct{}{}
	var last *boundedConn
	if len(b.open) > b.limit {
		last = b.victim(c)
		delete(b.open, last)
	}
	b.mu.Unlock()
	if last != nil {
		last.Conn.Close() // the server notices, and calls Close
	}
	return c, nil
}

// victim is the connection that makes room for c. The caller has b.mu.
func (b *bounded) victim(c *boundedConn) (worst *boundedConn) {
	of := map[string]int{}
	for x := range b.open {
		of[x.host]++
	}
	idle := func(x *boundedConn) bool { return x.state == http.StateIdle }
	for x := range b.open {
		switch {
		case x == c:
		case worst == nil, of[x.host] > of[worst.host]:
			worst = x
		case of[x.host] < of[worst.host], !idle(x) && idle(worst):
		case idle(x) && !idle(worst), x.since.Before(worst.since):
			worst = x
		}
	}
	return worst
}

// note is told each change of a connection's state by the HTTP server.
func (b *bounded) note(conn net.Conn, state http.ConnState) {
	if c, ok := conn.(*boundedConn); ok {
		b.mu.Lock()
		c.state, c.since = state, time.Now()
		b.mu.Unlock()
	}
}

func (c *boundedConn) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}
