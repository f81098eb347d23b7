package fs

import (
	"sync"
	"sync/atomic"
	"time"

	"tansy/internal/gen/fs/exec/calls"
	"tansy/internal/gen/fs/exec/exec"
	"tansy/internal/gen/fs/procedures/procedurebase"
	"tansy/internal/lockorder"
)

// Removing or cutting a large file is one small transaction that puts it on the
// orphan list of the volume; the freer gives its blocks back in many others. The
// list is on disk, so a crash in between loses nothing: the freer of the next
// start goes on.
type freer struct {
	v       *FS
	pending atomic.Bool   // the list may hold something
	steps   atomic.Uint64 // done
	kick    chan struct{}
	quit    chan struct{}
	end     sync.Once // closes quit
	done    chan struct{}
	mu      lockorder.Mutex[lockorder.Freeing]   // one step at a time
	rest    func(time.Duration) <-chan time.Time // time.After, another in tests
}

// freeStep is the number of blocks freed in one transaction.
const freeStep = 128

// How long the freer works, and then rests. Nobody waits for it (who needs room helps), and one that never rests keeps
// a processor from all: with two, calls of others waited milliseconds for their turn. So 100 GB are free in half a
// minute, or in two minutes if others change something meanwhile.
const (
	freeTurn  = 250 * time.Microsecond
	freeRest  = 3 * freeTurn
	freeYield = 15 * freeTurn // while others commit
)

// A commitWatch tells commits of others from those of the background.
type commitWatch struct{ seen int64 }

// others tells that there were some since it was asked last; not for certain, as one of the background may be under
// way.
func (w *commitWatch) others(v *FS) bool {
	n := int64(v.sys.Position().Commits - v.chores.Load())
	some := n > w.seen
	w.seen = n
	return some
}

// maxHelp bounds the steps that an operation helps with at a time, all blocks there
// are: then others have taken what was freed, and it gives up.
const maxHelp = 1 << 40

func (v *FS) newFreer() *freer {
	return &freer{v: v, kick: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{}), rest: time.After}
}

func (v *FS) startFreer() *freer {
	f := v.newFreer()
	if v.readOnly {
		close(f.done)
		return f
	}
	f.wake() // work off what the last start left
	go f.loop()
	return f
}

// wake tells the freer that there is work. It does not wait.
func (f *freer) wake() {
	f.pending.Store(true)
	select {
	case f.kick <- struct{}{}:
	default:
	}
}

func (f *freer) loop() {
	defer close(f.done)
	var watch commitWatch
	for {
		select {
		case <-f.quit:
			return
		case <-f.kick:
		}
		for more := true; more; {
			for began := time.Now(); more && time.Since(began) < freeTurn; {
				more = f.step()
			}
			rest := freeRest
			if watch.others(f.v) {
				rest = freeYield
			}
			select {
			case <-f.quit:
				return
			case <-f.rest(rest):
			}
		}
	}
}

// step frees some blocks; more tells whether the list holds more.
func (f *freer) step() (more bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.pending.Swap(false) {
		return false
	}
	err := f.v.background(exec.FREE(), func(t *txn) uint32 {
		var st uint32
		st, more = procedurebase.OrphanStep(t, f.v.dirs, f.v.freeStep)
		return st
	})
	if err != nil {
		f.v.log.Error("freeing the blocks of removed files stops", "err", err)
		return false
	}
	f.steps.Add(1)
	if more {
		f.pending.Store(true)
	}
	return more
}

// help frees some of what waits, in the caller's time: steps steps, if there is so
// much.
func (f *freer) help(steps int) {
	for more := true; more && steps > 0 && f.waiting(); steps-- {
		more = f.step()
	}
}

// waiting tells whether the list may hold something, after the step that is
// running, if one is.
func (f *freer) waiting() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.pending.Load()
}

// close ends the background. It may be called again.
func (f *freer) close() {
	f.end.Do(func() { close(f.quit) })
	<-f.done
}

// shrink is a step of freeing what was cut off the file of call c earlier, so that it can grow again, in a transaction
// of its own; it returns what is next. Other operations go on meanwhile, and the freer may be at the same file. However
// much there is (some 3 GiB in a second), no client is told to come again: many programs take that for an error.
func (v *FS) shrink(c *call) (next uint32) {
	var step call
	step.Make(exec.FREE(), 0, v.deferred, 0)
	done := false
	v.attempt(&step, func(t *txn) uint32 {
		done = procedurebase.Shrink(t, v.dirs, c.Ino, v.freeStep)
		return 0
	})
	return calls.Shrunk(&c.Call, step.Status, done)
}

// A search is for room for a call that found none. What waits to be freed is room, too; each time more of it is.
type search struct {
	v              *FS
	steps          int
	refused, given uint64 // by the host, and to it
}

func (v *FS) search() search { return search{v, 8, v.sys.Refused(), 0} }

// found tells that there may be more now than the call could find. freed: the steps of the freer before.
func (s *search) found(freed uint64) bool {
	v := s.v
	if s.steps <= maxHelp {
		v.free.help(s.steps)
		if v.free.steps.Load() != freed { // here, or in the background
			s.steps *= 2
			return true
		}
	}
	// Room that was given back may be the host's only after a barrier.
	if now := v.sys.Discarded(); now != s.given && v.sys.Flush() == nil {
		s.given = now
		return true
	}
	if v.sys.Refused() != s.refused {
		v.hostLog.full()
	}
	return false
}
