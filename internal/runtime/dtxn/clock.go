package dtxn

import "time"

// SetClock has transactions read the time from now, which may be called concurrently, in the place of time.Now. It is
// for before the first of them.
func (s *System) SetClock(now func() time.Time) { s.clock = now }

// Time is what the clock says now.
func (t *Txn) Time() time.Time { return t.s.clock() }
