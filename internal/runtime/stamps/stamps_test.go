package stamps

import (
	"testing"
	"time"

	"tansy/internal/gen/txn/places"
	"tansy/internal/runtime/dtxn"
)

// A transaction has the time that its volume's clock says when it asks, also if that was put back, and none from before
// 1970.
func TestNow(t *testing.T) {
	times := []time.Time{
		time.Unix(0, 0), time.Unix(1700000000, 999999999), time.Unix(1600000000, 7), // put back
		time.Unix(1<<40, 1), time.Unix(-1, 5), time.Unix(0, -1), // before 1970
	}
	asked := 0
	in(t, func() time.Time { asked++; return times[asked-1] }, func(x *dtxn.Txn) {
		for i, want := range times {
			seconds, nanoseconds := Now(x)
			if asked != i+1 {
				t.Errorf("the clock was asked %d times for %d times", asked, i+1)
			}
			if want.Unix() < 0 {
				want = time.Unix(0, 0)
			}
			if seconds != uint64(want.Unix()) || nanoseconds != uint32(want.Nanosecond()) {
				t.Errorf("%d.%09d when the clock says %d.%09d", seconds, nanoseconds, want.Unix(), want.Nanosecond())
			}
		}
	})
}

// Without a clock of its own a volume has the machine's.
func TestNowOfMachine(t *testing.T) {
	in(t, nil, func(x *dtxn.Txn) {
		before := time.Now().Round(0) // the time of day
		seconds, nanoseconds := Now(x)
		at, after := time.Unix(int64(seconds), int64(nanoseconds)), time.Now().Round(0)
		if at.Before(before) || at.After(after) {
			t.Errorf("it is %v between %v and %v", at, before, after)
		}
	})
}

// in runs f in a transaction of a volume with a clock, or nil.
func in(t *testing.T, clock func() time.Time, f func(x *dtxn.Txn)) {
	s := dtxn.NewMem(10, dtxn.Layout{Places: places.Before(0, 10, places.BLOCKS(), nil)})
	if clock != nil {
		s.SetClock(clock)
	}
	if err := s.Run(false, false, func(x *dtxn.Txn) error { f(x); return nil }); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
