package oncrpc

import (
	"errors"
	"net"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"tansy/nfs/fair"
)

// What a connection learns of its peer's pace, for each direction: how soon it takes
// replies, and how soon it sends the whole of a large record.

const (
	// provenReplies is how many bytes of results a peer takes, without being slow, to be
	// proven. A socket's send buffer takes less by itself.
	provenReplies = 8 << 20

	// maxUnsent is how many bytes of replies the kernel keeps for a peer that is not proven
	// and has no room for them. So whoever sends calls and takes no replies has few of them
	// carried out: what fits there and into its own buffer.
	maxUnsent = 32 << 10

	// provenRecords is how many bytes of large records it sends.
	provenRecords = 1 << 20

	// slowRecord is how long a record may take that is not slow, and a second for each
	// MiB besides.
	slowRecord = 250 * time.Millisecond
)

// pacing is what a connection knows of its peer's pace. Times are those of Server.now, 0 for not now.
type pacing struct {
	blockedAt atomic.Int64 // a write began to wait for the peer
	tookAt    atomic.Int64 // the peer took something of that, or it began
	recordDue atomic.Int64 // a large record will have been slow then
	sendsFast atomic.Int64 // bytes of large records that were not, up to provenRecords

	// While it waits for memory: the replies that the peer has not taken yet, and since when they do not get fewer.
	parked       atomic.Bool
	untaken      int          // bytes; guarded by Server.mu
	untakenSince atomic.Int64 // 0: there are none, or they got fewer lately
}

// took notes that the peer took n bytes of results. The caller has c.mu.
func (c *conn) took(n int) {
	if c.lagged {
		c.lagged, c.taken = false, 0
		return
	}
	if c.pace == fair.Proven || n == 0 {
		return
	}
	if c.taken += n; c.taken >= provenReplies {
		c.pace = fair.Proven
		c.out.Judge(fair.Proven)
		c.sock.limit(0)
	}
}

// lag notes that the peer is slow with taking what is being written. The caller has c.mu.
func (c *conn) lag() {
	c.lagged = true
	if c.pace != fair.Slow {
		c.pace = fair.Slow
		c.out.Judge(fair.Slow)
		c.sock.limit(maxUnsent)
	}
}

// came notes that a large record of n bytes came.
func (c *conn) came(n int) {
	due := c.recordDue.Swap(0)
	if due == 0 {
		return // it is not large
	}
	if c.s.now() > due {
		c.sendsFast.Store(0)
		c.in.Judge(fair.Slow)
	} else if c.sendsFast.Load() < provenRecords && c.sendsFast.Add(int64(n)) >= provenRecords {
		c.in.Judge(fair.Proven)
	}
}

// judge tells if the peer is slow at time now with what is under way.
func (c *conn) judge(now int64) {
	if at := c.blockedAt.Load(); at != 0 && now-at > int64(slowWrite) {
		c.mu.Lock()
		if c.blockedAt.Load() == at {
			c.lag()
		}
		c.mu.Unlock()
	}
	if due := c.recordDue.Load(); due != 0 && now > due {
		c.sendsFast.Store(0)
		c.in.Judge(fair.Slow)
	}
}

// park notes that the connection is about to wait for memory.
func (c *conn) park() {
	c.untakenSince.Store(0)
	c.parked.Store(true)
}

// lookAtReplies notes if the peer leaves earlier replies where they are at time now, while the connection waits
// for memory. The caller has Server.mu.
func (c *conn) lookAtReplies(now int64) {
	if !c.parked.Load() {
		c.untaken = 0
		return
	}
	left := c.link.unacknowledged()
	if left == 0 || left != c.untaken {
		c.untakenSince.Store(0)
	} else if c.untakenSince.Load() == 0 {
		c.untakenSince.Store(now)
	}
	c.untaken = left
}

// reserve takes room of n bytes for a record when there is some, or fails as the connection
// is broken. The peer is not to blame for the time that takes. The record has long bytes at most.
func (c *conn) reserve(long, n int) (fair.Reservation, error) {
	have := c.rr.end - c.rr.start
	if c.in.IsDoubtful(n) && !c.comesSoon(min(long, soonBytes)-have) {
		c.in.Judge(fair.Slow)
	}
	from := &c.in
	if want := (fair.Claim{Bytes: n}); from.Try(want) == 0 {
		c.flush()
		if long <= soonBytes && c.comesSoon(long-have) {
			from = &c.small // as the peer cannot keep it from others
		}
		c.recordSince.Store(0)
		c.park()
		took := from.Take(want)
		c.parked.Store(false)
		if took == 0 {
			return fair.Reservation{}, net.ErrClosed
		}
		c.woke = time.Now()
	}
	c.recordDue.Store(c.s.now() + int64(slowRecord) + int64(n)*int64(time.Second)>>20)
	return fair.Reservation{Of: from, Bytes: n}, nil
}

// soonBytes of a record come within slowRecord if the peer is not slow. The kernel receives
// as much before it is read.
const soonBytes = 48 << 10

// comesSoon tells if the socket has n bytes to read within slowRecord. So the pace of a peer
// is known before it holds memory. Where that cannot be seen it is taken for granted.
func (c *conn) comesSoon(n int) bool {
	n -= c.ahead()
	if n <= 0 || c.sock.raw == nil || !c.readUntil(time.Now().Add(slowRecord)) {
		return true
	}
	c.flush()
	err := c.sock.raw.Read(func(fd uintptr) bool { // called whenever something comes
		has, err := unix.IoctlGetInt(int(fd), inputQueue)
		return err != nil || has >= n
	})
	c.readUntil(time.Time{})
	return !errors.Is(err, os.ErrDeadlineExceeded)
}

// readUntil sets the deadline for reading, unless the server stops and has set its own.
func (c *conn) readUntil(t time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.draining.Load() && c.nc.SetReadDeadline(t) == nil
}

// release gives the memory of a record back.
func (c *conn) release(r fair.Reservation) {
	c.recordDue.Store(0)
	r.Give()
}
