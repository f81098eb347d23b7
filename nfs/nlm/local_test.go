package nlm_test

import (
	"math"
	"runtime"
	"syscall"
	"testing"
	"time"

	"tansy/nfs/nlm"
)

// A program on the server's machine and a client exclude each other, and each is told when the other has unlocked.
func TestLocal(t *testing.T) {
	p, port := newPeer(t, false)
	b := newBench(t, nlm.Config{PortmapperPort: port}, nil)
	local := b.server.LocalLocks([8]byte{1})
	ann := b.client(t, "127.0.0.1", "ann")
	if err := local.Lock(b.file, "me", 10, 29, true, nil); err != nil {
		t.Fatal(err)
	}
	ann.lock(nlm.Denied, lock{1, "a", 29, 1})
	ann.wait(nlm.Blocked, lock{1, "a", 0, 20})
	if err := local.Unlock(b.file, "me", 10, 19); err != nil {
		t.Fatal(err)
	}
	if got := p.next(t); got.lock != (lock{1, "a", 0, 20}) {
		t.Errorf("granted is %+v", got)
	}
	if err := local.Lock(b.file, "me", 0, 0, false, nil); err != syscall.EAGAIN {
		t.Errorf("what a client has: %v", err)
	}
	free, by, from, to, exclusive, err := local.Test(b.file, "me", 5, math.MaxUint64, true, nil)
	if free || by != "" || from != 0 || to != 19 || !exclusive || err != nil {
		t.Errorf("in the way are bytes %d to %d of %q: free %v, exclusive %v, %v", from, to, by, free, exclusive, err)
	}
	free, by, from, to, _, _ = local.Test(b.file, "other", 25, 25, true, nil)
	if free || by != "me" || from != 20 || to != 29 {
		t.Errorf("in the way are bytes %d to %d of %q: free %v", from, to, by, free)
	}

	done := make(chan error, 1)
	go func() { done <- local.Lock(b.file, "me", 0, 100, true, make(chan struct{})) }()
	waitsFor(t, b, 1)
	ann.unlock(lock{1, "a", 0, 20})
	ends(t, done, nil)
	ann.lock(nlm.Denied, lock{1, "a", 100, 1})
	local.UnlockAll(b.file, "me")
	ann.lock(nlm.Granted, lock{1, "a", 100, 1})
}

// waitsFor waits until so many locks are waited for.
func waitsFor(t *testing.T, b *bench, n int) {
	t.Helper()
	for late := time.Now().Add(patience); b.server.Locks().Waits != n; runtime.Gosched() {
		if time.Now().After(late) {
			t.Fatalf("%d wait, want %d", b.server.Locks().Waits, n)
		}
	}
}

// ends wants a wait to end so.
func ends(t *testing.T, done <-chan error, want error) {
	t.Helper()
	select {
	case err := <-done:
		if err != want {
			t.Errorf("the wait ends with %v, want %v", err, want)
		}
	case <-time.After(patience):
		t.Fatal("the wait does not end")
	}
}

// A wait that is cancelled is over, and nobody waits behind it. Threads that wait for one lock are independent.
func TestLocalCancel(t *testing.T) {
	b := newBench(t, nlm.Config{}, nil)
	local := b.server.LocalLocks([8]byte{1})
	ann := b.client(t, "127.0.0.1", "ann")
	ann.lock(nlm.Granted, lock{1, "a", 10, 10})
	results := make([]chan error, 2)
	cancels := make([]chan struct{}, 2)
	for i := range results {
		results[i], cancels[i] = make(chan error, 1), make(chan struct{})
		entered := make(chan struct{})
		go func() {
			close(entered)
			results[i] <- local.Lock(b.file, "me", 10, 19, true, cancels[i])
		}()
		<-entered
	}
	waitsFor(t, b, 1)
	close(cancels[0])
	ends(t, results[0], syscall.EINTR)
	ann.unlock(lock{1, "a", 10, 10})
	ends(t, results[1], nil)
	ann.lock(nlm.Denied, lock{1, "a", 10, 10})

	again := make(chan struct{})
	done := make(chan error, 1)
	go func() { done <- local.Lock(b.file, "other", 10, 19, true, again) }()
	waitsFor(t, b, 1)
	close(again)
	ends(t, done, syscall.EINTR)
	if n := b.server.Locks(); n.Waits != 0 || n.Size != 1 {
		t.Errorf("left: %+v", n)
	}
}

// With the end of the mount all of it is free, and nothing of clients.
func TestLocalEnd(t *testing.T) {
	b := newBench(t, nlm.Config{}, nil)
	local := b.server.LocalLocks([8]byte{1})
	ann := b.client(t, "127.0.0.1", "local") // a client may call itself so
	ann.lock(nlm.Granted, lock{1, "a", 0, 10})
	for _, owner := range []string{"x", "y"} {
		if err := local.Lock(b.file, owner, 10, math.MaxUint64, false, nil); err != nil {
			t.Fatal(err)
		}
	}
	local.End()
	b.client(t, "127.0.0.1", "bob").lock(nlm.Denied, lock{1, "b", 0, 1})
	ann.lock(nlm.Granted, lock{1, "a", 10, 0})
	if n := b.server.Locks(); n.Owners != 1 {
		t.Errorf("left: %+v", n)
	}
}

// This machine has half of all locks: more than a client, and clients have the rest.
func TestLocalLimits(t *testing.T) {
	limits := nlm.DefaultLimits
	limits.All, limits.Client, limits.File = 40, 5, 40
	b := newBench(t, nlm.Config{Limits: limits}, nil)
	local := b.server.LocalLocks([8]byte{1})
	n := uint64(0)
	for ; local.Lock(b.file, "me", 2*n, 2*n, true, nil) == nil; n++ {
	}
	if err := local.Lock(b.file, "me", 2*n, 2*n, true, nil); n != 20 || err != syscall.ENOLCK {
		t.Errorf("%d locks, then %v", n, err)
	}
	b.client(t, "127.0.0.1", "ann").lock(nlm.Granted, lock{1, "a", 1000, 1})
}
