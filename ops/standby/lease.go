package standby

import (
	"sync"
	"sync/atomic"
	"time"

	"tansy/internal/gen/remote/leases"
)

// Lease says until when replies may leave. A renewal counts from the time when an operation was sent to the device that
// then succeeded: the device was ours at that time, or later. What each event does to it is in
// verified/remote/lease.dfy.
type Lease struct {
	length time.Duration
	now    func() time.Duration // by a clock that is never set
	until  atomic.Uint64        // by that clock, as lease.dfy has it

	mu      sync.Mutex
	changed sync.Cond
}

func newLease(length time.Duration, now func() time.Duration) *Lease {
	l := &Lease{length: length, now: now}
	l.changed.L = &l.mu
	l.until.Store(leases.New())
	return l
}

// Renew says that what was sent at that time has succeeded. After End it does nothing.
func (l *Lease) Renew(sent time.Duration) {
	l.change(func(until uint64) uint64 { return leases.Renew(until, uint64(sent), uint64(l.length)) })
}

// Lapse takes back all renewals. The lease holds again after the next one.
func (l *Lease) Lapse() { l.change(leases.TakeBack) }

// End ends the lease for good.
func (l *Lease) End() { l.change(func(uint64) uint64 { return leases.Finish() }) }

func (l *Lease) change(next func(until uint64) uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until.Store(next(l.until.Load()))
	l.changed.Broadcast()
}

// Holds tells whether a reply may leave now.
func (l *Lease) Holds() bool {
	now := uint64(l.now())
	return leases.Holds(l.until.Load(), now)
}

// Wait waits until the lease holds, or returns false after its end.
func (l *Lease) Wait() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for !leases.Over(l.until.Load()) && !l.Holds() {
		l.changed.Wait()
	}
	return !leases.Over(l.until.Load())
}
