package standby

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"tansy/disk"
)

// clock is one that stands until it is set.
type clock struct {
	mu     sync.Mutex
	at     time.Duration
	alarms map[time.Duration][]chan time.Time
	asked  chan time.Duration // each after, if there is room
}

func newClock() *clock {
	return &clock{alarms: map[time.Duration][]chan time.Time{}, asked: make(chan time.Duration, 1000)}
}

func (c *clock) now() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) after(d time.Duration) <-chan time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	ch := make(chan time.Time, 1)
	c.alarms[c.at+d] = append(c.alarms[c.at+d], ch)
	c.asked <- d
	return ch
}

func (c *clock) set(at time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = at
	for when, all := range c.alarms {
		if when <= at {
			for _, ch := range all {
				ch <- time.Time{}
			}
			delete(c.alarms, when)
		}
	}
}

// waits waits until Settle waits for the end of a lease, and the beat for the next one.
func (c *clock) waits(t *testing.T) {
	t.Helper()
	asked := []time.Duration{<-c.asked, <-c.asked}
	slices.Sort(asked)
	if want := []time.Duration{length / beatsPerLease, length}; !slices.Equal(asked, want) {
		t.Fatalf("%v are waited for, want %v", asked, want)
	}
}

// fakeDevice remembers what was read, and fails or stalls if told to.
type fakeDevice struct {
	disk.Disk
	mu     sync.Mutex
	reads  []uint64
	writes int
	err    error
	stall  chan struct{} // reads wait for its end, if there is one
	began  chan struct{} // closed when one does
}

func newDevice(blocks uint64) *fakeDevice {
	return &fakeDevice{Disk: disk.NewMem(blocks * disk.BlockSize)}
}

func (d *fakeDevice) ReadAt(a uint64, bufs [][]byte) error {
	d.mu.Lock()
	stall := d.stall
	if stall != nil && d.began != nil {
		close(d.began)
		d.began = nil
	}
	d.mu.Unlock()
	if stall != nil {
		<-stall
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.reads = append(d.reads, a)
	if d.err != nil {
		return d.err
	}
	return d.Disk.ReadAt(a, bufs)
}

func (d *fakeDevice) WriteAt(a uint64, bufs [][]byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.writes++
	return d.Disk.WriteAt(a, bufs)
}

// fail has all reads fail from now on.
func (d *fakeDevice) fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.err = err
}

// hang has reads from now on wait for the end of stall, if that is not nil. The result is closed when one does.
func (d *fakeDevice) hang(stall chan struct{}) (began chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stall, d.began = stall, make(chan struct{})
	return d.began
}

func (d *fakeDevice) Path() string   { return "fake" }
func (d *fakeDevice) Check() error   { return nil }
func (d *fakeDevice) Discards() bool { return false }

const length = 5 * time.Second

// TestLease: a reply leaves only while the last renewal that succeeded was sent less than a lease ago.
func TestLease(t *testing.T) {
	c := newClock()
	l := newLease(length, c.now)
	for _, x := range []struct {
		renew, at time.Duration // renew < 0: not
		holds     bool
	}{
		{-1, 0, false},
		{1 * time.Second, 2 * time.Second, true}, // sent at 1, known at 2
		{-1, 6*time.Second - 1, true},
		{-1, 6 * time.Second, false},
		{500 * time.Millisecond, 5700 * time.Millisecond, true}, // an older one takes nothing back
		{1500 * time.Millisecond, 7 * time.Second, false},
		{8 * time.Second, 8 * time.Second, true},
	} {
		c.set(x.at)
		if x.renew >= 0 {
			l.Renew(x.renew)
		}
		if l.Holds() != x.holds {
			t.Errorf("%+v: %v", x, l.Holds())
		}
	}
	l.End()
	l.Renew(9 * time.Second)
	if l.Holds() || l.Wait() {
		t.Error("it goes on behind its end")
	}
}

// TestLeaseWait: what has to leave waits for a renewal, or for the end.
func TestLeaseWait(t *testing.T) {
	c := newClock()
	for _, renewed := range []bool{true, false} {
		l := newLease(length, c.now)
		said := make(chan bool)
		go func() { said <- l.Wait() }()
		if renewed {
			l.Renew(c.now())
		} else {
			l.End()
		}
		if got := <-said; got != renewed {
			t.Errorf("renewed %v: %v", renewed, got)
		}
	}
}

// settled makes an owner of d.
func settled(t *testing.T, c *clock, d Device, lost func(error)) *Owner {
	o := own(d, newLease(length, c.now), c.after, lost)
	done := make(chan error)
	go func() { done <- o.Settle(context.Background()) }()
	c.waits(t)
	select {
	case err := <-done:
		t.Fatalf("it serves before the former owner's lease has ended: %v", err)
	default:
	}
	c.set(c.now() + length)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if !o.MayReply() {
		t.Fatal("it may not reply")
	}
	return o
}

// TestSettle: all of the storage is asked before the lease is waited for.
func TestSettle(t *testing.T) {
	for blocks, want := range map[uint64]uint64{
		10: 1, stretch: 1, stretch + 1: 2, 100 * stretch: 100, 5000*stretch + 17: most,
	} {
		c, d := newClock(), newDevice(blocks)
		o := own(d, newLease(length, c.now), c.after, func(err error) { t.Error(err) })
		stop, cancel := context.WithCancel(context.Background())
		done := make(chan error)
		go func() { done <- o.Settle(stop) }()
		c.waits(t)
		d.mu.Lock()
		slices.Sort(d.reads)
		reads := slices.Compact(slices.Clone(d.reads))
		d.mu.Unlock()
		if n := uint64(len(reads)); n != want || reads[0] != 0 {
			t.Errorf("%d blocks: %d parts were read, want %d", blocks, n, want)
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		o.Close()
	}
}

// TestStall: while the storage stalls no reply leaves; an answer that comes at last renews nothing, as it was asked for
// too long ago; the next one does.
func TestStall(t *testing.T) {
	c, d := newClock(), newDevice(10)
	o := settled(t, c, d, func(err error) { t.Error(err) })
	hang := make(chan struct{})
	began := d.hang(hang)
	for waiting := true; waiting; { // until the next beat is sent
		c.set(c.now() + length/beatsPerLease)
		select {
		case <-began:
			waiting = false
		case <-c.asked:
		}
	}
	c.set(c.now() + length)
	if o.Holds() {
		t.Fatal("the lease holds without a renewal")
	}
	said := make(chan bool)
	go func() { said <- o.MayReply() }()
	for len(c.asked) > 0 {
		<-c.asked
	}
	d.hang(nil)
	close(hang)
	<-c.asked
	if o.Holds() {
		t.Error("an answer to an old question renews the lease")
	}
	c.set(c.now() + length/beatsPerLease)
	if !<-said {
		t.Error("no reply may leave after a stall")
	}
	if err := o.Close(); err != nil {
		t.Error(err)
	}
}

// TestSlept: who slept longer than a lease sends no write and no reply before it is known whose the device is; and none
// at all if it is another's.
func TestSlept(t *testing.T) {
	for _, whose := range []error{nil, disk.ErrLost} {
		c, d := newClock(), newDevice(10)
		lost := make(chan error, 1)
		o := settled(t, c, d, func(err error) { lost <- err })
		var mark atomic.Pointer[error]
		mark.Store(new(error))
		o.Watch(func() error { return *mark.Load() })
		if !o.Holds() {
			t.Fatal("it was looked, and the lease does not hold")
		}
		mark.Store(&whose)
		c.set(c.now() + 100*length)
		err := o.WriteAt(3, [][]byte{make([]byte, disk.BlockSize)})
		d.mu.Lock()
		sent := d.writes > 0
		d.mu.Unlock()
		if ours := whose == nil; o.MayReply() != ours || (err == nil) != ours || sent != ours {
			t.Fatalf("the mark says %v: a write ended with %v, was sent: %v", whose, err, sent)
		}
		if whose != nil {
			if err := <-lost; !errors.Is(err, whose) {
				t.Error(err)
			}
		}
		o.Close()
	}
}

// TestWatch: renewals from before it could be looked count no more.
func TestWatch(t *testing.T) {
	c := newClock()
	o := settled(t, c, newDevice(10), func(err error) { t.Error(err) })
	looks, look, watched := make(chan struct{}), make(chan error), make(chan struct{})
	go func() {
		defer close(watched)
		var first sync.Once // the beat may look as well
		o.Watch(func() (err error) {
			first.Do(func() {
				looks <- struct{}{}
				err = <-look
			})
			return err
		})
	}()
	select {
	case <-looks:
	case <-watched:
		t.Fatal("it is not looked")
	}
	if o.Holds() {
		t.Error("the lease holds from before")
	}
	look <- nil
	<-watched
	if !o.Holds() {
		t.Error("the lease does not hold")
	}
	o.Close()
}

// TestLost: the first error of the device is the end, and nobody can tell of it.
func TestLost(t *testing.T) {
	for name, do := range map[string]func(*Owner) error{
		"read":    func(o *Owner) error { return o.ReadAt(3, [][]byte{make([]byte, disk.BlockSize)}) },
		"looking": func(o *Owner) error { o.Lose(syscall.ESHUTDOWN); return syscall.ESHUTDOWN },
	} {
		c, d := newClock(), newDevice(10)
		lost := make(chan error, 2)
		o := settled(t, c, d, func(err error) { lost <- err })
		d.fail(syscall.ESHUTDOWN)
		if err := do(o); err == nil || o.MayReply() {
			t.Fatalf("%s: %v, and a reply may leave", name, err)
		}
		if err := <-lost; !errors.Is(err, syscall.ESHUTDOWN) {
			t.Errorf("%s: %v", name, err)
		}
		o.Close()
		if len(lost) > 0 {
			t.Errorf("%s: lost twice", name)
		}
	}
}

// failing is a device all of whose operations but reads fail.
type failing struct {
	*fakeDevice
	err error
}

func (d failing) WriteAt(uint64, [][]byte) error { return d.err }
func (d failing) Barrier() error                 { return d.err }
func (d failing) Check() error                   { return d.err }
func (d failing) Discard(a, n uint64) error      { return d.err }

func TestLostByAll(t *testing.T) {
	for name, do := range map[string]func(*Owner) error{
		"write":   func(o *Owner) error { return o.WriteAt(0, nil) },
		"barrier": func(o *Owner) error { return o.Barrier() },
		"check":   func(o *Owner) error { return o.Check() },
		"discard": func(o *Owner) error { return o.Discard(0, 1) },
	} {
		for _, e := range []error{syscall.EIO, disk.ErrReadOnly, disk.ErrNoDiscard, disk.ErrRange, disk.ErrBuffer} {
			c := newClock()
			o := settled(t, c, failing{newDevice(10), e}, func(error) {})
			if err := do(o); !errors.Is(err, e) {
				t.Errorf("%s: %v", name, err)
			}
			if want := e != syscall.EIO; o.Holds() != want {
				t.Errorf("%s, %v: the lease holds: %v", name, e, !want)
			}
			o.Close()
		}
	}
}

// TestClose: an owner that gives its device up has not lost it.
func TestClose(t *testing.T) {
	c := newClock()
	o := settled(t, c, newDevice(10), func(err error) { t.Error(err) })
	if err := o.Close(); err != nil {
		t.Error(err)
	}
	if err := o.Barrier(); !errors.Is(err, os.ErrClosed) || o.MayReply() {
		t.Error(err)
	}
}
