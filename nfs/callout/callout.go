// Package callout makes calls to clients, such as that a lock is theirs now (RFC 5531 over TCP or UDP). A client that
// does not answer costs nobody but itself: what is to be done for one has its own short queue, so many are under way at
// a time, and each has its time.
package callout

import (
	"context"
	"net/netip"
	"sync"
	"time"
)

// Limits bound what is done for clients. All are required.
type Limits struct {
	AtOnce  int           // under way at a time
	PerHost int           // of these, for one client
	Queued  int           // waiting, of one client
	Hosts   int           // clients that anything is to be done for
	Time    time.Duration // that one may take
}

// Queue does what is to be done for clients, each in a goroutine of its own. It may be used concurrently.
type Queue struct {
	limits Limits
	ctx    context.Context
	cancel context.CancelFunc
	busy   sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	running int
	hosts   map[netip.Addr]*host
	turn    []netip.Addr // hosts with something that waits for a place, each once, in the order of their turns
}

type host struct {
	running int
	waiting []func(context.Context)
	queued  bool // in turn
}

// New makes a Queue that is empty.
func New(limits Limits) *Queue {
	q := &Queue{limits: limits, hosts: map[netip.Addr]*host{}}
	q.ctx, q.cancel = context.WithCancel(context.Background())
	return q
}

// Do has f called soon, in another goroutine, with a context that ends when its time is over, or with the Queue. It
// returns false, and f is not called, if there is too much to do already, for this client or for any, or the Queue is
// closed. Clients take turns.
func (q *Queue) Do(at netip.Addr, f func(context.Context)) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	h := q.hosts[at]
	if q.closed || h == nil && len(q.hosts) >= q.limits.Hosts || h != nil && len(h.waiting) >= q.limits.Queued {
		return false
	}
	if h == nil {
		h = new(host)
		q.hosts[at] = h
	}
	h.waiting = append(h.waiting, f)
	q.enqueue(at, h)
	q.begin()
	return true
}

// enqueue gives a host that could begin something a turn. The caller has mu.
func (q *Queue) enqueue(at netip.Addr, h *host) {
	if !h.queued && len(h.waiting) > 0 && h.running < q.limits.PerHost {
		h.queued = true
		q.turn = append(q.turn, at)
	}
}

// begin starts what may start. The caller has mu.
func (q *Queue) begin() {
	for q.running < q.limits.AtOnce && len(q.turn) > 0 && !q.closed {
		at := q.turn[0]
		q.turn = q.turn[1:]
		h := q.hosts[at]
		f := h.waiting[0]
		h.waiting, h.queued = h.waiting[1:], false
		h.running++
		q.running++
		q.enqueue(at, h)
		q.busy.Go(func() { q.run(at, h, f) })
	}
}

func (q *Queue) run(at netip.Addr, h *host, f func(context.Context)) {
	ctx, cancel := context.WithTimeout(q.ctx, q.limits.Time)
	f(ctx)
	cancel()
	q.mu.Lock()
	defer q.mu.Unlock()
	h.running--
	q.running--
	if h.running == 0 && len(h.waiting) == 0 {
		delete(q.hosts, at)
	}
	q.enqueue(at, h)
	q.begin()
}

// Close ends what is under way, forgets what waits, and returns when nothing runs any more.
func (q *Queue) Close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.cancel()
	q.busy.Wait()
}
