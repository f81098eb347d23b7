package dtxn

import (
	"tansy/disk"
	"tansy/internal/gen/txn/txnlending"
	"tansy/internal/runtime/hold"
)

// Lent are blocks that transactions have read, which may be seen longer than these last. One goroutine at a time may
// use it.
type Lent struct {
	s    *System
	lent *txnlending.Lent // nil until there are some
	n    int64            // blocks
}

// Lend lets all blocks that t has read be seen until l ends, for the sake of so many bytes of them. Or it does nothing,
// and returns false: when these are less than a quarter, so that whoever takes few bytes does not keep many blocks; or
// when a quarter of the cache is lent, as the rest is for those who want to read; or when the verified code refuses, as
// t has written, or l has blocks already.
func (t *Txn) Lend(l *Lent, bytes int) bool {
	n := int64(t.hold.Len())
	if 4*int64(bytes) < n*disk.BlockSize {
		return false
	}
	if l.lent == nil {
		l.lent = txnlending.New_Lent_()
		l.lent.Ctor__(hold.New())
	}
	if t.s.lent.Add(n) > t.s.lendable || !l.lent.Take(t.t) {
		t.s.lent.Add(-n)
		return false
	}
	l.s, l.n = t.s, n
	return true
}

// End says that nobody sees the blocks any more. l may be used again.
func (l *Lent) End() {
	if l.s == nil {
		return
	}
	l.lent.End()
	l.s.lent.Add(-l.n)
	l.s, l.n = nil, 0
}
