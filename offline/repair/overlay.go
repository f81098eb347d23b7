package repair

import (
	"maps"
	"slices"
	"sync"

	"tansy/disk"
)

// overlay is a device whose writes stay in memory: a repair is tried there first.
type overlay struct {
	disk.Disk
	mu     sync.RWMutex
	blocks map[uint64][]byte
	sorted []uint64 // the keys of blocks, when last asked for; nil: not known
}

func newOverlay(d disk.Disk) *overlay { return &overlay{Disk: d, blocks: map[uint64][]byte{}} }

// ReadAt reads what was written here even if the device cannot read the block.
func (o *overlay) ReadAt(a uint64, bufs [][]byte) error {
	o.mu.RLock()
	defer o.mu.RUnlock()
	for i := 0; i < len(bufs); {
		if b := o.blocks[a+uint64(i)]; b != nil {
			copy(bufs[i], b)
			i++
			continue
		}
		n := i + 1
		for n < len(bufs) && o.blocks[a+uint64(n)] == nil {
			n++
		}
		if err := o.Disk.ReadAt(a+uint64(i), bufs[i:n]); err != nil {
			return err
		}
		i = n
	}
	return nil
}

func (o *overlay) WriteAt(a uint64, bufs [][]byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i, b := range bufs {
		if o.blocks[a+uint64(i)] == nil {
			o.sorted = nil
		}
		o.blocks[a+uint64(i)] = slices.Clone(b)
	}
	return nil
}

// Barrier has nothing to do: no write is to outlast a crash.
func (o *overlay) Barrier() error { return nil }

// NextData implements disk.Holes.
func (o *overlay) NextData(a uint64) (uint64, error) {
	next, err := disk.NextData(o.Disk, a)
	if err != nil {
		return 0, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.sorted == nil {
		o.sorted = slices.Sorted(maps.Keys(o.blocks))
	}
	if i, _ := slices.BinarySearch(o.sorted, a); i < len(o.sorted) {
		next = min(next, o.sorted[i])
	}
	return next, nil
}

// written is the addresses of the blocks that were written, in order.
func (o *overlay) written() []uint64 {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return slices.Sorted(maps.Keys(o.blocks))
}
