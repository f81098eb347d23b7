package locks

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"

	"tansy/fs"
	"tansy/nfs/nlm"
	"tansy/nfs/oncrpc"
	"tansy/test/kit/nfsclient"
)

var user = &fs.Cred{UID: 1000, GID: 1000}

func hostName(host int8) string { return fmt.Sprint("host", host) }

// waiting is what a client knows of a lock that it waits for.
type waiting struct {
	sure bool // nothing was done since that may have ended it
}

// client is an owner of locks: one goroutine makes its calls, one after the other. The server's calls come beside them.
type client struct {
	h     *history
	owner int8
	r     *rand.Rand // of what it does
	conn  *nfsclient.Conn

	hadBytes [spans]int8 // before the server ended
	hadShare int8

	gone bool // it got no answer in this life of the server, and makes no call any more

	mu      sync.Mutex
	decides *rand.Rand  // of what it answers
	has     [spans]int8 // what it thinks that it has
	sure    [spans]bool // it has, and was told so in an answer to its own call
	share   int8
	waits   map[wanted]*waiting
	first   map[wanted]int64 // when this server was first asked for it: what it says may be of a wait that has ended
	told    chan struct{}    // has an entry when a wait has ended
	ends    bool             // it takes all that it is told to have
}

// connect connects it with the server.
func (c *client) connect(addr string) error {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ipOf(at(c.owner)))}}
	nc, err := d.Dial("tcp", addr)
	if err == nil {
		c.conn = nfsclient.NewConn(nc)
	}
	return err
}

// send makes a call, and notes what became of it.
func (c *client) send(x *call) *reply {
	r := &reply{}
	program, version, proc := uint32(nlm.Program), uint32(4), map[kind]uint32{
		test: nlm.ProcTest, lock: nlm.ProcLock, unlock: nlm.ProcUnlock, cancel: nlm.ProcCancel, share: nlm.ProcShare,
		unshare: nlm.ProcUnshare, reboot: nlm.ProcFreeAll,
	}[x.kind]
	if x.kind == reboot && c.owner%2 == 0 {
		program, version, proc = nlm.StatusProgram, nlm.StatusVersion, nlm.StatusNotify
	} else if x.kind == lock && !x.block && c.owner%2 == 0 {
		proc = nlm.ProcNMLock
	}
	if c.gone {
		return &reply{lost: true}
	}
	id := c.h.begin(x, int(c.owner))
	d, err := c.conn.Call(program, version, proc, user, func(e *oncrpc.Encoder) { c.encode(e, x) })
	if err != nil {
		r.lost = true
	} else {
		decode(d, x, r)
	}
	if c.h.dead() && !r.lost {
		switch r.status { // what a server says whose device has failed
		case nlm.DeniedRoom, nlm.ReadOnly, nlm.Stale, nlm.Failed:
			r.lost = true
		}
	}
	c.gone = r.lost
	c.h.end(id, r)
	return r
}

func (c *client) encode(e *oncrpc.Encoder, x *call) {
	name := []byte(hostName(hostOf[c.owner]))
	switch x.kind {
	case reboot:
		e.Opaque(name)
		e.Uint32(1)
		return
	case share, unshare:
		e.Opaque([]byte("cookie"))
		e.Opaque(name)
		e.Opaque(c.h.file)
		e.Opaque([]byte{byte(c.owner)})
		e.Uint32(uint32(x.share >> 2 & 3))
		e.Uint32(uint32(x.share & 3))
		e.Bool(x.reclaim)
		return
	}
	e.Opaque([]byte("cookie"))
	if x.kind == lock || x.kind == cancel {
		e.Bool(x.block)
	}
	if x.kind != unlock {
		e.Bool(x.exclusive)
	}
	e.Opaque(name)
	e.Opaque(c.h.file)
	putWanted(e, x.wanted)
	if x.kind == lock {
		e.Bool(x.reclaim)
		e.Uint32(1)
	}
}

func decode(d *oncrpc.Decoder, x *call, r *reply) {
	if x.kind == reboot {
		return
	}
	d.Opaque(1024)
	r.status = d.Uint32()
	if x.kind == test && r.status == nlm.Denied {
		excl, svid := d.Bool(), d.Uint32()
		d.Opaque(1024)
		first, length := d.Uint64(), d.Uint64()
		r.holder = wanted{owner: int8(svid), from: int8(first), to: spans - 1, exclusive: excl}
		if length > 0 {
			r.holder.to = int8(first + length - 1)
		}
	}
	r.lost = !d.Ok()
}

// forSome is random bytes.
func (c *client) forSome() wanted {
	from := int8(c.r.IntN(spans))
	return wanted{c.owner, from, from + int8(c.r.IntN(int(spans-from))), c.r.IntN(2) == 0}
}

// work makes random calls.
func (c *client) work(n int) {
	for range n {
		w := c.forSome()
		reclaim := c.r.IntN(12) == 0
		switch p := c.r.IntN(100); {
		case p < 28:
			c.lock(w, false, reclaim)
		case p < 50:
			c.lock(w, true, reclaim)
		case p < 70:
			c.unlock(w)
		case p < 80:
			c.send(&call{kind: test, wanted: w})
		case p < 88:
			c.cancel(c.some(w))
		case p < 93:
			c.reserve(int8(c.r.IntN(16)), reclaim)
		case p < 97:
			c.send(&call{kind: unshare, wanted: wanted{owner: c.owner}})
			c.set(func() { c.share = 0 })
		default:
			c.reboot()
		}
	}
}

func (c *client) set(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

// lock asks for a lock.
func (c *client) lock(w wanted, block, reclaim bool) *reply {
	var generation int
	var waited bool
	c.set(func() {
		waited = c.waits[w] != nil
		if block && (c.waits[w] != nil || len(c.waits) < mostWaits/owners) {
			if c.waits[w] == nil {
				c.waits[w] = &waiting{}
			}
			if c.first[w] == 0 {
				c.first[w] = c.h.now()
			}
		} else {
			block = false
		}
		c.doubt(w)
		generation = c.h.reboots(c.owner)
	})
	r := c.send(&call{kind: lock, wanted: w, block: block, reclaim: reclaim})
	c.set(func() {
		same := generation == c.h.reboots(c.owner)
		switch x := c.waits[w]; {
		case !block || x == nil:
		case r.status == nlm.Blocked:
			x.sure = same && !r.lost
		case r.status == nlm.Granted || !waited: // else it still waits, from an earlier call
			c.stop(w)
		}
		if !r.lost && r.status == nlm.Granted {
			c.put(w, w.how(), same)
		}
	})
	return r
}

// put notes that it has bytes, or not any more. It has mu.
func (c *client) put(w wanted, how int8, sure bool) {
	for b := w.from; b <= w.to; b++ {
		c.has[b], c.sure[b] = how, sure && how != free
	}
}

// doubtAll notes that all it has and waits for may have ended.
func (c *client) doubtAll() {
	c.set(func() {
		c.sure = [spans]bool{}
		for _, x := range c.waits {
			x.sure = false
		}
	})
}

// doubt notes that waits for some of the bytes may end. It has mu.
func (c *client) doubt(w wanted) {
	for x, how := range c.waits {
		how.sure = how.sure && !x.overlaps(w)
	}
}

// stop ends a wait. It has mu.
func (c *client) stop(w wanted) {
	delete(c.waits, w)
	select {
	case c.told <- struct{}{}:
	default:
	}
}

func (c *client) unlock(w wanted) {
	w.exclusive = false
	c.set(func() {
		c.doubt(w)
		c.put(w, free, false)
	})
	c.send(&call{kind: unlock, wanted: w})
}

// some is one of the locks that it waits for, or w.
func (c *client) some(w wanted) wanted {
	c.set(func() {
		for x := range c.waits { // whichever comes first: the call is noted
			w = x
		}
	})
	return w
}

// cancel ends a wait, or one that is none.
func (c *client) cancel(w wanted) {
	c.set(func() {
		if x := c.waits[w]; x != nil {
			x.sure = false
		}
	})
	c.send(&call{kind: cancel, wanted: w, block: true})
	c.set(func() {
		if c.waits[w] != nil {
			c.stop(w)
		}
	})
}

func (c *client) reserve(what int8, reclaim bool) {
	r := c.send(&call{kind: share, wanted: wanted{owner: c.owner}, share: what, reclaim: reclaim})
	if !r.lost && r.status == nlm.Granted {
		c.set(func() { c.share = what | reserved })
	}
}

// reboot says that the client's machine has started.
func (c *client) reboot() {
	c.h.rebooted(hostOf[c.owner])
	c.send(&call{kind: reboot, wanted: wanted{owner: c.owner}})
	c.h.rebooted(hostOf[c.owner])
}

// isTold is a call of the server: the client has what it waited for.
func (c *client) isTold(w wanted) uint32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	x := c.waits[w]
	since := c.h.now()
	r := &reply{status: nlm.Denied}
	p := c.decides.IntN(10)
	switch {
	case x == nil: // it does not want it any more
	case p == 0 && !c.ends:
		r.status, since = nlm.DeniedGrace, c.first[w]
	case p == 1 && !c.ends:
		since = c.first[w]
		c.stop(w)
	default:
		r.status, since = nlm.Granted, c.first[w]
		c.put(w, w.how(), false)
		c.stop(w)
	}
	c.h.note(&call{kind: granted, wanted: w}, r, since)
	return r.status
}

// begins forgets what has ended with a server, but for what it may reclaim.
func (c *client) begins() {
	c.set(func() {
		if c.has != [spans]int8{} || c.share != 0 { // else it may try with what it had before that
			c.hadBytes, c.hadShare = c.has, c.share
		}
		c.has, c.sure, c.share = [spans]int8{}, [spans]bool{}, 0
		clear(c.waits)
		clear(c.first)
	})
}

// reclaim asks for what it had before the server started again.
func (c *client) reclaim() {
	has := c.hadBytes
	for b := int8(0); b < spans; {
		end := b
		for end+1 < spans && has[end+1] == has[b] {
			end++
		}
		if has[b] != free {
			c.lock(wanted{c.owner, b, end, has[b] == exclusive}, false, true)
		}
		b = end + 1
	}
	if c.hadShare != 0 {
		c.reserve(c.hadShare&^reserved, true)
	}
}

// finish gives all back, and wants to be told of each wait that nothing of its own can have ended: others give all
// back, too.
func (c *client) finish() error {
	left := map[wanted]bool{}
	var doubtful []wanted
	c.set(func() {
		c.ends = true
		for w, x := range c.waits {
			if x.sure && !c.inItsOwnWay(w) {
				left[w] = true
			} else {
				doubtful = append(doubtful, w)
			}
		}
	})
	for _, w := range doubtful {
		c.cancel(w)
	}
	for b := range int8(spans) {
		own := wanted{owner: c.owner, from: b, to: b}
		if !slices.ContainsFunc(slices.Collect(maps.Keys(left)), own.overlaps) {
			c.unlock(own)
		}
	}
	c.send(&call{kind: unshare, wanted: wanted{owner: c.owner}})
	for len(left) > 0 {
		for w := range left {
			waits := false
			c.set(func() { waits = c.waits[w] != nil })
			if !waits {
				c.unlock(w)
				delete(left, w)
			}
		}
		if len(left) == 0 {
			break
		}
		select {
		case <-c.told:
		case <-time.After(patience):
			return fmt.Errorf("nobody has anything, and owner %d is not told that it has %v", c.owner, left)
		}
	}
	return nil
}

// inItsOwnWay tells whether some of the bytes are in another wait, or had. It has mu.
func (c *client) inItsOwnWay(w wanted) bool {
	for x := range c.waits {
		if x != w && x.overlaps(w) {
			return true
		}
	}
	return !slices.Equal(c.has[w.from:w.to+1], make([]int8, w.to-w.from+1))
}
