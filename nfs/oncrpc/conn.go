package oncrpc

import (
	"fmt"
	"io"
	"net"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"tansy/internal/lockorder"
	"tansy/nfs/fair"
)

// conn is one connection. One goroutine at a time reads (run); replies are written
// by whichever goroutine finds nobody writing. What it knows lies where it is used:
type conn struct {
	s     *Server
	nc    net.Conn
	sock  sender
	host  *host
	rr    *recordReader
	creds credCache

	inline  // calls that run runs itself
	single  // calls that are alone (lone.go)
	sharing // memory, turns, and places (package fair)
	watched // what the janitor looks at
	pacing  // the peer's pace (pace.go)
	tally   // numbers for the status (stats.go)
	replies // on their way out (write.go)
	secured // TLS (tls.go)
}

// inline is for calls that run runs itself.
type inline struct {
	call    Call
	batch   *replyBuffer // their replies, not yet sent
	batched int          // replies in it

	// An inline procedure that does wait, say for a lock, keeps the calls behind
	// it waiting. When that shows, the connection is shy for a while and runs
	// inline procedures like all others.
	woke time.Time // when the calls at hand came
	ran  bool      // an inline procedure since then
	slow bool      // the last ones took longer than slowInline
	shy  int       // calls left of this
}

// sharing is what the connection has of what all share.
type sharing struct {
	flow  fair.Flow
	turn  fair.Turn // of the calls whose replies are in batch
	place chan int  // tells that there is one for the call that run waits with (fair.Changes); made once

	// Memory: for large records, until they are carried out; for calls and their replies; for what it takes to
	// carry out large records.
	in, out, copies fair.Account
	small           fair.Account // in place of in, for small records that have come whole
}

// watched is what the janitor looks at: ticks, 0 for not now.
type watched struct {
	lastRead    atomic.Int64 // something came
	waiting     atomic.Bool  // in Read
	recordSince atomic.Int64 // waiting for the rest of a record, or for as much of it as counts
	writeSince  atomic.Int64 // writing
	draining    atomic.Bool
	lastUse     atomic.Int64 // as lastRead, by Server.now
	called      atomic.Bool  // a call came
	repliedAt   atomic.Int64 // Server.lately when replies were last written
	evicted     bool         // guarded by Server.mu: it is not in the table any more
	progress    int          // bytes of the record since recordSince
}

// replyBuffer is what replies are encoded into.
type replyBuffer struct{ b []byte }

var replyBuffers = sync.Pool{New: func() any { return &replyBuffer{make([]byte, 0, 1024)} }}

// Sizes in bytes.
const (
	maxReplyBuffer = 128 << 10 // kept for reuse
	maxQueued      = 8 << 10   // replies of inline calls that another goroutine has to write
	enoughProgress = 32 << 10  // of a record within RecordTimeout, or what is left of it
)

// lingerTime is how long a stopping server waits for its peers to hang up.
const lingerTime = time.Second

const (
	slowInline = 200 * time.Microsecond // for all calls that came together
	shyCalls   = 256
)

func newConn(s *Server, nc net.Conn, h *host) *conn {
	c := &conn{s: s, nc: nc, host: h}
	c.pace, c.link = fair.Fresh, new(link)
	c.in = fair.NewAccount(s.records, &h.records, fair.Fresh)
	c.out = fair.NewAccount(s.calls, &h.calls, fair.Fresh)
	c.copies = fair.NewAccount(s.copies, &h.copies, fair.Proven) // its peer has sent what there is to send
	c.small = fair.NewAccount(s.small, &h.small, fair.Proven)
	c.flow.Host = &h.turns
	c.rr = newRecordReader(c)
	c.rr.reserve, c.rr.release = c.reserve, c.release
	c.changed.L = &c.mu
	if sc, ok := nc.(syscall.Conn); ok {
		if raw, err := sc.SyscallConn(); err == nil {
			c.sock.init(raw)
			c.sock.limit(maxUnsent)
			c.unread.init(raw)
			c.link.raw = raw
		}
	}
	c.call.Peer, c.call.Local = nc.RemoteAddr(), nc.LocalAddr()
	c.since = time.Now()
	c.lastRead.Store(s.tick.Load())
	c.lastUse.Store(s.now())
	c.waiting.Store(true) // as soon as run comes to it
	return c
}

// Read is where the recordReader gets its bytes from.
func (c *conn) Read(p []byte) (int, error) {
	if c.rr.partial() && c.recordSince.Load() == 0 {
		c.progress = 0
		c.recordSince.Store(c.s.tick.Load())
	}
	c.waiting.Store(true)
	n, err := c.source().Read(p)
	c.waiting.Store(false)
	now := c.s.tick.Load()
	c.lastRead.Store(now)
	c.received.Add(uint64(n))
	if c.progress += n; c.progress >= enoughProgress && c.recordSince.Load() != 0 {
		c.progress = 0
		c.recordSince.Store(now)
	}
	c.woke, c.ran = time.Now(), false
	c.lastUse.Store(c.s.at(c.woke))
	return n, err
}

// overdue tells the janitor why to close the connection, if it should.
func (c *conn) overdue(now int64) string {
	cfg := &c.s.cfg
	late := func(since int64, limit time.Duration) bool {
		return since != 0 && time.Duration(now-since)*time.Second > limit
	}
	switch {
	case late(c.writeSince.Load(), cfg.WriteTimeout):
		return "the peer does not take its replies"
	case late(c.writeSince.Load(), crowdedWrites*cfg.CrowdedTimeout) && c.s.calls.Waiting() > 0:
		return "the peer does not take its replies, and others wait"
	case late(c.shakingSince.Load(), cfg.HandshakeTimeout):
		return "the handshake of TLS does not come to its end"
	case !c.waiting.Load():
		return ""
	case late(c.recordSince.Load(), cfg.RecordTimeout):
		return "the peer does not go on with its record"
	case late(c.recordSince.Load(), cfg.CrowdedTimeout) && c.recordDue.Load() != 0 && c.s.records.Waiting() > 0:
		return "the peer does not go on with its record, and others wait"
	case late(c.lastRead.Load(), cfg.IdleTimeout):
		if c.unused() {
			return "idle"
		}
	}
	return ""
}

// crowdedWrites times CrowdedTimeout is what a peer may take for a piece of its replies:
// a socket tells that there is room in its buffer when a third of it is free.
const crowdedWrites = 3

// hangUp closes the connection, which ends run.
func (c *conn) hangUp() {
	c.nc.Close()
	c.in.Close()
	c.small.Close()
	c.out.Close()
	c.copies.Close()
}

// unused tells if no call is in progress.
func (c *conn) unused() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.inFlight == 0
}

// stopReading makes run end after the call at hand.
func (c *conn) stopReading() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.draining.Swap(true) { // else run may linger, with a deadline of its own
		c.nc.SetReadDeadline(time.Unix(1, 0))
	}
}

// run serves the connection until the peer closes it, breaks the protocol, or
// the server shuts down; then it waits for the calls in progress and until all
// replies are written. It returns false at once when another goroutine has taken
// its place.
func (c *conn) run() (ended bool) {
	ended = true
	defer func() {
		if !ended {
			return
		}
		if r := recover(); r != nil {
			c.s.cfg.Log.Error("connection failed",
				"peer", c.nc.RemoteAddr(), "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
		}
		c.flush()
		c.s.turns.End(&c.turn)
		c.mu.Lock()
		for c.inFlight > 0 || c.writing {
			lockorder.WaitWith[lockorder.Fewer, lockorder.Connection]()
			c.changed.Wait()
		}
		linger := c.draining.Load() && !c.dead
		c.mu.Unlock()
		c.sayGoodbye()
		if linger {
			c.linger()
		}
		c.nc.Close()
		c.rr.close()
	}()
	for !c.draining.Load() {
		if !c.rr.buffered() {
			c.flush()
		}
		rec, err := c.rr.next()
		if err != nil {
			if err != io.EOF && !c.draining.Load() {
				c.s.cfg.Log.Debug("connection ends", "peer", c.nc.RemoteAddr(), "err", err)
			}
			return
		}
		if c.recordSince.Load() != 0 {
			c.recordSince.Store(0)
		}
		c.came(len(rec))
		if !c.called.Load() {
			c.called.Store(true)
		}
		switch c.serve(rec) {
		case notACall:
			c.s.cfg.Log.Debug("connection ends: not a call", "peer", c.nc.RemoteAddr())
			return
		case takenOver:
			return false
		case broken:
			return
		case wantsTLS:
			if !c.startTLS() {
				return
			}
		}
	}
	return
}

// outcome is what became of a record.
type outcome int

const (
	served    outcome = iota // or on another goroutine
	notACall                 // the peer does not speak RPC
	takenOver                // served, but another goroutine reads now
	broken                   // not served: the connection is closed
	wantsTLS                 // a probe for TLS that is still to be answered
)

// linger ends a connection without losing the replies on their way: to close it
// while there is something unread would reset it. It waits for the peer's end, but not long.
func (c *conn) linger() {
	half, ok := c.nc.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	c.nc.SetReadDeadline(time.Now().Add(lingerTime))
	io.Copy(io.Discard, c.nc)
}

// serve answers or starts one call.
func (c *conn) serve(rec []byte) outcome {
	c.calls.Add(1)
	d := NewDecoder(rec)
	h, fault := parseHeader(&d)
	switch fault {
	case headerOK:
	case headerAlien:
		return notACall
	case headerMismatch:
		return c.refuse(h.xid, rejectMismatch, rpcVersion, rpcVersion)
	case headerCred:
		return c.refuse(h.xid, rejectAuth, uint32(AuthBadCred))
	case headerVerf:
		return c.refuse(h.xid, rejectAuth, uint32(AuthBadVerf))
	default:
		return c.decline(h.xid, GarbageArgs)
	}
	var cred *Cred
	var stat AuthStat
	if Flavor(h.flavor) == AuthTLS {
		stat = c.probe(&h, len(d.Rest()))
	} else {
		cred, stat = c.creds.get(h.flavor, h.cred)
	}
	if stat != AuthOK {
		return c.refuse(h.xid, rejectAuth, uint32(stat))
	}
	proc, accept, versions := target(c.s.cfg.Programs, &h)
	if accept == ProgMismatch {
		return c.decline(h.xid, accept, versions[0], versions[1])
	}
	if accept != Success {
		return c.decline(h.xid, accept)
	}
	if Flavor(h.flavor) == AuthTLS {
		c.probed = h.xid
		return wantsTLS
	}
	if !proc.Inline || c.shy > 0 {
		c.shy = max(0, c.shy-1)
		return c.start(&h, proc, cred, d)
	}
	c.reply()
	c.call.Args, c.call.Cred = d, cred
	c.ran = true
	execute(c.s, proc, &c.call, h.xid)
	c.keep(c.call.Reply)
	return served
}

// refuse answers a call that is not accepted.
func (c *conn) refuse(xid uint32, reject uint32, words ...uint32) outcome {
	c.s.count.refusedCalls.Add(1)
	e := c.reply()
	refuse(e, xid, reject, words...)
	c.keep(*e)
	return served
}

// decline answers a call that is accepted, but not carried out.
func (c *conn) decline(xid uint32, accept Accept, words ...uint32) outcome {
	c.s.count.refusedCalls.Add(1)
	e := c.reply()
	start := e.Len()
	beginReply(e, xid, accept)
	for _, w := range words {
		e.Uint32(w)
	}
	endReply(e, start)
	c.keep(*e)
	return served
}

// reply returns the encoder for a reply that goes to the batch, when it is the connection's
// turn. All replies in a batch are of one turn.
func (c *conn) reply() *Encoder {
	if c.batch == nil {
		room, cost := 1, 1
		if c.rr.buffered() {
			room, cost = fair.BatchRoom, fair.MaxBatch
		}
		c.takeTurn(&c.turn, room, cost)
		c.batched = 0
		c.batch = replyBuffers.Get().(*replyBuffer)
	}
	c.call.Reply = NewEncoder(c.batch.b)
	return &c.call.Reply
}

// keep stores what was encoded in the batch, and sends it when it is time, which may
// have to wait (sendBatch).
func (c *conn) keep(e Encoder) {
	c.batch.b = e.b
	if e.data != nil {
		c.sendBatch(e.data) // nothing can be encoded behind data
	} else if c.batched++; c.batched == fair.MaxBatch {
		c.flush()
	}
}

// flush sends the batch, if there is one, and waits as sendBatch does.
func (c *conn) flush() {
	if c.batch == nil || len(c.batch.b) == 0 {
		return
	}
	if c.ran {
		took := time.Since(c.woke)
		c.ranFor(took, took > slowInline && c.s.turns.Waiting() > 0)
	}
	c.sendBatch(nil)
	c.ran = false
}

// ranFor notes how long inline calls that came together took. Twice in succession shows that they wait. Once may be by
// chance: where clients run on the same processors, the system takes those from the server now and then. To be crowded
// is no fault of the calls.
func (c *conn) ranFor(took time.Duration, crowded bool) {
	slow := took > slowInline && !crowded
	if slow && c.slow {
		c.shy = shyCalls
	}
	if c.slow = slow; slow {
		c.woke = time.Now() // what came with them is judged by itself
	}
}

// sendBatch sends the batch, and data behind it. When more than maxQueued is on its
// way it waits: a peer that does not read its replies is not served any further.
func (c *conn) sendBatch(data Data) {
	c.send(outgoing{buf: c.batch, data: data}, &c.turn)
	c.s.turns.End(&c.turn)
	c.batch = nil
	c.mu.Lock()
	for c.queued > maxQueued && !c.dead {
		lockorder.WaitWith[lockorder.Fewer, lockorder.Connection]()
		c.changed.Wait()
	}
	c.mu.Unlock()
}
