package nlm

import (
	"math"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"tansy/fs"
	"tansy/nfs/advisory"
)

// What becomes of an offer between that it is made, told, and accepted: no call from outside can stop there.

var toldFile = fs.Handle{Ino: 5, Gen: 1}

// newLocal makes locks of one volume. late: offers are not told before the result is called, in the order made.
func newLocal(late bool) (l *Local, tell func()) {
	var offers []advisory.Offer
	s := &Service{}
	s.table = advisory.New(DefaultLimits, func(o advisory.Offer) {
		if late {
			offers = append(offers, o)
		} else {
			s.offer(o)
		}
	})
	return s.Local([8]byte{1}), func() {
		for _, o := range offers {
			s.offer(o)
		}
		offers = nil
	}
}

func wantAll(l *Local, owner string) wanted {
	return wanted{l.file(toldFile), mine(owner), advisory.Range{Last: math.MaxUint64}, true}
}

// mustAsk asks for all of the file, which is to be waited for, or is had.
func mustAsk(t *testing.T, l *Local, owner string, waits bool) *localWait {
	t.Helper()
	w, err := l.ask(wantAll(l, owner), true)
	if err != nil || (w != nil) != waits {
		t.Fatalf("%s waits: %v, want %v; %v", owner, w != nil, waits, err)
	}
	return w
}

// mustSettle ends a wait.
func mustSettle(t *testing.T, l *Local, owner string, w *localWait, want bool, fails error) {
	t.Helper()
	if got, err := l.settle(wantAll(l, owner), w); got != want || err != fails {
		t.Fatalf("settled: %v with %v, want %v with %v", got, err, want, fails)
	}
}

// A thread was told that it has a lock, and another one of the same owner gave it back: neither has it then. It does not
// matter whether the thread is told before or after the other one asks again.
func TestLocalTold(t *testing.T) {
	for _, late := range []bool{false, true} {
		l, tell := newLocal(late)
		mustAsk(t, l, "b", false)
		first := mustAsk(t, l, "a", true)
		l.UnlockAll(toldFile, "b")
		l.UnlockAll(toldFile, "a") // which takes the offer
		mustAsk(t, l, "b", false)
		second := mustAsk(t, l, "a", true)
		if late {
			l.UnlockAll(toldFile, "b") // the next offer comes with the one before
			tell()
			mustSettle(t, l, "a", first, false, nil)
			mustAsk(t, l, "a", false)
			mustSettle(t, l, "a", second, false, nil)
		} else {
			if second.wasTold() {
				t.Fatal("a wait begins, and is told already")
			}
			mustSettle(t, l, "a", first, false, nil)
			if w := mustAsk(t, l, "a", true); w != second {
				t.Fatal("two waits for one lock")
			}
			l.UnlockAll(toldFile, "b")
			mustSettle(t, l, "a", second, true, nil)
			mustSettle(t, l, "a", second, false, nil)
		}
		mustAsk(t, l, "a", false)
		if len(l.waits) != 0 || l.table.Counts().Waits != 0 {
			t.Errorf("left: %v", l.waits)
		}
		if free, by, _, _, _, _ := l.Test(toldFile, "b", 0, 0, true, nil); free || by != "a" {
			t.Errorf("the lock is %q's; free: %v", by, free)
		}
		l.UnlockAll(toldFile, "a")

		// Who does not want to wait any more has not got it, and leaves nothing.
		mustAsk(t, l, "b", false)
		mustSettle(t, l, "a", mustAsk(t, l, "a", true), true, syscall.EINTR)
		if len(l.waits) != 0 || l.table.Counts().Waits != 0 {
			t.Errorf("left by who does not wait any more: %v", l.waits)
		}
	}
}

// owning is what threads of an owner do: how many calls to unlock began and ended.
type owning struct{ begun, ended atomic.Int64 }

// Threads of three owners, and a client, lock and unlock one file. All of it ends. Who has got the lock has it, if no
// thread of its owner unlocked meanwhile.
func TestLocalThreads(t *testing.T) {
	l, _ := newLocal(false)
	turns := 2000
	if testing.Short() {
		turns = 300
	}
	var threads, client sync.WaitGroup
	stop := make(chan struct{})
	client.Go(func() {
		ann := advisory.Owner{Host: advisory.Host{Addr: netip.MustParseAddr("192.0.2.1"), Name: "ann"}, ID: "x"}
		for all := (advisory.Range{Last: math.MaxUint64}); ; {
			l.table.Lock(l.file(toldFile), ann, all, true, false, nil)
			l.table.Unlock(l.file(toldFile), ann, all)
			select {
			case <-stop:
				return
			default:
			}
		}
	})
	for _, owner := range []string{"a", "b", "c"} {
		var o owning
		for range 6 {
			threads.Go(func() {
				for range turns {
					before := o.ended.Load()
					if err := l.Lock(toldFile, owner, 0, math.MaxUint64, true, make(chan struct{})); err != nil {
						t.Error(err)
						return
					}
					free, by, _, _, _, _ := l.Test(toldFile, "other", 0, 0, true, nil)
					if o.begun.Load() == before && (free || by != owner) {
						t.Errorf("%s has got the lock of %q; free: %v", owner, by, free)
					}
					o.begun.Add(1)
					l.UnlockAll(toldFile, owner)
					o.ended.Add(1)
				}
			})
		}
	}
	threads.Wait()
	close(stop)
	client.Wait()
	if n := l.table.Counts(); n != (advisory.Counts{}) || len(l.waits) != 0 {
		t.Errorf("left: %+v, %v", n, l.waits)
	}
}
