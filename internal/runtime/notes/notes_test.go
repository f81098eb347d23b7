package notes

import (
	"sync"
	"testing"
	"time"
)

func TestNotes(t *testing.T) {
	n := New()
	for i := range uint32(15) {
		n.Set(i, uint64(i)+5)
	}
	for i := range uint32(15) {
		if got := n.Get(i); got != uint64(i)+5 && i != age && i != since {
			t.Error(i, got)
		}
	}
}

// The last number is a large one before it is set, and grows from 0 then.
func TestAge(t *testing.T) {
	for _, number := range []uint32{age, since} {
		n := New()
		before := n.Get(number)
		n.Set(number, 1<<63)
		last := n.Get(number)
		if before < 1<<32 || last > 1<<32 {
			t.Error(before, last)
		}
		for range 1000 {
			x := n.Get(number)
			if x < last {
				t.Error(x, "after", last)
			}
			last = x
		}
		n.set[number-age] = n.set[number-age].Add(-time.Hour)
		if x := n.Get(number); x < 3600_000 || x > 2*3600_000 {
			t.Error("after an hour:", x)
		}
	}
}

// A wish is told once, and however many come, few are kept.
func TestWishes(t *testing.T) {
	n := New()
	var wg sync.WaitGroup
	for c := range uint64(4) {
		wg.Go(func() {
			for i := range uint64(1000) {
				n.Wish(4*i + c)
				if !n.Bulk(4*i+c) || n.Bulk(4*i+c) {
					t.Error(4*i + c)
				}
			}
		})
	}
	wg.Wait()
	for i := range uint64(3 * maxWishes) {
		n.Wish(i)
		if len(n.bulk) > maxWishes {
			t.Fatal(len(n.bulk))
		}
	}
	if !n.Bulk(3*maxWishes-1) || n.Bulk(0) {
		t.Error("the newest wish, or the oldest")
	}
}
