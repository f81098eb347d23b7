package disk

import (
	"os"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// direct is a second open file description of a File, for writes that go past the page cache: nothing is copied, a
// stream does not fill memory, and less is left for the barrier to do. Only long writes do, and those that a barrier
// follows: other short ones are better off in the cache, which collects them.
type direct struct {
	f       *os.File
	conn    syscall.RawConn
	refused atomic.Bool // the file system did not take such a write
	a, end  uint64      // a barrier follows what is written here
}

// BarrierFollows implements BarrierFollower.
func (d *File) BarrierFollows(a, end uint64) {
	if d.direct != nil {
		d.direct.a, d.direct.end = a, end
	}
}

// directMin is the least length of a direct write in blocks.
const directMin = 16

// newDirect opens f again for direct writes. It returns nil if its file system is not
// known to keep direct and cached access to one file coherent.
func newDirect(f *os.File) *direct {
	again := openDirect(f)
	if again == nil {
		return nil
	}
	conn, err := again.SyscallConn()
	if err != nil {
		again.Close()
		return nil
	}
	return &direct{f: again, conn: conn}
}

// takes tells whether bufs, which are written from block a on, are to go past the cache: the kernel wants them to be
// whole pages of memory.
func (d *direct) takes(a uint64, bufs [][]byte) bool {
	if d == nil || len(bufs) < directMin && (a < d.a || a >= d.end) || d.refused.Load() {
		return false
	}
	for _, b := range bufs {
		if uintptr(unsafe.Pointer(unsafe.SliceData(b)))%BlockSize != 0 {
			return false
		}
	}
	return true
}

// writeDirect writes bufs past the cache. ok = false: they have to be written through it.
func (d *File) writeDirect(a uint64, bufs [][]byte) (ok bool, err error) {
	if !d.direct.takes(a, bufs) {
		return false, nil
	}
	// The descriptor with the lock stays open meanwhile: were it closed, another server
	// could recover the volume, and then this write would land in it.
	gone := withFD(d.conn, func(int) error {
		err = d.transfer("write", d.direct.conn, d.pwritev, a, bufs)
		return nil
	})
	if gone != nil {
		return true, &Error{Op: "write", Path: d.path, Block: a, Err: gone}
	}
	if e, is := err.(*Error); is && e.Err == unix.EINVAL {
		d.direct.refused.Store(true)
		return false, nil
	}
	return true, err
}

func (d *direct) close() {
	if d != nil {
		d.f.Close()
	}
}
