package nbd

import "sync"

// barriers knows which writes need a flush yet, and when to do without one.
//
// A journal that commits one group after the other writes once, and wants a barrier. Where the last barrier had a single
// write before it, the next single write is sent with FUA, by which it is durable when it is answered, and a
// barrier after that has nothing to do: one way to the server and back less. Whether the guess was right
// or wrong, a barrier succeeds only if all writes that ended before it have been flushed, or had FUA.
type barriers struct {
	fua bool // the server knows it

	mu      sync.Mutex
	plain   uint64 // writes begun without FUA
	running uint64 // of these, those that have not ended
	flushed uint64 // of these, the first so many are durable
	since   uint64 // writes begun since the last barrier
	single  bool   // there was one before the last barrier
	err     error  // of the first flush that failed, or write with FUA
}

// begin notes a write that begins, and tells whether it is to have FUA. It must be followed by end.
func (b *barriers) begin(can bool) (fua bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.since++
	if b.fua && can && b.single && b.since == 1 && b.plain == b.flushed {
		return true
	}
	b.plain++
	b.running++
	return false
}

// end notes the end of a write. A server whose flush failed may drop whatever it held, tell of that once, and
// succeed the next time. FUA is a flush to most servers.
func (b *barriers) end(fua bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !fua {
		b.running--
	} else if b.err == nil {
		b.err = err
	}
}

// barrier makes all writes that ended before it durable, by flush if need be.
func (b *barriers) barrier(flush func() error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.single, b.since = b.since == 1, 0
	if b.err != nil || b.plain == b.flushed {
		return b.err
	}
	covers := b.plain
	if b.running > 0 { // some of these may come too late for the flush
		covers = b.flushed
	}
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
