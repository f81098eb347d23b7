// Package disk is the block device under a volume: blocks of 4096 bytes, written
// in any order, durable only after a barrier.
package disk

// BlockSize is the size of a block in bytes.
const BlockSize = 4096

// Disk is a block device. All methods may be called concurrently.
//
// A write is durable only once a Barrier that was called after the write
// returned has itself returned nil. Until then a crash may keep or lose each
// written block on its own.
type Disk interface {
	// ReadAt fills bufs (each BlockSize bytes) with the blocks from address a on.
	ReadAt(a uint64, bufs [][]byte) error
	// WriteAt writes bufs (each BlockSize bytes) to the blocks from address a on.
	WriteAt(a uint64, bufs [][]byte) error
	// Barrier makes every write that returned before it was called durable.
	Barrier() error
	// Size is the number of blocks.
	Size() uint64
	// Close releases the device. It is not a barrier.
	Close() error
}
