package closing

import (
	"sync"
	"sync/atomic"
	"testing"
)

// TestGate: who is in before Close begins is waited for, nobody comes in afterwards, and Close may come again.
func TestGate(t *testing.T) {
	g := New()
	if g.Closed() || !g.Enter() || !g.Enter() {
		t.Fatal("a new gate is closed")
	}
	g.Leave()
	g.Shut()
	if !g.Closed() || g.Enter() {
		t.Fatal("a gate that is shut lets somebody in")
	}
	closed := make(chan struct{})
	go func() { g.Close(); close(closed) }()
	select {
	case <-closed:
		t.Fatal("it is closed, and a call is under way")
	case <-g.idle:
		t.Fatal("it is idle, and a call is under way")
	default:
	}
	g.Leave()
	<-closed
	g.Close()
	if g.Enter() || !g.Closed() {
		t.Fatal("it is open again")
	}
}

// TestGateRace: when Close has returned, nobody is in, however many come and go meanwhile.
func TestGateRace(t *testing.T) {
	for range 200 {
		g := New()
		var in atomic.Int64
		var calls sync.WaitGroup
		for range 4 {
			calls.Go(func() {
				for g.Enter() {
					in.Add(1)
					in.Add(-1)
					g.Leave()
				}
			})
		}
		for range 2 {
			calls.Go(func() {
				g.Close()
				if n := in.Load(); n != 0 {
					t.Errorf("%d calls are under way after Close", n)
				}
			})
		}
		calls.Wait()
	}
}
