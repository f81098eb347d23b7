// Package disk is the block device under a volume: blocks of 4096 bytes, written
// in any order, durable only after a barrier.
//
// One interface, Disk, and what stands behind it:
//
//	File   a regular file or raw block device, locked against a second server
//	Mem    memory, sparse
//	Sim    memory that can crash: every state a power failure may leave
//	Fault  wraps a Disk: errors, delays, torn writes, flipped bits
//	Stats  wraps a Disk: counts operations and blocks
//	Prefix the first blocks of a Disk that is larger than its volume
//	Pieced a layout of which runs of blocks lie on a Disk, and the others not yet
//	Moments wraps a Disk: what it held at some moments, each a Disk, while it changes
//
// In package nbd there is one at the other end of a connection, in package rbd one on an image of Ceph.
//
// A Disk may know which of its blocks were never written: see Holes. It may take blocks for zeros without
// storing them: see Discarder.
//
// The tests that every Disk must pass are in package disktest.
package disk

// BlockSize is the size of a block in bytes.
const BlockSize = 4096

// SectorSize is the unit in bytes that a device writes as a whole. A crash may
// leave a block with some sectors new and others old.
const SectorSize = 512

// Disk is a block device. All methods may be called concurrently; the outcome
// of concurrent reads and writes of the same block is unspecified.
//
// A write is durable only once a Barrier that was called after the write
// returned has itself returned nil. Until then a crash may keep or lose each
// written block on its own.
//
// Errors are of type *Error, and name the operation and the block.
type Disk interface {
	// ReadAt fills bufs (each BlockSize bytes) with the blocks from address a on.
	// After an error the contents of bufs are undefined.
	ReadAt(a uint64, bufs [][]byte) error
	// WriteAt writes bufs (each BlockSize bytes) to the blocks from address a on.
	// It does not keep bufs. After an error each of the blocks may hold the old
	// contents, the new, or a mixture. A device may notice only later that a write which
	// returned nil has failed; then all later writes and barriers fail.
	WriteAt(a uint64, bufs [][]byte) error
	// Barrier makes every write that returned before it was called durable.
	// After an error none of them may be relied on, even if a later Barrier
	// returns nil.
	Barrier() error
	// Size is the number of blocks. It never changes, but by Remeasure of a Remeasurer.
	Size() uint64
	// Close releases the device. It is not a barrier. Later operations fail with
	// os.ErrClosed.
	Close() error
}

// within returns d, or the Disk that d is wrapped around (Unwrap), as a T if it is one.
func within[T any](d Disk) (x T, ok bool) {
	for {
		if x, ok = d.(T); ok {
			return x, true
		}
		w, wraps := d.(interface{ Unwrap() Disk })
		if !wraps {
			return x, false
		}
		d = w.Unwrap()
	}
}

// A Forgetter is a Disk with a cache below it that does not see all writes: others may write to the same medium by
// another way.
type Forgetter interface {
	// Forget drops what the cache has of n blocks from address a on, as far as they
	// are durable: the next read asks the medium.
	Forget(a, n uint64)
}

// Forget calls Forget of d, or of the Disk that d wraps (Unwrap), if that is a Forgetter.
func Forget(d Disk, a, n uint64) {
	if x, ok := within[Forgetter](d); ok {
		x.Forget(a, n)
	}
}

// A Pusher is a Disk with a cache below it that collects what is written.
type Pusher interface {
	// Push begins to write to the medium what the cache has of n blocks from address a on;
	// wait: it returns when what was begun there before is written. It promises nothing: that
	// a Barrier does, with less to do then. If it fails, so do all later barriers.
	Push(a, n uint64, wait bool)
}

// A BarrierFollower is a Disk that can be told which blocks are written right before a barrier, as those of a log are.
// It does not collect writes to them.
type BarrierFollower interface {
	// BarrierFollows names the blocks [a, end). It has to be called before the first write.
	BarrierFollows(a, end uint64)
}

// A PastCacher is a Disk with a cache below it that writes need not go through.
type PastCacher interface {
	// PastCache has all writes from now on go past the cache to the medium, and tells whether they do. Then a barrier
	// has nothing to write that others have written before it. It pays where a write takes no longer than a copy to the
	// cache. Nothing else may be under way.
	PastCache() bool
}

// PastCache calls PastCache of d, or of the Disk that d wraps (Unwrap), if that is a PastCacher.
func PastCache(d Disk) bool {
	x, ok := within[PastCacher](d)
	return ok && x.PastCache()
}

// BarrierFollows calls BarrierFollows of d, or of the Disk that d wraps (Unwrap), if that is a BarrierFollower.
func BarrierFollows(d Disk, a, end uint64) {
	if x, ok := within[BarrierFollower](d); ok {
		x.BarrierFollows(a, end)
	}
}

// Push calls Push of d, or of the Disk that d wraps (Unwrap), if that is a Pusher.
func Push(d Disk, a, n uint64, wait bool) {
	if x, ok := within[Pusher](d); ok {
		x.Push(a, n, wait)
	}
}
