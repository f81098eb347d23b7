package fs

import (
	"sync"
	"sync/atomic"
	"time"

	"tansy/internal/gen/fs/procedures/fileops"
	"tansy/internal/lockorder"
	"tansy/journal"
)

// A device may take long for a read: one over a network does, or a disk that turns. A client that reads a file in order
// has a few calls under way, each of which waits as long. So once calls were seen to wait, what comes next is read into
// the cache before it is asked for. Where the device is quick this would only be more work, and nothing is noted.
type ahead struct {
	v     *FS
	slow  time.Duration // aheadSlow, but in tests
	some  atomic.Bool   // somebody waits: all READs are noted
	ended sync.WaitGroup

	mu      lockorder.Mutex[lockorder.Readers]
	readers readers
	flying  map[*piece]chan struct{} // what is being read; closed when it is there
	closed  bool
}

const (
	aheadSlow   = journal.SlowRead // a READ that takes as long has waited for the device, if that took as long for a read, too
	aheadPlaces = 48               // pieces that are read at a time
)

func (v *FS) newAhead(cacheBytes uint64) *ahead {
	if cacheBytes == 0 {
		cacheBytes = journal.DefaultCacheBytes
	}
	return &ahead{v: v, slow: aheadSlow, readers: readers{limit: cacheBytes / 4}, flying: map[*piece]chan struct{}{}}
}

// A watch is what was known of the device when it was begun.
type watch struct {
	began time.Time
	reads int64
	took  time.Duration
}

func (a *ahead) watch() watch {
	w := watch{began: time.Now()}
	w.reads, w.took = a.v.sys.Reading()
	return w
}

// waited tells whether the device took long since w was begun. That it took long to get on may have been for the
// processors.
func (a *ahead) waited(w watch) bool {
	if time.Since(w.began) < a.slow {
		return false
	}
	reads, took := a.v.sys.Reading()
	n := time.Duration(reads - w.reads)
	return n > 0 && (took-w.took)/n >= a.slow
}

// read notes a READ of n bytes of a file of size bytes, which was slow or not, and has what comes next read.
func (a *ahead) read(h Handle, off, n, size uint64, slow bool) {
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

// await waits for what is being read of the n bytes at off. To read it again would take as long, and the device twice.
func (a *ahead) await(h Handle, off, n uint64) {
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
func (a *ahead) find(h Handle, off, n uint64) chan struct{} {
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
func (a *ahead) fetch(p *piece) {
	w := a.watch()
	err := a.v.prefetch(*p)
	slow := err == nil && a.waited(w)
	a.mu.Lock()
	defer a.mu.Unlock()
	p.who.fetched(slow)
	close(a.flying[p])
	delete(a.flying, p)
}

// prefetch has p in the cache afterwards, if it is not too much.
func (v *FS) prefetch(p piece) error {
	return v.background(procRead, func(t *txn) uint32 {
		return fileops.Prefetch(t, v.dirs, p.h.Ino, p.h.Gen, p.off, p.n)
	})
}

// close waits for what is being read.
func (a *ahead) close() {
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	a.ended.Wait()
}
