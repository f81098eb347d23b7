package dtxn

import "tansy/internal/extern/dlog"

// Lent are blocks that transactions have read, which may be seen longer than these last. One goroutine at a time may use it.
type Lent struct {
	s    *System
	hold dlog.Hold
	n    int64 // blocks
}

// Lend lets all blocks that t has read be seen until l, which has none, ends; or it does nothing, and returns false, when a
// quarter of the cache is lent: the rest is for those who want to read.
func (t *Txn) Lend(l *Lent) bool {
	n := int64(t.hold.Len())
	if t.s.lent.Add(n) > t.s.lendable {
		t.s.lent.Add(-n)
		return false
	}
	l.s, l.n = t.s, n
	t.hold.Pass(&l.hold)
	return true
}

// End says that nobody sees the blocks any more. l may be used again.
func (l *Lent) End() {
	if l.s == nil {
		return
	}
	l.hold.End()
	l.s.lent.Add(-l.n)
	l.s, l.n = nil, 0
}
