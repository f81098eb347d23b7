package backup

import (
	"context"
	"io"
	"testing"
	"time"
)

// A gentle writer rests for as many times as long as the work between two writes took. One with a rate does not.
func TestGentle(t *testing.T) {
	now, rested := time.Unix(0, 0), time.Duration(0)
	for _, rate := range []uint64{0, 1 << 40} {
		p := newPaced(context.Background(), io.Discard, rate, true)
		p.now = func() time.Time { return now }
		p.after = func(d time.Duration) <-chan time.Time {
			rested += d
			now = now.Add(d)
			c := make(chan time.Time, 1)
			c <- now
			return c
		}
		for range 10 {
			now = now.Add(time.Second) // of work
			if _, err := p.Write([]byte("x")); err != nil {
				t.Fatal(err)
			}
		}
		if want := 9 * (gentleShare - 1) * time.Second; rate == 0 && rested != want || rate > 0 && rested != 0 {
			t.Errorf("at a rate of %d it rests for %v", rate, rested)
		}
		rested = 0
	}
}
