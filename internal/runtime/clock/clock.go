// Package clock is the Go behind verified/trusted/clock.s.dfy: a clock that is never put back, and goes on while the
// machine sleeps where the system has one.
package clock

// Clock tells the time since an instant that stays the same.
type Clock struct {
	now func() uint64
}

// New returns the machine's clock.
func New() *Clock { return &Clock{elapsed} }

// Of returns a clock that tells the nanoseconds that now returns, which must never become fewer: for tests.
func Of(now func() uint64) *Clock { return &Clock{now} }

// Now is the time in nanoseconds.
func (c *Clock) Now() uint64 { return c.now() }
