package clock

import (
	"sync"
	"testing"
	"time"
)

// A reading is no earlier than one before it, by whichever clock of the machine and whichever goroutine it was taken;
// and none is zero, which stands for no look at all.
func TestClock(t *testing.T) {
	for _, now := range []func() uint64{New().Now, monotonic} {
		var mu sync.Mutex
		var last uint64
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for range 1000 {
					mu.Lock()
					at := now()
					if at < last || at == 0 {
						t.Errorf("%d after %d", at, last)
					}
					last = at
					mu.Unlock()
				}
			})
		}
		all.Wait()
	}
}

// What a clock tells is nanoseconds.
func TestNanoseconds(t *testing.T) {
	for _, now := range []func() uint64{New().Now, monotonic} {
		before, from := time.Now(), now()
		inner := time.Now()
		for time.Since(inner) < time.Millisecond {
		}
		least := time.Since(inner)
		took, most := time.Duration(now()-from), time.Since(before)
		if took < least-time.Microsecond || took > most+time.Microsecond {
			t.Errorf("%v for something between %v and %v", took, least, most)
		}
	}
}

// A clock of a test tells what the test says.
func TestOf(t *testing.T) {
	at := uint64(5)
	c := Of(func() uint64 { return at })
	if c.Now() != 5 {
		t.Error("the first reading is not the test's")
	}
	if at = 7; c.Now() != 7 {
		t.Error("the second reading is not the test's")
	}
}
