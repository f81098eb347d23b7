package standby

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// Lease says until when replies may leave. A renewal counts from the time when an operation was sent to the device that
// then succeeded: the device was ours at that time, or later.
type Lease struct {
	length time.Duration
	now    func() time.Duration // by a clock that is never set
	until  atomic.Int64         // by that clock

	mu      sync.Mutex
	changed sync.Cond
	ended   bool
}

func newLease(length time.Duration, now func() time.Duration) *Lease {
	l := &Lease{length: length, now: now}
	l.changed.L = &l.mu
	l.until.Store(math.MinInt64)
	return l
}

// Renew says that what was sent at that time has succeeded. After End it does nothing.
func (l *Lease) Renew(sent time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if until := int64(sent + l.length); !l.ended && until > l.until.Load() {
		l.until.Store(until)
		l.changed.Broadcast()
	}
}

// Lapse takes back all renewals. The lease holds again after the next one.
func (l *Lease) Lapse() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until.Store(math.MinInt64)
}

// End ends the lease for good.
func (l *Lease) End() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	l.until.Store(math.MinInt64)
	l.changed.Broadcast()
}

// Holds tells whether a reply may leave now.
func (l *Lease) Holds() bool { return int64(l.now()) < l.until.Load() }

// Wait waits until the lease holds, or returns false after its end.
func (l *Lease) Wait() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for !l.ended && !l.Holds() {
		l.changed.Wait()
	}
	return !l.ended
}
