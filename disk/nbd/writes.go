package nbd

import (
	"slices"
	"sync"
)

// maxBehind is how many writes are under way at most whose end nobody waits for. With more a server that has enough to
// do would only have others wait longer.
const maxBehind = 8

// writes knows which writes are under way, which need a flush yet, and when to do without one.
//
// A journal that commits one group after the other writes once, and wants a barrier. Where the last barrier had a
// single write before it, the next single write is sent with FUA, by which it is durable when it is answered, and a
// barrier after that has nothing to do: one way to the server and back less. Whether the guess was right or wrong, a
// barrier succeeds only if all writes before it have been flushed, or had FUA.
type writes struct {
	fua    bool // the server knows it
	behind bool // who writes does not wait for the end of it: Options.WriteBehind

	mu      sync.Mutex
	changed sync.Cond // one ended
	begun   uint64    // so many; the last has this number
	plain   uint64    // the last without FUA
	flushed uint64    // all up to this one are durable, as far as they have no FUA
	since   uint64    // writes begun since the last barrier
	single  bool      // there was one before the last barrier
	under   []*write  // way, in the order of their beginning
	err     error     // of the first flush that failed, or write with FUA, or whose end nobody waits for
}

// write is a write under way, of n blocks from block a on.
type write struct {
	number, a, n uint64
	fua          bool
	left         int // requests without an answer
	err          error
	failed       uint64 // the first block of the request that err is of
}

func (b *writes) init(fua, behind bool) {
	b.fua, b.behind = fua, behind
	b.changed.L = &b.mu
}

// begin notes a write that begins, with so many requests, each of which must be followed by end. One with a single
// request may get FUA. Behind writes whose end nobody waits for, it waits for those of the same blocks: the server may
// do what is under way in any order.
func (b *writes) begin(a, n uint64, requests int, may bool) *write {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.apart(a, n)
	for b.behind && len(b.under) >= maxBehind {
		b.changed.Wait()
		b.apart(a, n)
	}
	b.begun++
	b.since++
	w := &write{number: b.begun, a: a, n: n, left: requests, failed: a + n}
	w.fua = b.fua && may && requests == 1 && b.single && b.since == 1 && b.plain <= b.flushed
	if !w.fua {
		b.plain = w.number
	}
	if requests > 0 {
		b.under = append(b.under, w)
	}
	return w
}

// settle waits until what is read from n blocks from a on is what was last written there.
func (b *writes) settle(a, n uint64) {
	if b.behind {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.apart(a, n)
	}
}

func (b *writes) apart(a, n uint64) {
	for b.behind && slices.ContainsFunc(b.under, func(w *write) bool { return w.a < a+n && a < w.a+w.n }) {
		b.changed.Wait()
	}
}

// end notes the end of the request of w for the blocks from a on. A server whose flush failed may drop whatever it
// held, tell of that once, and succeed the next time; FUA is a flush to most servers. So that is kept for all barriers
// to come, and so is what nobody else is told.
func (b *writes) end(w *write, a uint64, err error, unheard bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	w.left--
	if err != nil && a < w.failed {
		w.err, w.failed = err, a
	}
	if (w.fua || unheard) && b.err == nil {
		b.err = err
	}
	if w.left == 0 {
		b.under = slices.DeleteFunc(b.under, func(x *write) bool { return x == w })
		b.changed.Broadcast()
	}
}

// wait waits for the end of w.
func (b *writes) wait(w *write) (failed uint64, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for w.left > 0 {
		b.changed.Wait()
	}
	return w.failed, w.err
}

// failure is the error of what was done for good, and went wrong.
func (b *writes) failure() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

// barrier makes all writes that ended before it durable, by flush if need be; and those whose end nobody waited for.
func (b *writes) barrier(flush func() error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.single, b.since = b.since == 1, 0
	covers, plain := b.begun, b.plain
	for b.behind && b.first() <= covers {
		b.changed.Wait()
	}
	if b.err != nil || plain <= b.flushed {
		return b.err
	}
	covers = min(covers, b.first()-1) // others may come too late for the flush
	b.mu.Unlock()
	err := flush()
	b.mu.Lock()
	if b.err == nil { // a barrier beside this one, or a write, may have failed meanwhile
		b.err = err
	}
	if b.err == nil {
		b.flushed = max(b.flushed, covers)
	}
	return b.err
}

// first is the number of the first write under way, or of the next one.
func (b *writes) first() uint64 {
	if len(b.under) > 0 {
		return b.under[0].number
	}
	return b.begun + 1
}
