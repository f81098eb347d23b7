package oncrpc

import (
	"sync/atomic"
	"syscall"
	"time"

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

// inPassing is how long a call takes at most for which it is not even asked if others came meanwhile: that takes a
// system call.
const inPassing = 20 * time.Microsecond

// single is what a connection knows of calls that come alone.
type single struct {
	unread unread
	crowd  int          // calls left that go to other goroutines all the same
	tardy  int          // calls of brief procedures left that are treated like others
	late   bool         // the last one that was not was not brief
	here   atomic.Int64 // tick at which run began to run a call, or 0
}

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

// brief decides if run itself runs a call because its procedure is brief. So no other goroutine has to be woken for it,
// which costs as much as a READ of what is in memory; calls behind it wait meanwhile, but its reply they would wait for
// in any case.
func (c *conn) brief(t *task) bool {
	if !t.proc.Brief {
		return false
	}
	if c.tardy > 0 {
		c.tardy--
		return false
	}
	return true
}

// tardyCalls is how many calls of brief procedures go to other goroutines after two in succession were not brief: one
// may be held up by chance.
const tardyCalls = 32

// lasted notes how long a brief call took, for a result of n bytes.
func (c *conn) lasted(d time.Duration, n int) {
	if d <= atMost(n) {
		c.late = false
		return
	}
	if c.late {
		c.tardy = tardyCalls
	}
	c.late = true
}

// atMost is what a brief call with a result of n bytes takes: what is read in memory, but not what has to come from the
// device, even if that has it in memory. Several of these are better carried out side by side.
func atMost(n int) time.Duration { return 16*time.Microsecond + time.Duration(n/8) }

// runHere runs a call on the goroutine of run, which is brief or alone. It returns false if another
// goroutine has become that of run: then c is not this one's any more.
func (c *conn) runHere(t *task, brief bool) bool {
	c.flush()
	since := c.s.tick.Load()
	c.here.Store(since)
	begin := time.Now()
	out := t.run()
	took := time.Since(begin)
	mine := c.here.CompareAndSwap(since, 0)
	switch {
	case !mine:
	case brief:
		c.lasted(took, lenOf(out.data))
	case took > inPassing && c.unread.some(): // the peer did not wait for this reply
		c.crowd = crowdCalls
	}
	c.send(out, &t.turn)
	t.end()
	return mine
}

// takeOver makes the caller responsible for starting run anew, if it returns
// true: the goroutine of run has been busy with a call since before now-1. Whoever
// runs a call after that stores a later tick in c.here than the one it replaces.
func (c *conn) takeOver(now int64) bool {
	since := c.here.Load()
	return since != 0 && now-since > 1 && c.here.CompareAndSwap(since, 0)
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
