package background

import (
	"sync"
	"sync/atomic"
	"time"

	"tansy/internal/lockorder"
	"tansy/journal"
)

// Device is what reading ahead needs of a volume.
type Device interface {
	// Reading is how many reads of the device have ended so far, and how long these took together.
	Reading() (reads int64, took time.Duration)
	// Prefetch has n bytes of a file in the cache afterwards, if that is not too much.
	Prefetch(f File, off, n uint64) error
}

// A File is the number of its inode, and the generation of that.
type File struct{ Ino, Gen uint64 }

// Ahead reads ahead. A device may take long for a read: one over a network does, or a disk that turns. A client that
// reads a file in order has a few calls under way, each of which waits as long. So once calls were seen to wait, what
// comes next is read into the cache before it is asked for. Where the device is quick this would only be more work, and
// nothing is noted. Its methods may be called concurrently.
type Ahead struct {
	// Slow is journal.SlowRead, but in tests: a READ that takes as long has waited for the device, if that took as long
	// for a read, too.
	Slow time.Duration

	v     Device
	some  atomic.Bool // somebody waits: all READs are noted
	ended sync.WaitGroup

	mu      lockorder.Mutex[lockorder.Readers]
	readers readers
	flying  map[*piece]chan struct{} // what is being read; closed when it is there
	closed  bool
}

const aheadPlaces = 48 // pieces that are read at a time

// NewAhead is of volume v, with a cache of cacheBytes; 0: of journal.DefaultCacheBytes.
func NewAhead(v Device, cacheBytes uint64) *Ahead {
	if cacheBytes == 0 {
		cacheBytes = journal.DefaultCacheBytes
	}
	limit := cacheBytes / 4
	return &Ahead{v: v, Slow: journal.SlowRead, readers: readers{limit: limit}, flying: map[*piece]chan struct{}{}}
}

// A Watch is what was known of the device when it was begun.
type Watch struct {
	began time.Time
	reads int64
	took  time.Duration
}

// Watch begins one.
func (a *Ahead) Watch() Watch {
	w := Watch{began: time.Now()}
	w.reads, w.took = a.v.Reading()
	return w
}

// Waited tells whether the device took long since w was begun. That it took long to get on may have been for the
// processors.
func (a *Ahead) Waited(w Watch) bool {
	if time.Since(w.began) < a.Slow {
		return false
	}
	reads, took := a.v.Reading()
	n := time.Duration(reads - w.reads)
	return n > 0 && (took-w.took)/n >= a.Slow
}

// Read notes a READ of n bytes of a file of size bytes, which was slow or not, and has what comes next read.
func (a *Ahead) Read(h File, off, n, size uint64, slow bool) {
	if !slow && !a.some.Load() {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return
	}
	for _, p := range a.readers.read(make([]piece, 0, aheadPlaces-len(a.flying)), h, off, n, size, slow) {
		a.flying[&p] = make(chan struct{})
		a.ended.Go(func() { a.fetch(&p) })
	}
	a.some.Store(a.readers.some())
}

// Await waits for what is being read of the n bytes at off. To read it again would take as long, and the device twice.
func (a *Ahead) Await(h File, off, n uint64) {
	if !a.some.Load() {
		return
	}
	for {
		there := a.find(h, off, n)
		if there == nil {
			return
		}
		lockorder.Wait[lockorder.Ahead]()
		<-there
	}
}

// find is a piece with some of the n bytes at off, or nil.
func (a *Ahead) find(h File, off, n uint64) chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	for p, there := range a.flying {
		if p.h == h && off < p.off+p.n && p.off < off+n {
			return there
		}
	}
	return nil
}

// fetch reads p into the cache.
func (a *Ahead) fetch(p *piece) {
	w := a.Watch()
	err := a.v.Prefetch(p.h, p.off, p.n)
	slow := err == nil && a.Waited(w)
	a.mu.Lock()
	defer a.mu.Unlock()
	p.who.fetched(slow)
	close(a.flying[p])
	delete(a.flying, p)
}

// Wait waits for what is being read.
func (a *Ahead) Wait() { a.ended.Wait() }

// Close waits for what is being read. Nothing is read ahead any more. It may be called again.
func (a *Ahead) Close() {
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	a.ended.Wait()
}
