package txn

import (
	"sync"

	"tansy/internal/runtime/dtxn"
)

// begun is a transaction of Begin. When the journal is being closed it is aborted, unless a call of it is under way,
// which comes to its end before.
type begun struct {
	s *System
	t *dtxn.Txn

	mu     sync.Mutex
	busy   bool // a call is under way
	closed bool // the journal is being closed
	ended  bool
}

// begin notes a transaction.
func (s *System) begin(t *dtxn.Txn) *begun {
	b := &begun{s: s, t: t}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begun[b] = struct{}{}
	return b
}

// close ends the transactions of Begin, as the journal is being closed: others may wait for what they have locked.
func (s *System) close() {
	s.mu.Lock()
	all := s.begun
	s.begun = map[*begun]struct{}{}
	s.mu.Unlock()
	for b := range all {
		b.close()
	}
}

func (b *begun) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	if !b.busy {
		b.end()
	}
}

// end gives up what the transaction has locked, once. The caller holds mu.
func (b *begun) end() {
	if !b.ended {
		b.ended = true
		b.t.Abort()
	}
}

// abort ends the transaction for its owner.
func (b *begun) abort() {
	b.mu.Lock()
	b.end()
	b.mu.Unlock()
	b.forget()
}

func (b *begun) forget() {
	b.s.mu.Lock()
	defer b.s.mu.Unlock()
	delete(b.s.begun, b)
}

// enter begins a call of t, which leave ends.
func (t *Txn) enter() error {
	if t.t == nil {
		return ErrDone
	}
	if t.b == nil { // Run has entered
		return nil
	}
	if err := t.s.sys.Enter(); err != nil {
		return err
	}
	t.b.mu.Lock()
	defer t.b.mu.Unlock()
	if t.b.closed {
		t.s.sys.Leave()
		return ErrClosed
	}
	t.b.busy = true
	return nil
}

// leave ends a call; with ended, the transaction, too.
func (t *Txn) leave(ended bool) {
	b := t.b
	if b == nil {
		return
	}
	b.mu.Lock()
	b.busy = false
	b.ended = b.ended || ended
	if b.closed {
		b.end()
	}
	b.mu.Unlock()
	if ended {
		b.forget()
	}
	t.s.sys.Leave()
}
