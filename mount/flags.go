//go:build linux || darwin

package mount

import (
	"bytes"
	"encoding/binary"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"tansy/fs"
)

// flagger is what a volume has for flags of files (fs.FS says what).
type flagger interface {
	Flags(h fs.Handle) (uint32, error)
	SetFlags(c *fs.Cred, h fs.Handle, flags uint32) error
}

// The requests of ioctl(2) that Linux hands on for flags: the older two are of 32 bits in fact, though their numbers
// say that they are of a C long; the newer two of struct fsxattr, whose first 32 bits are the flags.
const (
	getFlags  = 0x80086601 // FS_IOC_GETFLAGS
	setFlags  = 0x40086602 // FS_IOC_SETFLAGS
	getFlags4 = 0x80046601 // FS_IOC32_GETFLAGS
	setFlags4 = 0x40046602 // FS_IOC32_SETFLAGS
	getXflags = 0x801c581f // FS_IOC_FSGETXATTR
	setXflags = 0x401c5820 // FS_IOC_FSSETXATTR

	sizeXflags = 28 // bytes of struct fsxattr
)

// xflags are the flags of struct fsxattr, and which of a file's each stands for.
var xflags = []struct{ x, flag uint32 }{
	{0x08, fs.FlagImmutable}, {0x10, fs.FlagAppendOnly}, {0x40, fs.FlagNoAtime}, {0x80, fs.FlagNoDump},
}

// Ioctl implements fuse.RawFileSystem. The kernel has asked whether the caller may change flags, if it is one that
// knows them (5.13); the volume asks by the caller's number.
func (f *fileSystem) Ioctl(
	_ <-chan struct{}, in *fuse.IoctlIn, data []byte, _ *fuse.IoctlOut, out []byte,
) fuse.Status {
	var now uint32
	switch in.Cmd {
	case getFlags, getFlags4:
		if len(out) < 4 {
			return fuse.EINVAL
		}
		clear(out)
		return f.flags(in.NodeId, func(flags uint32) { binary.NativeEndian.PutUint32(out, flags) })
	case getXflags:
		if len(out) < sizeXflags {
			return fuse.EINVAL
		}
		clear(out)
		return f.flags(in.NodeId, func(flags uint32) { binary.NativeEndian.PutUint32(out, toXflags(flags)) })
	case setFlags, setFlags4:
		if len(data) < 4 {
			return fuse.EINVAL
		}
		if now = binary.NativeEndian.Uint32(data); now&^fs.AllFlags != 0 {
			return fuse.Status(unix.EOPNOTSUPP)
		}
	case setXflags:
		if len(data) < sizeXflags {
			return fuse.EINVAL
		}
		var known bool
		if now, known = fromXflags(data); !known {
			return fuse.Status(unix.EOPNOTSUPP)
		}
	default:
		return fuse.Status(unix.ENOTTY)
	}
	h, err := f.nodes.handle(in.NodeId)
	if err != nil {
		return status(err)
	}
	err = f.volume.SetFlags(&fs.Cred{UID: in.Uid, GID: in.Gid}, h, now)
	if err == nil {
		f.forgetAttrs(in.NodeId) // its ctime is another
	}
	return status(err)
}

// flags has put write the flags of a file.
func (f *fileSystem) flags(id uint64, put func(flags uint32)) fuse.Status {
	h, err := f.nodes.handle(id)
	if err != nil {
		return status(err)
	}
	flags, err := f.volume.Flags(h)
	if err == nil {
		put(flags)
	}
	return status(err)
}

func toXflags(flags uint32) (x uint32) {
	for _, f := range xflags {
		if flags&f.flag != 0 {
			x |= f.x
		}
	}
	return x
}

// fromXflags are the flags that a struct fsxattr has, if it sets nothing else: what there is for extents, projects,
// and the like, is not here.
func fromXflags(data []byte) (flags uint32, known bool) {
	x := binary.NativeEndian.Uint32(data)
	for _, f := range xflags {
		if x&f.x != 0 {
			flags |= f.flag
			x &^= f.x
		}
	}
	rest := make([]byte, sizeXflags-4)
	return flags, x == 0 && bytes.Equal(data[4:sizeXflags], rest)
}
