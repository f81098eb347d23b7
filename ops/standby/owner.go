// Package standby is for a volume that another server may take over: how this one comes by it, and what it may
// still say when it has lost it.
//
// That the former owner changes nothing any more is the storage's business: a fence. It is in force before the
// device is opened (package rbd). What no storage can fence is a reply made from the former owner's cache. So replies
// leave only while a lease holds (Lease), and a successor waits for as long before it serves.
package standby

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"tansy/disk"
	"tansy/internal/gen/remote/leases"
)

// Device is what a volume lies on.
type Device interface {
	disk.Disk
	Path() string
	Check() error
	Discards() bool
}

// Owner is a device that is ours until another server takes it. The first error ends the lease before anybody learns of
// the error. So no reply tells of it.
type Owner struct {
	Device
	*Lease
	lost func(error)
	once sync.Once
	gone atomic.Bool // before lost is called, and before anybody learns of an error

	beating sync.Mutex
	look    func() error // nil: nothing can be looked for yet

	after func(time.Duration) <-chan time.Time
	end   context.CancelFunc
	beats sync.WaitGroup
}

// beatsPerLease is how often in a lease the device is read to renew it.
const beatsPerLease = 5

// Own makes an Owner of a device whose fence is in force. lost is called once, on a goroutine of its own, when the
// device is lost. The device may be served after Settle has returned nil.
func Own(d Device, lease time.Duration, lost func(error)) *Owner {
	began := time.Now()
	return own(d, newLease(lease, func() time.Duration { return time.Since(began) }), time.After, lost)
}

func own(d Device, lease *Lease, after func(time.Duration) <-chan time.Time, lost func(error)) *Owner {
	o := &Owner{Device: d, Lease: lease, lost: lost, after: after}
	ctx, end := context.WithCancel(context.Background())
	o.end = end
	o.beats.Go(func() { o.beat(ctx) })
	return o
}

// beat renews the lease until ctx ends. A read that hangs renews nothing, however long, and none is sent beside it.
func (o *Owner) beat(ctx context.Context) {
	for o.renew() {
		select {
		case <-ctx.Done():
			return
		case <-o.after(o.length / beatsPerLease):
		}
	}
}

// renew renews the lease if the device is ours, for all that can be seen.
func (o *Owner) renew() bool {
	o.beating.Lock()
	defer o.beating.Unlock()
	sent := o.now()
	if o.ReadAt(0, [][]byte{make([]byte, disk.BlockSize)}) != nil {
		return false
	}
	if o.look != nil {
		if err := o.look(); err != nil {
			o.Lose(err)
			return false
		}
	}
	o.Renew(sent)
	return true
}

// Watch has each renewal of the lease call look as well, which reads from the device whether it bears the mark of
// another server. An error of look ends the lease. Renewals before Watch do not count any more. So a server that slept
// until a fence was lifted says nothing either.
func (o *Owner) Watch(look func() error) {
	o.beating.Lock()
	o.look = look
	o.Lapse()
	o.beating.Unlock()
	o.renew()
}

// The parts of the device that are read before a recovery.
const (
	stretch = 4 << 20 / disk.BlockSize // one of each so many blocks
	most    = 1024                     // at most so many in all
	atOnce  = 32
)

// Settle makes sure that all of the storage knows the device to be ours. First it reads here and there, block 0 too,
// because a part of the storage may learn of the fence only from its next owner. Then it waits until the former owner's
// lease has ended, whose last renewal was sent before those reads.
func (o *Owner) Settle(ctx context.Context) error {
	if err := o.touch(); err != nil {
		return err
	}
	known := uint64(o.now())
	for {
		wait := leases.ToWait(known, uint64(o.now()), uint64(o.length))
		if wait == 0 {
			return nil
		}
		select {
		case <-o.after(time.Duration(wait)):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// touch reads a block of each stretch, or of as many as it may.
func (o *Owner) touch() error {
	step := max(stretch, (o.Size()+most-1)/most)
	errs := make(chan error, atOnce)
	for i := range uint64(atOnce) {
		go func() {
			block := make([]byte, disk.BlockSize)
			var err error
			for a := i * step; a < o.Size() && err == nil; a += atOnce * step {
				err = o.ReadAt(a, [][]byte{block})
			}
			errs <- err
		}()
	}
	var all error
	for range atOnce {
		all = errors.Join(all, <-errs)
	}
	return all
}

// MayReply tells whether a reply, or a write, may leave. It waits while the lease does not hold, as when the storage
// stalls. The answer false is for good.
func (o *Owner) MayReply() bool { return o.Holds() || o.Wait() }

// Lose says that the device is not ours any more.
func (o *Owner) Lose(why error) {
	o.once.Do(func() {
		o.gone.Store(true)
		o.End()
		go o.lost(why)
	})
}

// Lost tells whether the device is not ours any more. If it is not, lost was called, or is about to be.
func (o *Owner) Lost() bool { return o.gone.Load() }

// seen passes an error of the device on when nothing can be said of it any more.
func (o *Owner) seen(err error) error {
	for _, harmless := range []error{nil, disk.ErrReadOnly, disk.ErrNoDiscard, disk.ErrRange, disk.ErrBuffer} {
		if errors.Is(err, harmless) {
			return err
		}
	}
	o.Lose(err)
	return err
}

// ReadAt implements disk.Disk.
func (o *Owner) ReadAt(a uint64, bufs [][]byte) error { return o.seen(o.Device.ReadAt(a, bufs)) }

// WriteAt implements disk.Disk. It waits while the lease does not hold, as a reply does. After a sleep or a stall
// nothing is sent before the device is known to be ours.
func (o *Owner) WriteAt(a uint64, bufs [][]byte) error {
	if !o.MayReply() {
		return disk.ErrLost
	}
	return o.seen(o.Device.WriteAt(a, bufs))
}

// Barrier implements disk.Disk.
func (o *Owner) Barrier() error { return o.seen(o.Device.Barrier()) }

// Discard implements disk.Discarder.
func (o *Owner) Discard(a, n uint64) error {
	if !o.MayReply() {
		return disk.ErrLost
	}
	return o.seen(disk.Discard(o.Device, a, n))
}

// Check looks whether the device is there.
func (o *Owner) Check() error { return o.seen(o.Device.Check()) }

// Close gives the device up. Nothing may be served any more.
func (o *Owner) Close() error {
	o.end()
	o.beats.Wait()
	o.once.Do(o.End) // from here on nothing is lost
	return o.Device.Close()
}
