package crash

import (
	"sync"

	"tansy/disk"
	"tansy/journal"
)

// A log is full when its units are in use and its header does not say yet that groups are home. The header moves soon
// after half of it is used, so that what a crash leaves of a full log is seldom tried. So now and then its header is
// held back.

// brake is a device on which a log's header is not written until the log is full, or somebody lets go. Nobody can wait
// for room before, so it is always let go.
type brake struct {
	disk.Disk
	log   logPlace
	units uint64

	mu   sync.Mutex
	used map[uint64]bool // units that were written since the brake holds
	free chan struct{}   // closed when it holds no more; nil: it does not hold yet
	once sync.Once
}

// hold begins to hold the header back. The log is empty.
func (b *brake) hold(units uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.units, b.used, b.free = units, map[uint64]bool{}, make(chan struct{})
}

// left is how many units were not written yet.
func (b *brake) left() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.units - uint64(len(b.used))
}

// letGo lets the header be written.
func (b *brake) letGo() { b.once.Do(func() { close(b.free) }) }

// note notes that blocks from a on are written, and returns what to wait for before.
func (b *brake) note(a uint64, n int) <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.free == nil {
		return nil
	}
	units := b.log.first + 1
	for x := a; x < a+uint64(n); x++ {
		if u := (x - units) / journal.UnitBlocks; x >= units && u < b.units {
			b.used[u] = true
		}
	}
	if uint64(len(b.used)) == b.units {
		b.letGo()
	}
	if a == b.log.first || a == b.log.behind-1 {
		return b.free
	}
	return nil
}

// WriteAt implements disk.Disk.
func (b *brake) WriteAt(a uint64, bufs [][]byte) error {
	if free := b.note(a, len(bufs)); free != nil {
		<-free
	}
	return b.Disk.WriteAt(a, bufs)
}
