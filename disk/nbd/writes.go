package nbd

import (
	"sync"

	"tansy/internal/gen/remote/remotewrites"
)

// writes knows which writes are under way, which need a flush yet, and when to do without one. What it knows, and what
// follows for barriers, is in verified/remote/writes.dfy; here are the locks and the errors.
//
// A journal that commits one group after the other writes once, and wants a barrier. Where the last barrier had a
// single write before it, the next single write is sent with FUA, by which it is durable when it is answered, and a
// barrier after that has nothing to do: one way to the server and back less. Whether the guess was right or wrong, a
// barrier succeeds only if all writes before it have been flushed, or had FUA.
type writes struct {
	behind bool // who writes does not wait for the end of it: Options.WriteBehind

	mu      sync.Mutex
	changed sync.Cond // one ended
	known   *remotewrites.Writes
	err     error // of the first flush that failed, or write with FUA, or whose end nobody waits for
	errs    map[*write]failure
}

// write is a write that has begun.
type write = remotewrites.Write

// failure is an error of a write, for who waits for its end.
type failure struct {
	err error
	at  uint64 // the first block of the request that err is of
}

func (b *writes) init(fua, behind bool) {
	b.behind = behind
	b.known = remotewrites.New_Writes_()
	b.known.Ctor__(fua, behind)
	b.changed.L = &b.mu
	b.errs = map[*write]failure{}
}

// begin notes a write that begins, with so many requests, each of which must be followed by end. One with a single
// request may get FUA. Behind writes whose end nobody waits for, it waits for those of the same blocks: the server may
// do what is under way in any order.
func (b *writes) begin(a, n uint64, requests int, may bool) *write {
	b.mu.Lock()
	defer b.mu.Unlock()
	for !b.known.MayBegin(a, n) {
		b.changed.Wait()
	}
	return b.known.Begin(a, n, uint64(requests), may)
}

// settle waits until what is read from n blocks from a on is what was last written there.
func (b *writes) settle(a, n uint64) {
	if b.behind {
		b.mu.Lock()
		defer b.mu.Unlock()
		for !b.known.Apart(a, n) {
			b.changed.Wait()
		}
	}
}

// end notes the end of the request of w for the blocks from a on. What nobody else is told is kept for all barriers to
// come.
func (b *writes) end(w *write, a uint64, err error, unheard bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if was := b.errs[w]; err != nil && !unheard && (was.err == nil || a < was.at) {
		b.errs[w] = failure{err, a}
	}
	ended := b.known.End(w, err != nil, unheard)
	if b.known.Failed && b.err == nil {
		b.err = err
	}
	if ended {
		b.changed.Broadcast()
	}
}

// wait waits for the end of w.
func (b *writes) wait(w *write) (failed uint64, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for w.Unanswered > 0 {
		b.changed.Wait()
	}
	f := b.errs[w]
	delete(b.errs, w)
	return f.at, f.err
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
	covers, last := b.known.Barrier()
	for !b.known.Settled(covers) {
		b.changed.Wait()
	}
	due, ticket := b.known.Flush(covers, last)
	if !due {
		return b.err
	}
	b.mu.Unlock()
	err := flush()
	b.mu.Lock()
	if !b.known.Answered(ticket, err != nil) && b.err == nil { // a barrier beside this one, or a write, may have failed
		b.err = err
	}
	return b.err
}
