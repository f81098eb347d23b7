package fs

import (
	"sync"

	"tansy/internal/closing"
	"tansy/journal"
)

// ErrClosed is the error of every call that begins after Close has begun. It is no Errno, because NFS has none for it.
var ErrClosed = journal.ErrClosed

// ending is what a volume has for its end.
type ending struct {
	calls *closing.Gate
	left  func() // calls.Leave, made once: a method as a value takes of the heap each time
	ended sync.Once
	as    error // what Close returns
}

func newEnding() ending {
	calls := closing.New()
	return ending{calls: calls, left: calls.Leave}
}

// Close makes everything durable, and stops. The device stays open, and remains the caller's.
//
// A call that begins after Close has begun fails with ErrClosed. Close waits for the calls under way, which end as
// ever; Trim alone ends early, with ErrClosed. Then all moments are lost, and it waits for the background. Close may be
// called again, also at the same time: the second call waits, and returns the same.
func (v *FS) Close() error {
	v.ended.Do(func() {
		v.calls.Close()
		v.moments.EndAll(ErrClosed)
		v.ahead.Close()
		v.scrub.Close()
		v.dmg.Close()
		v.free.Close()
		v.trim.Close()
		v.as = v.stop()
	})
	return v.as
}

// serve carries call c out, unless the volume is closed.
func (v *FS) serve(c *call, op func(t *txn)) error {
	if err := v.enter(); err != nil {
		return err
	}
	defer v.leave()
	return v.carry(c, op)
}

// enter begins a call, which Close waits for until leave.
func (v *FS) enter() error {
	if v.inside || v.calls.Enter() {
		return nil
	}
	return ErrClosed
}

// leave ends what enter has begun.
func (v *FS) leave() {
	if !v.inside {
		v.calls.Leave()
	}
}

// part is the volume for parts of a call that has entered: they are carried out although Close may have begun
// meanwhile.
func (v *FS) part() *FS { return &FS{v.volume, v.id, v.deferred, true} }

// together begins a call that has several parts on a volume with extended attributes, and one on others, but for those
// about attributes that came meanwhile. The parts are done with what it returns, and leave comes last.
func (v *FS) together() (part *FS, leave func(), err error) {
	if v.inside {
		return v, func() {}, nil
	}
	if err := v.enter(); err != nil {
		return nil, nil, err
	}
	if !v.xattrs.some.Load() { // the one part may enter itself
		return v, v.left, nil
	}
	return v.part(), v.left, nil
}
