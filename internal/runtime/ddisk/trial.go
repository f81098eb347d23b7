package ddisk

import (
	"cmp"
	"sync/atomic"
	"time"

	"tansy/disk"
)

// trial finds out how quick the device is, by what recovery does there anyway: it writes two headers, each with a
// barrier behind it.
type trial struct {
	on   atomic.Bool
	last atomic.Int64  // nanoseconds that the last write took; 0: there was none since the last barrier
	best atomic.Int64  // the least that a write and the barrier behind it took; 0: there was none yet
	most time.Duration // that is quick; 0: quickBarrier. For tests
}

// quickBarrier is how long a write and the barrier behind it take at most where writes go past the system's cache. A
// medium in memory takes some 20 us; a disk that a host has for its virtual machines, or a flash disk that has to make
// it durable, 100 us to some milliseconds.
const quickBarrier = 80 * time.Microsecond

// writing times a write, if that is wanted. It is over when the result is called.
func (t *trial) writing() func() {
	if !t.on.Load() {
		return func() {}
	}
	began := time.Now()
	return func() { t.last.Store(int64(time.Since(began))) }
}

// barred times a barrier that began then.
func (t *trial) barred(began time.Time) {
	last := t.last.Swap(0)
	if !t.on.Load() || last == 0 {
		return
	}
	if took, best := last+int64(time.Since(began)), t.best.Load(); best == 0 || took < best {
		t.best.Store(took)
	}
}

// Judge ends the trial that Pace began: on a device that is as quick as memory, all writes go past the system's cache
// from now on. Nothing else may be under way.
func (d *Disk) Judge() {
	best := time.Duration(d.trial.best.Load())
	if !d.trial.on.CompareAndSwap(true, false) || best == 0 || best > cmp.Or(d.trial.most, quickBarrier) {
		return
	}
	if disk.PastCache(d.d) {
		d.pace.on = false // nothing waits in the cache
		d.past = true
	}
}

// Judgement tells how long a write and the barrier behind it took at least when the device was tried (0: it was not),
// and whether all writes go past the system's cache for it. Call it after Judge.
func (d *Disk) Judgement() (barrier time.Duration, past bool) {
	return time.Duration(d.trial.best.Load()), d.past
}
