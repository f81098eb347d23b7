//go:build linux || darwin

package mount

import (
	"bytes"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"tansy/fs"
)

// Open implements fuse.RawFileSystem. If the kernel need not tell of each open file, it does not ask again, nor does it
// tell when one is closed.
func (f *fileSystem) Open(_ <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	if !f.nodes.tracked {
		return fuse.ENOSYS
	}
	out.OpenFlags, out.Fh = f.openFlags, f.locks.opened()
	if f.shared {
		return status(f.openShared(in.NodeId))
	}
	return status(f.nodes.open(in.NodeId))
}

// Release implements fuse.RawFileSystem. If opens are not tracked, it may come for what Tmpfile made.
func (f *fileSystem) Release(_ <-chan struct{}, in *fuse.ReleaseIn) {
	if f.nodes.tracked {
		f.releaseLocks(in)
		f.close(in.NodeId)
	}
}

// contents are what Read returns; the memory is used again when the kernel has them.
type contents struct{ *fs.Data }

func (c contents) Bytes([]byte) ([]byte, fuse.Status) { return bytes.Join(c.Pieces(), nil), fuse.OK }
func (c contents) Slices() ([][]byte, fuse.Status)    { return c.Pieces(), fuse.OK }
func (c contents) Size() int                          { return c.Len() }

// Read implements fuse.RawFileSystem.
func (f *fileSystem) Read(_ <-chan struct{}, in *fuse.ReadIn, _ []byte) (fuse.ReadResult, fuse.Status) {
	h, err := f.nodes.handle(in.NodeId)
	if err != nil {
		return nil, status(err)
	}
	data, _, _, err := f.volume.View(superuser, h, in.Offset, in.Size)
	if err != nil {
		return nil, status(err)
	}
	return contents{data}, fuse.OK
}

// Write implements fuse.RawFileSystem. It is one transaction, if one of the journal's can hold it.
func (f *fileSystem) Write(_ <-chan struct{}, in *fuse.WriteIn, data []byte) (written uint32, _ fuse.Status) {
	h, err := f.nodes.handle(in.NodeId)
	if err != nil {
		return 0, status(err)
	}
	offset, err := f.beforeWrite(h, in)
	if err != nil {
		return 0, status(err)
	}
	written, err = f.put(h, offset, data)
	if err != nil {
		return 0, status(err)
	}
	if f.shared && in.Flags&(unix.O_DSYNC|unix.O_SYNC) != 0 {
		return written, status(f.volume.Sync())
	}
	return written, fuse.OK
}

// put writes data to a file. If not all of it could be written, there is no error: the kernel comes again for the rest,
// and is told.
func (f *fileSystem) put(h fs.Handle, offset uint64, data []byte) (written uint32, err error) {
	room := f.nodes.kept.room()
	for len(data) > 0 {
		n, _, _, err := f.volume.Write(superuser, h, offset+uint64(written), data, f.stability)
		if err == fs.ErrNoSpc && room.more() {
			continue
		}
		if err != nil && written > 0 {
			break
		}
		if err != nil {
			return 0, err
		}
		written, data = written+n, data[n:]
	}
	return written, nil
}

// Flush implements fuse.RawFileSystem: closing a file makes nothing durable. Without locks here the kernel does not ask
// again.
func (f *fileSystem) Flush(_ <-chan struct{}, in *fuse.FlushIn) fuse.Status {
	if f.locks == nil {
		return fuse.ENOSYS
	}
	f.flushLocks(in)
	return fuse.OK
}

// Fsync implements fuse.RawFileSystem: all that was done before, to whatever file, is durable when it returns.
func (f *fileSystem) Fsync(<-chan struct{}, *fuse.FsyncIn) fuse.Status {
	return status(f.volume.Sync())
}

// FsyncDir implements fuse.RawFileSystem.
func (f *fileSystem) FsyncDir(<-chan struct{}, *fuse.FsyncIn) fuse.Status {
	return status(f.volume.Sync())
}
