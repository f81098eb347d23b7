package callout

import (
	"context"
	"net/netip"
	"sync"
	"testing"
	"time"
)

func at(i byte) netip.Addr { return netip.AddrFrom4([4]byte{192, 0, 2, i}) }

// held is work that does not end before it is let go of, or its time is over.
type held struct {
	mu      sync.Mutex
	order   []int
	running int
	most    int
	went    chan struct{} // one for each that begins
	leave   chan struct{}
	ended   sync.WaitGroup
}

func newHeld() *held { return &held{went: make(chan struct{}, 100), leave: make(chan struct{})} }

func (h *held) work(id int) func(context.Context) {
	h.ended.Add(1)
	return func(ctx context.Context) {
		defer h.ended.Done()
		h.mu.Lock()
		h.order = append(h.order, id)
		h.running++
		h.most = max(h.most, h.running)
		h.mu.Unlock()
		h.went <- struct{}{}
		select {
		case <-h.leave:
		case <-ctx.Done():
		}
		h.mu.Lock()
		h.running--
		h.mu.Unlock()
	}
}

// TestBounds: so many run for a client and in all, so many wait, and clients take turns.
func TestBounds(t *testing.T) {
	q := New(Limits{AtOnce: 3, PerHost: 2, Queued: 3, Hosts: 2, Time: time.Hour})
	defer q.Close()
	h := newHeld()
	for i := range 5 {
		if !q.Do(at(1), h.work(i)) {
			t.Fatalf("%d is refused", i)
		}
	}
	<-h.went
	<-h.went
	if q.Do(at(1), func(context.Context) {}) {
		t.Error("a fourth waits for one client")
	}
	if !q.Do(at(2), h.work(10)) {
		t.Error("the second client is refused")
	}
	<-h.went // it did not wait for the first
	if q.Do(at(3), func(context.Context) {}) {
		t.Error("there is a third client")
	}
	for range 6 {
		h.leave <- struct{}{}
	}
	h.ended.Wait()
	if h.most != 3 || h.order[2] != 10 {
		t.Errorf("%d at a time, in the order %v", h.most, h.order)
	}
}

// TestTime: what takes too long is ended, and so is all with the queue.
func TestTime(t *testing.T) {
	q := New(Limits{AtOnce: 1, PerHost: 1, Queued: 2, Hosts: 2, Time: time.Millisecond})
	h := newHeld()
	q.Do(at(1), h.work(0))
	h.ended.Wait()
	q = New(Limits{AtOnce: 1, PerHost: 1, Queued: 2, Hosts: 2, Time: time.Hour})
	q.Do(at(1), h.work(1))
	<-h.went
	q.Close()
	h.ended.Wait()
	if q.Do(at(1), func(context.Context) {}) {
		t.Error("a closed queue takes more")
	}
}
