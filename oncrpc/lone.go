package oncrpc

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// A client that waits for each answer before its next call has one call in
// progress. To hand that call to another goroutine costs it two switches between
// threads and gains it nothing, so the connection's own goroutine runs it. Should
// the call take long, and the peer send more meanwhile, the janitor lets another
// goroutine read on.

// crowdCalls is how many calls go to other goroutines after calls were seen that
// came before the last one was answered.
const crowdCalls = 256

// alone decides if run itself runs the call that was just counted. others says if
// there are calls in progress beside it.
func (c *conn) alone(others bool) bool {
	if others || c.rr.buffered() {
		c.crowd = crowdCalls
	}
	if c.crowd > 0 {
		c.crowd--
		return false
	}
	return true
}

// runLone runs a call on the goroutine of run. It returns false if another
// goroutine has become that of run: then c is not this one's any more.
func (c *conn) runLone(t *task) bool {
	c.flush()
	since := c.s.tick.Load()
	c.lone.Store(since)
	out := t.run()
	mine := c.lone.CompareAndSwap(since, 0)
	if mine && c.unread.some() { // and it did not wait for this reply
		c.crowd = crowdCalls
	}
	c.send(out, &t.turn)
	t.end()
	return mine
}

// takeOver makes the caller responsible for starting run anew, if it returns
// true: the goroutine of run has been busy with a call since before now-1. Whoever
// runs a call after that stores a later tick in c.lone than the one it replaces.
func (c *conn) takeOver(now int64) bool {
	since := c.lone.Load()
	return since != 0 && now-since > 1 && c.lone.CompareAndSwap(since, 0)
}

// unread tells if a peer has sent what nobody has read yet. One goroutine at a
// time may ask.
type unread struct {
	raw  syscall.RawConn
	poll func(fd uintptr) // made once
	fds  [1]unix.PollFd
	any  bool
}

func (u *unread) init(raw syscall.RawConn) { u.raw, u.poll = raw, u.look }

func (u *unread) look(fd uintptr) {
	u.fds[0] = unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}
	n, _ := unix.Poll(u.fds[:], 0)
	u.any = n > 0
}

// some says no when it cannot know.
func (u *unread) some() bool {
	u.any = false
	return u.raw != nil && u.raw.Control(u.poll) == nil && u.any
}
