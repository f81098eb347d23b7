package disk

import (
	"os"
	"slices"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// direct is a second open file description of a File, for writes that go past the page cache: nothing is copied, a
// stream does not fill memory, and less is left for the barrier to do. Of an image only long writes do, and those that
// a barrier follows: other short ones are better off in the cache, which collects them. Of a device either none does,
// or all do: what is written past the cache and what lies in it must not meet in one piece of the cache, which may have
// several blocks.
type direct struct {
	all     bool
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
func newDirect(f *os.File) *direct { return reopened(openDirect(f)) }

// reopened makes it of a second open file, which may be nil.
func reopened(again *os.File) *direct {
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

// PastCache implements PastCacher, for a device. If the device does not take such writes after all, they go through the
// cache as before.
func (d *File) PastCache() bool {
	if !d.device || d.readOnly || d.direct != nil {
		return d.direct != nil && d.direct.all
	}
	d.direct = reopened(directDevice(d.f))
	if d.direct != nil {
		d.direct.all = true
	}
	return d.direct != nil
}

// takes tells whether bufs, which are written from block a on, are to go past the cache.
func (d *direct) takes(a uint64, bufs [][]byte) bool {
	switch {
	case d == nil || d.refused.Load():
		return false
	case d.all:
		return true
	case len(bufs) < directMin && (a < d.a || a >= d.end):
		return false
	}
	return !slices.ContainsFunc(bufs, astray)
}

// astray tells whether b is no whole page of memory, as the kernel wants it.
func astray(b []byte) bool { return uintptr(unsafe.Pointer(unsafe.SliceData(b)))%BlockSize != 0 }

// straightened returns bufs with copies, which are whole pages, in place of those that are none.
func straightened(bufs [][]byte) [][]byte {
	if !slices.ContainsFunc(bufs, astray) {
		return bufs
	}
	bufs = slices.Clone(bufs) // the caller's is not ours to change
	for i, b := range bufs {
		if !astray(b) {
			continue
		}
		room := make([]byte, 2*BlockSize)
		from := -uintptr(unsafe.Pointer(unsafe.SliceData(room))) % BlockSize
		bufs[i] = room[from:][:BlockSize]
		copy(bufs[i], b)
	}
	return bufs
}

// writeDirect writes bufs past the cache. ok = false: they have to be written through it.
func (d *File) writeDirect(a uint64, bufs [][]byte) (ok bool, err error) {
	if !d.direct.takes(a, bufs) {
		return false, nil
	}
	// The descriptor with the lock stays open meanwhile: were it closed, another server
	// could recover the volume, and then this write would land in it.
	gone := withFD(d.conn, func(int) error {
		err = d.transfer("write", d.direct.conn, d.pwritev, a, straightened(bufs))
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
