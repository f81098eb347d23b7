package disk

import (
	"bytes"
	"os"
	"sync"
)

// Mem is a Disk in memory, for tests and benchmarks. Blocks never written read
// as zeros and take no space. Its barrier does nothing.
type Mem struct {
	size   uint64 // blocks
	mu     sync.RWMutex
	blocks map[uint64]*[BlockSize]byte
	closed bool
}

// NewMem returns a device of size bytes, all zero. A tail that is shorter than a block is ignored, as OpenFile does it.
func NewMem(size uint64) *Mem {
	return &Mem{size: size / BlockSize, blocks: map[uint64]*[BlockSize]byte{}}
}

// ReadAt implements Disk.
func (d *Mem) ReadAt(a uint64, bufs [][]byte) error {
	if err := CheckTransfer("read", "", d.size, a, bufs); err != nil {
		return err
	}
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.closed {
		return &Error{Op: "read", Block: a, Err: os.ErrClosed}
	}
	for i, b := range bufs {
		if have := d.blocks[a+uint64(i)]; have != nil {
			copy(b, have[:])
		} else {
			clear(b)
		}
	}
	return nil
}

// WriteAt implements Disk.
func (d *Mem) WriteAt(a uint64, bufs [][]byte) error {
	if err := CheckTransfer("write", "", d.size, a, bufs); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return &Error{Op: "write", Block: a, Err: os.ErrClosed}
	}
	for i, b := range bufs {
		have := d.blocks[a+uint64(i)]
		if have == nil {
			if isZero(b) {
				continue
			}
			have = new([BlockSize]byte)
			d.blocks[a+uint64(i)] = have
		}
		copy(have[:], b)
	}
	return nil
}

// Barrier implements Disk.
func (d *Mem) Barrier() error {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.closed {
		return &Error{Op: "barrier", Err: os.ErrClosed}
	}
	return nil
}

// NextData implements Holes. It looks at all blocks there are.
func (d *Mem) NextData(a uint64) (uint64, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.closed {
		return 0, &Error{Op: "read", Block: a, Err: os.ErrClosed}
	}
	if d.blocks[a] != nil {
		return a, nil
	}
	next := d.size
	for b := range d.blocks {
		if a <= b && b < next {
			next = b
		}
	}
	return next, nil
}

// Size implements Disk.
func (d *Mem) Size() uint64 { return d.size }

// Close implements Disk.
func (d *Mem) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return &Error{Op: "close", Err: os.ErrClosed}
	}
	d.closed = true
	return nil
}

var zeros [BlockSize]byte

func isZero(b []byte) bool { return bytes.Equal(b, zeros[:]) }
