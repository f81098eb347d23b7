// Package daemon holds what a server that runs for months needs from where it runs: a log
// that no reader can stop, a port that is taken before it is listened on, and the
// protocols of a service manager.
package daemon

import (
	"io"
	"sync"
	"time"
)

// maxPending bounds what an Output keeps, in bytes.
const maxPending = 256 << 10

// Output passes on what is written to it, from a goroutine of its own. Write never waits for the reader at the other
// end. Whole writes that the reader does not take in time are dropped, and counted. It may be used concurrently.
type Output struct {
	w    io.Writer
	note func(dropped uint64) []byte

	mu      sync.Mutex
	more    sync.Cond
	pending []byte
	writes  uint64 // that make up pending
	dropped uint64 // since the last note
	total   uint64 // dropped ever
	closed  bool
	done    chan struct{}
}

// NewOutput returns an Output to w. When w takes something again after writes were dropped, it
// gets note(how many), if note is not nil.
func NewOutput(w io.Writer, note func(dropped uint64) []byte) *Output {
	o := &Output{w: w, note: note, done: make(chan struct{})}
	o.more.L = &o.mu
	go o.run()
	return o
}

// Write queues a copy of p. It never fails.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed || len(o.pending)+len(p) > maxPending {
		o.drop(1)
		return len(p), nil
	}
	o.pending = append(o.pending, p...)
	o.writes++
	o.more.Signal()
	return len(p), nil
}

// drop counts writes that are lost. The caller has o.mu.
func (o *Output) drop(n uint64) {
	o.dropped += n
	o.total += n
}

// Dropped is the number of writes that were lost so far.
func (o *Output) Dropped() uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.total
}

// run passes on until Close.
func (o *Output) run() {
	defer close(o.done)
	var spare []byte
	o.mu.Lock()
	defer o.mu.Unlock()
	for {
		for len(o.pending) == 0 && !o.closed {
			o.more.Wait()
		}
		if len(o.pending) == 0 {
			return
		}
		batch, writes := o.pending, o.writes
		o.pending, o.writes = spare[:0], 0
		if !o.pass(batch) {
			o.drop(writes)
		} else if n := o.dropped; n > 0 && o.note != nil {
			o.dropped = 0
			if !o.pass(o.note(n)) {
				o.dropped += n
			}
		}
		spare = batch
	}
}

// pass writes b, and tells if w took it. The caller has o.mu, which it gives up meanwhile.
func (o *Output) pass(b []byte) bool {
	o.mu.Unlock()
	defer o.mu.Lock()
	_, err := o.w.Write(b)
	return err == nil
}

// Close waits until all is passed on, but not longer than patience. Later writes are dropped.
func (o *Output) Close(patience time.Duration) {
	o.mu.Lock()
	o.closed = true
	o.more.Signal()
	o.mu.Unlock()
	select {
	case <-o.done:
	case <-time.After(patience):
	}
}
