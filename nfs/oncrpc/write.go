package oncrpc

import (
	"errors"
	"net"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"tansy/internal/lockorder"
	"tansy/nfs/fair"
)

// outgoing is a reply, or several, on its way out.
type outgoing struct {
	buf   *replyBuffer
	data  Data // follows buf, or nil
	calls int  // in flight that end with it

	receipt *Receipt // or nil

	// Bytes of memory that the call has.
	bytes  int
	weight int // that part of it which is for the result
}

// inline is the number of bytes of inline calls in o.
func (o *outgoing) inline() int {
	if o.calls > 0 {
		return 0 // these are in the memory
	}
	return len(o.buf.b) + lenOf(o.data)
}

const (
	writeSize = 128 << 10 // a write has at least that, if there is as much, and less than twice that (bytes)

	// maxPieces is how many pieces the system takes at once (IOV_MAX).
	maxPieces = 1024

	// slowWrite is how long a write may wait for the peer that is not slow.
	slowWrite = 250 * time.Millisecond
)

// replies are those of a connection that are on their way out.
type replies struct {
	mu       lockorder.Mutex[lockorder.Connection]
	changed  sync.Cond // inFlight or queued went down, or writing ended
	inFlight int       // calls, but inline ones, whose reply is not written
	held     int       // bytes of memory for them
	data     int       // that part of it which is for results
	queue    []outgoing
	spare    []outgoing // an empty queue, for next time
	queued   int        // bytes of inline calls in queue or being written
	writing  bool
	turnOf   *fair.Turn // whoever is writing has, for as long as that does not wait
	blocked  bool       // and what is being written or queued waits for the peer
	lagged   bool       // which has been slow with it
	pace     fair.Class
	taken    int  // bytes of results since it was slow, as long as it is not proven
	dead     bool // a write failed

	one [1][]byte // for write
}

// errSilent: nothing is to be said any more.
var errSilent = errors.New("replies are not allowed to leave")

// send queues a reply and, if nobody is writing, writes all that is queued. So
// replies that become ready while another is written go out together. When that waits for the
// peer, the caller's turn ends.
func (c *conn) send(o outgoing, t *fair.Turn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.writing || o.data != nil {
		c.shrink(&o) // else all is given back soon
	}
	c.queue = append(c.queue, o)
	c.queued += o.inline()
	if c.writing {
		return
	}
	c.writing, c.turnOf = true, t
	for len(c.queue) > 0 {
		batch := c.queue
		c.queue, c.spare = c.spare[:0], nil
		if !c.dead {
			c.mu.Unlock()
			err := c.write(batch)
			c.mu.Lock()
			if err != nil {
				c.dead = true
				c.hangUp()
			}
		}
		bytes, data := 0, 0
		for i, o := range batch {
			c.inFlight -= o.calls
			c.queued -= o.inline()
			bytes += o.bytes
			data += o.weight
			if cap(o.buf.b) <= maxReplyBuffer {
				o.buf.b = o.buf.b[:0]
				replyBuffers.Put(o.buf)
			}
			if o.data != nil {
				o.data.Done()
			}
			batch[i] = outgoing{}
		}
		c.held -= bytes
		c.data -= data
		if bytes > 0 {
			c.out.Give(bytes)
		}
		c.took(data)
		c.spare = batch[:0]
		c.changed.Broadcast()
	}
	c.writing, c.turnOf, c.blocked = false, nil, false
	c.changed.Broadcast()
}

// shrink gives back what a call took for its result and does not need, now that it is there.
func (c *conn) shrink(o *outgoing) {
	if o.calls == 0 {
		return
	}
	needs := min(cap(o.buf.b)+lenOf(o.data), o.bytes)
	over := o.bytes - needs
	c.held -= over
	o.bytes = needs
	light := min(o.weight, needs)
	c.data -= o.weight - light
	o.weight = light
	if over > 0 {
		c.out.Give(over)
		c.changed.Broadcast()
	}
}

// write sends replies with few system calls. WriteTimeout is for each of them: a peer
// that is slow, but reads, gets all.
func (c *conn) write(batch []outgoing) error {
	if !c.s.mayReply() {
		return errSilent
	}
	defer c.writeSince.Store(0)
	if at := c.s.lately.Load(); c.repliedAt.Load() != at { // no store for each call
		c.repliedAt.Store(at)
	}
	if c.tls != nil {
		return c.writeSealed(batch)
	}
	c.link.number(batch)
	if len(batch) == 1 && batch[0].data == nil && len(batch[0].buf.b) <= writeSize {
		c.one[0] = batch[0].buf.b
		return c.writePiece(c.one[:])
	}
	pieces := 0
	for _, o := range batch {
		pieces += 2
		if o.data != nil {
			pieces += len(o.data.Pieces())
		}
	}
	bufs := make(net.Buffers, 0, pieces) // enough if none is split
	for _, o := range batch {
		bufs = appendSplit(bufs, o.buf.b)
		if o.data == nil {
			continue
		}
		for _, p := range o.data.Pieces() {
			bufs = appendSplit(bufs, p)
		}
		if pad := -o.data.Len() & 3; pad > 0 {
			bufs = append(bufs, padding[:pad])
		}
	}
	for len(bufs) > 0 {
		n := 0
		for size := 0; n < min(len(bufs), maxPieces) && size < writeSize; n++ {
			size += len(bufs[n])
		}
		part := bufs[:n]
		bufs = bufs[n:]
		if err := c.writePiece(part); err != nil {
			return err
		}
	}
	return nil
}

// writePiece writes bufs, and notes when it has to wait for the peer.
func (c *conn) writePiece(bufs net.Buffers) error {
	c.writeSince.Store(c.s.tick.Load())
	rest, err := c.link.write(&c.sock, bufs)
	if len(rest) == 0 || err != nil {
		return err
	}
	return c.writeSlowly(rest)
}

// writeSlowly writes what the socket had no room for.
func (c *conn) writeSlowly(bufs net.Buffers) error {
	c.mu.Lock()
	c.blocked = true
	c.mu.Unlock()
	since := c.s.now()
	c.tookAt.Store(since)
	c.blockedAt.Store(since)
	c.s.turns.End(c.turnOf)
	defer c.blockedAt.Store(0)
	for err := error(nil); len(bufs) > 0; {
		if bufs, err = c.link.writeSome(&c.sock, c.nc, bufs); err != nil {
			return err
		}
		c.tookAt.Store(c.s.now())
	}
	if c.tookAt.Load()-since > int64(slowWrite) {
		c.mu.Lock()
		c.lag()
		c.mu.Unlock()
	}
	return nil
}

// sender writes to a socket without waiting. One goroutine at a time may use it.
type sender struct {
	raw  syscall.RawConn       // nil: not a socket
	send func(fd uintptr) bool // made once, as the next
	wait func(fd uintptr) bool // the same, when there is room
	bufs net.Buffers
	n    int
	err  error
}

func (s *sender) init(raw syscall.RawConn) { s.raw, s.send, s.wait = raw, s.attempt, s.patient }

// limit bounds what the socket takes while the peer has no room (limitUnsent).
func (s *sender) limit(unsent int) {
	if s.raw != nil {
		limitUnsent(s.raw, unsent)
	}
}

func (s *sender) attempt(fd uintptr) bool {
	for {
		if len(s.bufs) == 1 {
			s.n, s.err = syscall.Write(int(fd), s.bufs[0])
		} else {
			s.n, s.err = unix.SendmsgBuffers(int(fd), s.bufs, nil, nil, 0)
		}
		if s.err != syscall.EINTR {
			return true
		}
	}
}

// patient attempts it again and again until the socket takes something.
func (s *sender) patient(fd uintptr) bool {
	s.attempt(fd)
	return s.err != syscall.EAGAIN
}

// write writes as much of bufs as the socket takes, which is n bytes, and returns the rest. It may change the elements
// of bufs. How says whether it waits until the socket takes something.
func (s *sender) write(bufs net.Buffers, how func(fd uintptr) bool) (rest net.Buffers, n int, err error) {
	if s.raw == nil {
		return bufs, 0, nil
	}
	s.bufs, s.n, s.err = bufs, 0, nil
	if err := s.raw.Write(how); err != nil {
		return bufs, 0, err
	}
	s.bufs = nil
	if s.err == syscall.EAGAIN {
		return bufs, 0, nil
	}
	if s.err != nil {
		return bufs, 0, s.err
	}
	left := s.n
	for len(bufs) > 0 && left >= len(bufs[0]) {
		left -= len(bufs[0])
		bufs = bufs[1:]
	}
	if len(bufs) > 0 {
		bufs[0] = bufs[0][left:]
	}
	return bufs, s.n, nil
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
