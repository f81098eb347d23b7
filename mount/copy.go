//go:build linux

package mount

import (
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"

	"tansy/fs"
)

// copyMax is how much of a file one request copies, in bytes: a program that is to end waits for no more. It comes
// again for the rest.
const copyMax = 16 * maxIO

// CopyFileRange implements fuse.RawFileSystem (copy_file_range(2)): contents go from one file of the volume to another
// one, or to another place of the same, and not through the kernel. Each maxIO bytes are written as by Write. The
// kernel has sent what it had of the first file, and forgets what it has of the second. It asks for nothing behind the
// end of the first: a copy within a file may move that.
func (f *fileSystem) CopyFileRange(cancel <-chan struct{}, in *fuse.CopyFileRangeIn) (copied uint32, _ fuse.Status) {
	from, err := f.nodes.handle(in.NodeId)
	if err != nil {
		return 0, status(err)
	}
	to, err := f.nodes.handle(in.NodeIdOut)
	if err != nil {
		return 0, status(err)
	}
	if in.Uid != 0 {
		if err := f.killPrivileges(in.NodeIdOut, to, in.Caller); err != nil {
			return 0, status(err)
		}
	}
	defer f.forgetAttrs(in.NodeIdOut)
	var buffer []byte
	select {
	case <-cancel:
		return 0, fuse.Status(syscall.EINTR)
	case buffer = <-f.copying:
		defer func() { f.copying <- buffer }()
	}
	if buffer == nil {
		buffer = make([]byte, maxIO)
	}
	left := min(in.Len, copyMax)
	for left > 0 {
		select {
		case <-cancel:
			return copied, interrupted(copied)
		default:
		}
		want := min(left, maxIO)
		piece, err := f.take(from, in.OffIn+uint64(copied), buffer[:want])
		var n uint32
		if err == nil {
			n, err = f.put(to, in.OffOut+uint64(copied), piece)
		}
		if err != nil && copied == 0 {
			return 0, status(err)
		}
		copied += n
		left -= uint64(n)
		if err != nil || uint64(n) < want { // told when the program comes again; or the end
			break
		}
	}
	return copied, fuse.OK
}

// interrupted is the status of a call that a signal ends when it has done so much.
func interrupted(done uint32) fuse.Status {
	if done > 0 {
		return fuse.OK
	}
	return fuse.Status(syscall.EINTR)
}

// take reads what a file has at an offset, as much of it as b has room for, into b.
func (f *fileSystem) take(h fs.Handle, offset uint64, b []byte) ([]byte, error) {
	data, _, _, err := f.volume.View(superuser, h, offset, uint32(len(b)))
	if err != nil {
		return nil, err
	}
	defer data.Done()
	n := 0
	for _, p := range data.Pieces() {
		n += copy(b[n:], p)
	}
	return b[:n], nil
}
