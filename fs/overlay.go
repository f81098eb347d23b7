package fs

import (
	"sync"

	"tansy/disk"
)

// overlay is a device whose writes stay in memory: a volume that must not be
// changed is recovered there. It holds the blocks of the log at most.
type overlay struct {
	disk.Disk
	mu     sync.RWMutex
	blocks map[uint64][]byte
}

func newOverlay(d disk.Disk) *overlay { return &overlay{Disk: d, blocks: map[uint64][]byte{}} }

func (o *overlay) ReadAt(a uint64, bufs [][]byte) error {
	if err := o.Disk.ReadAt(a, bufs); err != nil {
		return err
	}
	o.mu.RLock()
	defer o.mu.RUnlock()
	for i, b := range bufs {
		if p := o.blocks[a+uint64(i)]; p != nil {
			copy(b, p)
		}
	}
	return nil
}

func (o *overlay) WriteAt(a uint64, bufs [][]byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i, b := range bufs {
		o.blocks[a+uint64(i)] = append([]byte(nil), b...)
	}
	return nil
}

// Barrier has nothing to do: no write is to outlast a crash, and what is on the device has
// been durable since that was opened (disk.OpenFile).
func (o *overlay) Barrier() error { return nil }

// NextData implements disk.Holes.
func (o *overlay) NextData(a uint64) (uint64, error) {
	next, err := disk.NextData(o.Disk, a)
	if err != nil {
		return 0, err
	}
	o.mu.RLock()
	defer o.mu.RUnlock()
	for b := range o.blocks {
		if b >= a {
			next = min(next, b)
		}
	}
	return next, nil
}

// Release implements disk.Releaser. What was written here stays.
func (o *overlay) Release(from, to uint64) { disk.Release(o.Disk, from, to) }
