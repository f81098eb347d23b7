package oncrpc

import (
	"fmt"
	"io"
	"net"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// conn is one connection. One goroutine at a time reads (run); replies are written
// by whichever goroutine finds nobody writing.
type conn struct {
	s     *Server
	nc    net.Conn
	rr    *recordReader
	creds credCache
	call  Call         // of inline procedures
	batch *replyBuffer // their replies, not yet sent

	// An inline procedure that does wait, say for a lock, keeps the calls behind
	// it waiting. When that shows, the connection is shy for a while and runs
	// inline procedures like all others.
	woke time.Time // when the calls at hand came
	ran  bool      // an inline procedure since then
	shy  int       // calls left of this

	// Calls that are alone (lone.go).
	unread unread
	crowd  int          // calls left that go to other goroutines all the same
	lone   atomic.Int64 // tick at which run began to run such a call, or 0

	// For the janitor: ticks, 0 for not now.
	lastRead    atomic.Int64 // something came
	waiting     atomic.Bool  // in Read
	recordSince atomic.Int64 // waiting for the rest of a record
	writeSince  atomic.Int64 // writing
	draining    atomic.Bool

	id             uint64 // of the server's connections
	since          time.Time
	calls          atomic.Uint64
	received, sent atomic.Uint64 // bytes

	mu       sync.Mutex
	changed  sync.Cond // inFlight or queued went down, or writing ended
	inFlight int       // calls, but inline ones, whose reply is not written
	held     int       // bytes of the budget they took
	queue    []outgoing
	spare    []outgoing // an empty queue, for next time
	queued   int        // bytes of inline calls in queue or being written
	writing  bool
	dead     bool // a write failed
}

// outgoing is a reply, or several, on its way out.
type outgoing struct {
	buf   *replyBuffer
	data  []byte // follows buf
	calls int    // in flight that end with it
	bytes int    // of the budget that it gives back
}

// inline is the number of bytes of inline calls in o.
func (o *outgoing) inline() int {
	if o.calls > 0 {
		return 0 // these are in the budget
	}
	return len(o.buf.b) + len(o.data)
}

// replyBuffer is what replies are encoded into.
type replyBuffer struct{ b []byte }

var replyBuffers = sync.Pool{New: func() any { return &replyBuffer{make([]byte, 0, 1024)} }}

// Sizes in bytes.
const (
	ownArgs        = 2048      // arguments up to this size are copied, so that they do not keep a chunk
	writeSize      = 128 << 10 // a write has at least that, if there is as much, and less than twice that
	maxBatch       = 32 << 10  // replies of inline calls sent together
	maxReplyBuffer = 128 << 10 // kept for reuse
	maxQueued      = 64 << 10  // replies of inline calls that another goroutine has to write
)

// lingerTime is how long a stopping server waits for its peers to hang up.
const lingerTime = time.Second

// crowdedTimeout takes the place of RecordTimeout when others wait to send a record.
const crowdedTimeout = 10 * time.Second

const (
	slowInline = 200 * time.Microsecond // for all calls that came together
	shyCalls   = 256
)

func newConn(s *Server, nc net.Conn) *conn {
	c := &conn{s: s, nc: nc}
	c.rr = newRecordReader(c)
	c.rr.limit, c.rr.wait = s.receiving, c.waitToReceive
	c.changed.L = &c.mu
	c.unread.init(nc)
	c.call.Peer = nc.RemoteAddr()
	c.since = time.Now()
	c.lastRead.Store(s.tick.Load())
	return c
}

// Read is where the recordReader gets its bytes from.
func (c *conn) Read(p []byte) (int, error) {
	if c.rr.partial() && c.recordSince.Load() == 0 {
		c.recordSince.Store(c.s.tick.Load())
	}
	c.waiting.Store(true)
	n, err := c.nc.Read(p)
	c.waiting.Store(false)
	c.lastRead.Store(c.s.tick.Load())
	c.received.Add(uint64(n))
	c.woke, c.ran = time.Now(), false
	return n, err
}

// waitToReceive takes the n bytes of the next record when there is room for it. The
// peer is not to blame for this time.
func (c *conn) waitToReceive(n int) {
	c.flush()
	c.s.receiving.take(n)
	c.recordSince.Store(0)
	c.woke = time.Now()
}

// overdue tells the janitor why to close the connection, if it should.
func (c *conn) overdue(now int64) string {
	late := func(since int64, limit time.Duration) bool {
		return since != 0 && time.Duration(now-since)*time.Second > limit
	}
	switch {
	case late(c.writeSince.Load(), c.s.cfg.WriteTimeout):
		return "the peer does not take its replies"
	case !c.waiting.Load():
		return ""
	case late(c.recordSince.Load(), c.s.cfg.RecordTimeout):
		return "the peer does not finish its record"
	case late(c.recordSince.Load(), crowdedTimeout) && c.s.receiving.crowded():
		return "the peer is slow with its record, and others wait"
	case late(c.lastRead.Load(), c.s.cfg.IdleTimeout):
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.inFlight == 0 {
			return "idle"
		}
	}
	return ""
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
			c.s.cfg.Log.Error("connection failed", "peer", c.nc.RemoteAddr(), "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
		}
		c.flush()
		c.mu.Lock()
		for c.inFlight > 0 || c.writing {
			c.changed.Wait()
		}
		linger := c.draining.Load() && !c.dead
		c.mu.Unlock()
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
		switch c.serve(rec) {
		case notACall:
			c.s.cfg.Log.Debug("connection ends: not a call", "peer", c.nc.RemoteAddr())
			return
		case takenOver:
			return false
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
	cred, stat := c.creds.get(h.flavor, h.cred)
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

// reply returns the encoder for a reply that goes to the batch.
func (c *conn) reply() *Encoder {
	if c.batch == nil {
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
	} else if len(e.b) >= maxBatch {
		c.flush()
	}
}

// flush sends the batch, if there is one, and waits as sendBatch does.
func (c *conn) flush() {
	if c.batch == nil || len(c.batch.b) == 0 {
		return
	}
	if c.ran && time.Since(c.woke) > slowInline {
		c.shy = shyCalls
	}
	c.sendBatch(nil)
	c.ran = false
}

// sendBatch sends the batch, and data behind it. When more than maxQueued is on its
// way it waits: a peer that does not read its replies is not served any further.
func (c *conn) sendBatch(data []byte) {
	c.send(outgoing{buf: c.batch, data: data})
	c.batch = nil
	c.mu.Lock()
	for c.queued > maxQueued && !c.dead {
		c.changed.Wait()
	}
	c.mu.Unlock()
}

// start runs a call as soon as the limits allow it, on another goroutine unless
// it is alone.
func (c *conn) start(h *header, proc *Proc, cred *Cred, args Decoder) outcome {
	size := ownArgs
	small := len(args.b) <= ownArgs
	if !small {
		size = len(c.rr.chunk.b) // which may be kept for this call only
	}
	if proc.Weight != nil {
		size += proc.Weight(args)
	}
	c.mu.Lock()
	if c.full(size) {
		c.mu.Unlock()
		c.flush()
		c.mu.Lock()
		for c.full(size) {
			c.changed.Wait()
		}
		c.woke = time.Now()
	}
	others := c.inFlight > 0
	c.inFlight++
	c.held += size
	c.mu.Unlock()
	if !c.s.budget.try(size) {
		c.flush()
		c.s.budget.take(size)
		c.woke = time.Now()
	}
	t := tasks.Get().(*task)
	t.c, t.proc, t.xid, t.bytes = c, proc, h.xid, size
	if small {
		t.own = append(t.own[:0], args.b...)
		args = NewDecoder(t.own)
	} else {
		t.chunk = c.rr.chunk
		t.chunk.hold()
	}
	t.call.Args, t.call.Cred, t.call.Peer = args, cred, c.call.Peer
	if !c.alone(others) {
		c.s.work.start(t)
	} else if !c.runLone(t) {
		return takenOver
	}
	return served
}

// full tells if a call that holds size bytes has to wait for others of this
// connection. One connection gets a quarter of the budget, so that a peer that
// does not take its replies does not stop the others.
func (c *conn) full(size int) bool {
	return c.inFlight >= c.s.cfg.MaxInFlight || c.inFlight > 0 && c.held+size > c.s.cfg.MaxBytes/4
}

// task is a call that is not inline.
type task struct {
	c     *conn
	proc  *Proc
	xid   uint32
	chunk *chunk // holds the arguments, or nil
	own   []byte // holds them if they are small
	bytes int    // taken from the budget
	call  Call
}

var tasks = sync.Pool{New: func() any { return new(task) }}

// run runs the call and returns its reply.
func (t *task) run() outgoing {
	c := t.c
	buf := replyBuffers.Get().(*replyBuffer)
	t.call.Reply = NewEncoder(buf.b)
	execute(c.s, t.proc, &t.call, t.xid)
	buf.b = t.call.Reply.b
	out := outgoing{buf: buf, data: t.call.Reply.data, calls: 1, bytes: t.bytes}
	if t.chunk != nil {
		t.chunk.release()
	}
	*t = task{own: t.own}
	tasks.Put(t)
	return out
}

// execute runs a procedure and encodes the whole reply. A procedure that panics
// has met a fault of the server: it is logged, and the caller is told.
func execute(s *Server, proc *Proc, call *Call, xid uint32) {
	e := &call.Reply
	start := e.Len()
	accept := SystemErr
	call.Status = 0
	begin := time.Now()
	defer func() {
		proc.stats.count(time.Since(begin), accept, call.Status)
		if r := recover(); r != nil {
			s.cfg.Log.Error("procedure failed", "proc", proc.Name, "peer", call.Peer, "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
			e.Truncate(start)
			beginReply(e, xid, SystemErr)
			endReply(e, start)
		}
	}()
	beginReply(e, xid, Success)
	if accept = proc.Serve(call); accept != Success {
		e.Truncate(start)
		beginReply(e, xid, accept)
	}
	endReply(e, start)
}

// send queues a reply and, if nobody is writing, writes all that is queued. So
// replies that become ready while another is written go out together.
func (c *conn) send(o outgoing) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue = append(c.queue, o)
	c.queued += o.inline()
	if c.writing {
		return
	}
	c.writing = true
	for len(c.queue) > 0 {
		batch := c.queue
		c.queue, c.spare = c.spare[:0], nil
		if !c.dead {
			c.mu.Unlock()
			err := c.write(batch)
			c.mu.Lock()
			if err != nil {
				c.dead = true
				c.nc.Close() // ends run
			}
		}
		for i, o := range batch {
			c.inFlight -= o.calls
			c.held -= o.bytes
			c.queued -= o.inline()
			if o.bytes > 0 {
				c.s.budget.give(o.bytes)
			}
			if cap(o.buf.b) <= maxReplyBuffer {
				o.buf.b = o.buf.b[:0]
				replyBuffers.Put(o.buf)
			}
			batch[i] = outgoing{}
		}
		c.spare = batch[:0]
		c.changed.Broadcast()
	}
	c.writing = false
	c.changed.Broadcast()
}

// write sends replies with few system calls. WriteTimeout is for each of them: a peer
// that is slow, but reads, gets all.
func (c *conn) write(batch []outgoing) error {
	defer c.writeSince.Store(0)
	if len(batch) == 1 && batch[0].data == nil && len(batch[0].buf.b) <= writeSize {
		c.writeSince.Store(c.s.tick.Load())
		n, err := c.nc.Write(batch[0].buf.b)
		c.sent.Add(uint64(n))
		return err
	}
	bufs := make(net.Buffers, 0, 3*len(batch))
	for _, o := range batch {
		bufs = appendSplit(bufs, o.buf.b)
		bufs = appendSplit(bufs, o.data)
		if pad := -len(o.data) & 3; pad > 0 {
			bufs = append(bufs, padding[:pad])
		}
	}
	for len(bufs) > 0 {
		n := 0
		for size := 0; n < len(bufs) && size < writeSize; n++ {
			size += len(bufs[n])
		}
		part := bufs[:n]
		bufs = bufs[n:]
		c.writeSince.Store(c.s.tick.Load())
		written, err := part.WriteTo(c.nc)
		c.sent.Add(uint64(written))
		if err != nil {
			return err
		}
	}
	return nil
}

// appendSplit appends b in pieces of at most writeSize.
func appendSplit(bufs net.Buffers, b []byte) net.Buffers {
	for len(b) > 0 {
		n := min(len(b), writeSize)
		bufs = append(bufs, b[:n])
		b = b[n:]
	}
	return bufs
}
