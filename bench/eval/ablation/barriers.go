package ablation

import (
	"sync"

	"tansy/disk"
)

// twice is a device each of whose barriers is followed by one more write and one more barrier, as where a record of
// commit may only be written when all that it tells of is durable. The write is the last one again, of which the device
// has the same contents already.
type twice struct {
	disk.Disk
	mu   sync.Mutex // so that nothing newer is overwritten
	at   uint64
	last []byte
}

// Unwrap is the device itself.
func (t *twice) Unwrap() disk.Disk { return t.Disk }

// WriteAt keeps the last block.
func (t *twice) WriteAt(a uint64, bufs [][]byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := len(bufs); n > 0 {
		t.at, t.last = a+uint64(n-1), append(t.last[:0], bufs[n-1]...)
	}
	return t.Disk.WriteAt(a, bufs)
}

// Barrier is two of them.
func (t *twice) Barrier() error {
	if err := t.Disk.Barrier(); err != nil {
		return err
	}
	if err := t.again(); err != nil {
		return err
	}
	return t.Disk.Barrier()
}

func (t *twice) again() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last == nil {
		return nil
	}
	return t.Disk.WriteAt(t.at, [][]byte{t.last})
}
