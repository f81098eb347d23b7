package background

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"tansy/test/kit/replay"
)

// TestPacer: no more is read in any time than the rate allows, but for one read; and a pause is not made up for.
func TestPacer(t *testing.T) {
	r := rand.New(rand.NewPCG(replay.Seed(t), 0))
	const rate = 1 << 20
	now := time.Unix(1e9, 0) // it goes on when somebody waits for it
	p := pacer{rate: rate, now: func() time.Time { return now }, after: func(d time.Duration) <-chan time.Time {
		now = now.Add(d)
		fired := make(chan time.Time, 1)
		fired <- now
		return fired
	}}
	begin, sum := now, uint64(0)
	for range 5000 {
		n := 1 + r.Uint64N(64)
		if err := p.wait(context.Background(), n); err != nil {
			t.Fatal(err)
		}
		if allowed := rate*now.Sub(begin).Seconds() + 1; float64(sum) > allowed {
			t.Fatalf("%d bytes were read in %v", sum, now.Sub(begin))
		}
		sum += n * blockSize
		if r.IntN(100) == 0 { // something else takes long
			now = now.Add(time.Duration(r.IntN(1e9)))
			begin, sum = now, 0
		}
	}
}
