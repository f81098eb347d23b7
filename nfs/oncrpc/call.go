package oncrpc

import (
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"tansy/internal/lockorder"
	"tansy/nfs/fair"
)

// Sizes in bytes.
const (
	ownArgs  = 2048    // arguments up to this size are copied, so that they do not keep a chunk
	callSize = 8 << 10 // counted for each call: its stack, such arguments, a small reply

	// shortReply is the least result that a call gets room for when memory is scarce, if its
	// procedure can do with that. There is no more room for than a multiple of it.
	shortReply = 4 << 10

	// unprovenData is what the results of a connection's calls may take together as long
	// as its peer has not shown that it takes them soon; one call may take more.
	unprovenData = 256 << 10

	// dearData is how many times as much processor time a result counts for as long as that is so: those that
	// never take what they ask for come after those that do.
	dearData = 8
)

// start runs a call as soon as the limits allow it, on another goroutine unless
// it is alone.
func (c *conn) start(h *header, proc *Proc, cred *Cred, args Decoder) outcome {
	t := tasks.Get().(*task)
	t.c, t.proc, t.xid = c, proc, h.xid
	want := fair.Claim{Bytes: callSize}
	if proc.Weight != nil {
		args.b = args.b[:min(len(args.b), ownArgs)] // who asks for much says it in few words
		t.weight = proc.Weight(args)
		if proc.Partial && t.weight > shortReply {
			want.Least = want.Bytes + shortReply
		}
		want.Bytes += t.weight
	}
	if len(args.b) <= ownArgs {
		t.own = append(t.own[:0], args.b...)
		args = NewDecoder(t.own)
	} else {
		t.chunk = c.rr.chunk
		t.chunk.hold()
		if t.record = c.rr.handOver(); t.record.Bytes == 0 {
			want.Bytes += len(t.chunk.b) // which may be kept for this call only
		}
	}
	switch t.bytes = c.admit(want, t.weight); {
	case t.bytes == 0, !c.copy(t):
		t.end()
		return broken
	case t.bytes < want.Bytes:
		t.weight = (t.bytes - want.Least + shortReply) &^ (shortReply - 1)
		t.call.Limit = t.weight
	}
	if proc.Changes {
		t.era, t.placed = c.takePlace(), true
	}
	cost := max(fair.CallCost, (len(args.b)+t.weight)/fair.UnitBytes)
	room := min(cost, fair.RoomPerProcessor)
	if t.weight > 0 && !c.takesData() {
		cost += t.weight / fair.UnitBytes * (dearData - 1)
	}
	c.takeTurn(&t.turn, room, cost)
	c.mu.Lock()
	others := c.inFlight > 0
	c.inFlight++
	c.held += t.bytes
	c.data += t.weight
	c.mu.Unlock()
	t.call.Args, t.call.Cred, t.call.link = args, cred, c.link
	t.call.Peer, t.call.Local = c.call.Peer, c.call.Local
	t.call.Security = c.call.Security
	brief := c.brief(t)
	if !brief && !c.alone(others) {
		c.s.work.start(t)
	} else if !c.runHere(t, brief) {
		return takenOver
	}
	return served
}

// takePlace takes a place for a call that changes something, and waits for it if it has to.
func (c *conn) takePlace() (era int) {
	if c.place == nil {
		c.place = make(chan int, 1)
	}
	if era, ok := c.s.changes.Begin(&c.host.changes, c.place); ok {
		return era
	}
	c.flush()
	lockorder.Wait[lockorder.Admission]()
	era = <-c.place
	c.woke = time.Now()
	return era
}

// takeTurn takes a turn, and waits for it if it has to.
func (c *conn) takeTurn(t *fair.Turn, room, cost int) {
	if c.s.turns.Take(&c.flow, t, room, cost) {
		return
	}
	c.flush()
	c.s.turns.Wait(&c.flow, t, room, cost)
	c.woke = time.Now()
}

// admit takes what a call needs of the memory, when this connection may start it. It gets
// nothing if the connection is broken.
func (c *conn) admit(want fair.Claim, weight int) (granted int) {
	for {
		c.mu.Lock()
		if c.full(want.Bytes, weight) {
			c.mu.Unlock()
			c.flush()
			c.mu.Lock()
			for c.full(want.Bytes, weight) {
				lockorder.WaitWith[lockorder.Fewer, lockorder.Connection]()
				c.changed.Wait()
			}
			c.woke = time.Now()
		}
		c.mu.Unlock()
		if n := c.out.Try(want); n > 0 {
			return n
		}
		c.flush()
		c.park()
		n := c.out.Take(want)
		c.parked.Store(false)
		c.woke = time.Now()
		c.mu.Lock()
		full := c.full(want.Bytes, weight)
		c.mu.Unlock()
		if !full || n == 0 {
			return n
		}
		c.out.Give(n) // the peer has stopped to take replies meanwhile
	}
}

// copy takes what a large call needs while it is carried out, which is its data once more. It
// fails if the connection is broken.
func (c *conn) copy(t *task) bool {
	if t.record.Bytes == 0 {
		return true
	}
	want := fair.Claim{Bytes: t.record.Bytes}
	if t.copied = c.copies.Try(want); t.copied == 0 {
		c.flush()
		t.copied = c.copies.Take(want)
		c.woke = time.Now()
	}
	if t.copied == 0 {
		c.out.Give(t.bytes)
		return false
	}
	return true
}

// full tells if a call that holds size bytes, weight of them for its result, has to wait
// for others of this connection, or for the peer to take replies. One connection gets a
// quarter of the memory.
func (c *conn) full(size, weight int) bool {
	switch {
	case c.blocked, c.inFlight >= c.s.cfg.MaxInFlight:
		return true
	case c.inFlight > 0 && c.held+size > c.s.cfg.ReplyBytes/4:
		return true
	}
	return weight > 0 && c.data > 0 && c.data+weight > unprovenData && c.pace < fair.Proven
}

// takesData tells if the peer has shown that it takes results soon.
func (c *conn) takesData() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pace == fair.Proven
}

// task is a call that is not inline.
type task struct {
	c     *conn
	proc  *Proc
	xid   uint32
	chunk *chunk // holds the arguments, or nil
	own   []byte // holds them if they are small

	// Bytes of memory.
	record fair.Reservation // for the record that holds the arguments
	copied int              // of them, for as long as it is carried out
	bytes  int              // for the call
	weight int              // that part of it which is for the result

	placed bool // it has a place among those that change something,
	era    int  // taken then

	call Call
	turn fair.Turn
}

var tasks = sync.Pool{New: func() any { return new(task) }}

// run runs the call and returns its reply.
func (t *task) run() outgoing {
	c := t.c
	buf := replyBuffers.Get().(*replyBuffer)
	t.call.Reply = NewEncoder(buf.b)
	execute(c.s, t.proc, &t.call, t.xid)
	buf.b = t.call.Reply.b
	t.release()
	return outgoing{buf: buf, data: t.call.Reply.data, receipt: t.call.receipt, calls: 1, bytes: t.bytes, weight: t.weight}
}

// release gives back the memory of the arguments, and the place.
func (t *task) release() {
	if t.placed {
		t.c.s.changes.End(&t.c.host.changes, t.era)
		t.placed = false
	}
	if t.chunk != nil {
		t.chunk.release()
	}
	if t.copied > 0 {
		t.c.copies.Give(t.copied)
	}
	if t.record.Bytes > 0 {
		t.record.Give()
	}
	t.chunk, t.record, t.copied = nil, fair.Reservation{}, 0
}

// end ends the turn of t, and gives back t and what it holds.
func (t *task) end() {
	t.release()
	t.c.s.turns.End(&t.turn)
	t.turn.Reset()
	*t = task{own: t.own, turn: t.turn}
	tasks.Put(t)
}

// execute runs a procedure and encodes the whole reply. A procedure that panics
// has met a fault of the server: it is logged, and the caller is told.
func execute(s *Server, proc *Proc, call *Call, xid uint32) {
	e := &call.Reply
	start := e.Len()
	accept := SystemErr
	call.Status, call.XID = 0, xid
	call.Deny = AuthOK
	begin := time.Now()
	defer func() {
		proc.stats.count(time.Since(begin), accept, call.Status)
		if r := recover(); r != nil {
			s.cfg.Log.Error("procedure failed",
				"proc", proc.Name, "peer", call.Peer, "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
			e.Truncate(start)
			beginReply(e, xid, SystemErr)
			endReply(e, start)
		}
	}()
	beginReply(e, xid, Success)
	accept = proc.Serve(call)
	if call.Deny != AuthOK {
		s.count.refusedCalls.Add(1)
		e.Truncate(start)
		refuse(e, xid, rejectAuth, uint32(call.Deny))
		return
	}
	if accept != Success {
		e.Truncate(start)
		beginReply(e, xid, accept)
	}
	endReply(e, start)
}
