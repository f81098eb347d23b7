package background

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"tansy/internal/lockorder"
)

// Orphans is what a freer needs of a volume.
type Orphans interface {
	others
	// FreeSome gives back some of the blocks that wait for it, in one transaction; more tells whether others wait.
	FreeSome() (more bool, err error)
}

// Freer gives blocks back. Removing or cutting a large file is one small transaction that puts it on the
// orphan list of the volume; the freer gives its blocks back in many others. The
// list is on disk, so a crash in between loses nothing: the freer of the next
// start goes on. Its methods may be called concurrently.
type Freer struct {
	v       Orphans
	log     *slog.Logger
	pending atomic.Bool   // the list may hold something
	steps   atomic.Uint64 // done
	kick    chan struct{}
	quit    chan struct{}
	end     sync.Once // closes quit
	ended   sync.WaitGroup
	mu      lockorder.Mutex[lockorder.Freeing]   // one step at a time
	rest    func(time.Duration) <-chan time.Time // time.After, another in tests
}

// How long the freer works, and then rests. Nobody waits for it (who needs room helps), and one that never rests keeps
// a processor from all: with two, calls of others waited milliseconds for their turn. So 100 GB are free in half a
// minute, or in two minutes if others change something meanwhile.
const (
	freeTurn  = 250 * time.Microsecond
	freeRest  = 3 * freeTurn
	freeYield = 15 * freeTurn // while others commit
)

// NewFreer is of volume v, and does nothing by itself before Start.
func NewFreer(v Orphans, log *slog.Logger) *Freer {
	return &Freer{v: v, log: log, kick: make(chan struct{}, 1), quit: make(chan struct{}), rest: time.After}
}

// Start begins to work in the background, first at what the last start left.
func (f *Freer) Start() {
	f.Wake()
	f.ended.Go(f.loop)
}

// Wake tells the freer that there is work. It does not wait.
func (f *Freer) Wake() {
	f.pending.Store(true)
	select {
	case f.kick <- struct{}{}:
	default:
	}
}

func (f *Freer) loop() {
	var watch commitWatch
	for {
		select {
		case <-f.quit:
			return
		case <-f.kick:
		}
		for more := true; more; {
			for began := time.Now(); more && time.Since(began) < freeTurn; {
				more = f.Step()
			}
			rest := freeRest
			if watch.seesOthers(f.v) {
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

// Step frees some blocks; more tells whether the list holds more.
func (f *Freer) Step() (more bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.pending.Swap(false) {
		return false
	}
	more, err := f.v.FreeSome()
	if err != nil {
		f.log.Error("freeing the blocks of removed files stops", "err", err)
		return false
	}
	f.steps.Add(1)
	if more {
		f.pending.Store(true)
	}
	return more
}

// Steps is the number of steps that were done.
func (f *Freer) Steps() uint64 { return f.steps.Load() }

// Help frees some of what waits, in the caller's time: steps steps, if there is so
// much.
func (f *Freer) Help(steps int) {
	for more := true; more && steps > 0 && f.Waiting(); steps-- {
		more = f.Step()
	}
}

// Waiting tells whether the list may hold something, after the step that is
// running, if one is.
func (f *Freer) Waiting() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.pending.Load()
}

// Close ends the background. It may be called again.
func (f *Freer) Close() {
	f.end.Do(func() { close(f.quit) })
	f.ended.Wait()
}
