//go:build linux

package mount

// macFUSE asks for none of this, or in another way.

import (
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"tansy/fs"
)

// Lseek implements fuse.RawFileSystem: SEEK_DATA and SEEK_HOLE, the rest the kernel does.
func (f *fileSystem) Lseek(_ <-chan struct{}, in *fuse.LseekIn, out *fuse.LseekOut) fuse.Status {
	h, err := f.nodes.handle(in.NodeId)
	if err != nil {
		return status(err)
	}
	at, err := f.volume.Seek(superuser, h, in.Offset, in.Whence == unix.SEEK_HOLE)
	if err == fs.ErrNoEnt {
		return fuse.Status(unix.ENXIO)
	}
	out.Offset = at
	return status(err)
}

// Fallocate implements fuse.RawFileSystem. There is no room behind the end of a file, so none can be set aside there
// without making it longer.
func (f *fileSystem) Fallocate(_ <-chan struct{}, in *fuse.FallocateIn) fuse.Status {
	h, err := f.nodes.handle(in.NodeId)
	if err != nil {
		return status(err)
	}
	defer f.forgetAttrs(in.NodeId)
	off, n := in.Offset, in.Length
	keep := in.Mode&unix.FALLOC_FL_KEEP_SIZE != 0
	if in.Uid != 0 {
		if err := f.killPrivileges(in.NodeId, h, in.Caller); err != nil {
			return status(err)
		}
	}
	behind := false // the end, some of it
	if keep {
		a, err := f.volume.Getattr(h)
		if err != nil {
			return status(err)
		}
		behind = off > a.Size || n > a.Size-off
	}
	switch in.Mode &^ unix.FALLOC_FL_KEEP_SIZE {
	case unix.FALLOC_FL_PUNCH_HOLE:
		return status(f.volume.PunchHole(superuser, h, off, n))
	case unix.FALLOC_FL_ZERO_RANGE:
		if !behind {
			return status(f.withRoom(func() error { return f.volume.ZeroRange(superuser, h, off, n) }))
		}
	case 0:
		if !behind {
			return status(f.withRoom(func() error { return f.volume.Allocate(superuser, h, off, n) }))
		}
	}
	return fuse.Status(unix.EOPNOTSUPP)
}
