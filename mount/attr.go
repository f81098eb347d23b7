//go:build linux || darwin

package mount

import (
	"errors"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"tansy/fs"
)

// How long the kernel may keep what it was told, if all changes come through it: for ever, but for two things. The
// number of a file's blocks goes down later than the size does, if much of the file is cut off. And who asked for the
// attributes of a directory while a name in it was changed may bring the kernel the answer of before, after the change.
const (
	entryTimeout = time.Hour
	attrTimeout  = time.Hour
	dirTimeout   = time.Second // of attributes of directories
	cutTimeout   = time.Second // of attributes while blocks may be given back
)

const (
	cutAtOnce = 512 << 10   // bytes; the blocks of as much are given back with the cut
	givesBack = time.Minute // for how long after a cut, or a change of their number, blocks may be given back
)

// keepingAttrs is how long the kernel may keep the attributes a of a file.
func (f *fileSystem) keepingAttrs(id uint64, a *fs.Attr) (d time.Duration) {
	d = f.keepAttrs
	if a.Type == fs.Directory {
		return min(d, dirTimeout)
	}
	f.nodes.with(id, func(x *node) {
		switch {
		case x.cut.IsZero():
		case x.used != a.Used:
			x.used, x.cut = a.Used, time.Now()
			d = min(d, cutTimeout)
		case time.Since(x.cut) < givesBack:
			d = min(d, cutTimeout)
		default:
			x.cut = time.Time{}
		}
	})
	return d
}

// forgetAttrs has the kernel ask for attributes anew, if it keeps any, and take no answer to what it asked before. It
// is called when a file was changed by a call after which the kernel takes older answers: one that was under way
// meanwhile may be that of before, and come after that of the call. Writing and setting attributes are no such calls.
func (f *fileSystem) forgetAttrs(id uint64) {
	if !f.shared {
		f.forget(id, -1, 0)
	}
}

// forgetAttrsOf does so for the file that has a name now.
func (f *fileSystem) forgetAttrsOf(dir fs.Handle, name []byte) {
	if f.shared {
		return
	}
	if n, err := f.volume.Lookup(superuser, dir, name); err == nil {
		f.forgetAttrs(nodeID(n.Handle))
	}
}

// errnos are the statuses that are not the errno of the same number.
var errnos = map[fs.Errno]syscall.Errno{
	fs.ErrNotEmpty: syscall.ENOTEMPTY, fs.ErrNameTooLong: syscall.ENAMETOOLONG,
	fs.ErrStale: syscall.ESTALE, fs.ErrBadHandle: syscall.ESTALE,
	fs.ErrNotSync: syscall.EIO, fs.ErrServerFault: syscall.EIO,
	fs.ErrBadCookie: syscall.EINVAL, fs.ErrTooSmall: syscall.EINVAL, fs.ErrBadType: syscall.EINVAL,
	fs.ErrNotSupp: syscall.EOPNOTSUPP,
}

// status is what the kernel is told of an error.
func status(err error) fuse.Status {
	var e fs.Errno
	switch {
	case err == nil:
		return fuse.OK
	case !errors.As(err, &e):
		return fuse.EIO
	case errnos[e] != 0:
		return fuse.Status(errnos[e])
	}
	return fuse.Status(e)
}

var typeBits = map[fs.Type]uint32{
	fs.Regular: unix.S_IFREG, fs.Directory: unix.S_IFDIR, fs.Block: unix.S_IFBLK, fs.Char: unix.S_IFCHR,
	fs.Symlink: unix.S_IFLNK, fs.Socket: unix.S_IFSOCK, fs.FIFO: unix.S_IFIFO,
}

// attr fills in the attributes of a file as programs see them: that it is kept is no link to them.
//
// The kernel's seconds are signed. A time before 1970 that a volume has, of old, is a large number, and goes to the
// kernel as that.
func (f *fileSystem) attr(a *fs.Attr, out *fuse.Attr) {
	nlink := a.Nlink
	if _, kept := f.nodes.isOpen(nodeID(fs.Handle{Ino: a.Ino, Gen: a.Gen})); kept && nlink > 0 {
		nlink--
	}
	*out = fuse.Attr{
		Ino: a.Ino, Size: a.Size, Blocks: a.Used / 512, Blksize: fs.BlockSize,
		Atime: a.Atime.Sec, Mtime: a.Mtime.Sec, Ctime: a.Ctime.Sec,
		Atimensec: a.Atime.Nsec, Mtimensec: a.Mtime.Nsec, Ctimensec: a.Ctime.Nsec,
		Mode: typeBits[a.Type] | a.Mode, Nlink: nlink, Owner: fuse.Owner{Uid: a.UID, Gid: a.GID},
		Rdev: uint32(unix.Mkdev(a.Major, a.Minor)),
	}
}

// entry tells the kernel of a file.
func (f *fileSystem) entry(h fs.Handle, a *fs.Attr, out *fuse.EntryOut) {
	f.nodes.learn(h)
	out.NodeId, out.Generation = nodeID(h), h.Gen
	out.SetEntryTimeout(f.keepNames)
	out.SetAttrTimeout(f.keepingAttrs(out.NodeId, a))
	f.attr(a, &out.Attr)
}

// GetAttr implements fuse.RawFileSystem.
func (f *fileSystem) GetAttr(_ <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	h, err := f.nodes.handle(in.NodeId)
	if err != nil {
		return status(err)
	}
	a, err := f.volume.Getattr(h)
	if err == fs.ErrStale {
		if gone := f.nodes.gone(in.NodeId); gone != nil {
			a, err = *gone, nil
		}
	}
	if err != nil {
		return status(err)
	}
	f.attr(&a, &out.Attr)
	out.SetTimeout(f.keepingAttrs(in.NodeId, &a))
	return fuse.OK
}

// SetAttr implements fuse.RawFileSystem. The kernel has looked whether the caller may do this.
func (f *fileSystem) SetAttr(_ <-chan struct{}, in *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	h, err := f.nodes.handle(in.NodeId)
	if err != nil {
		return status(err)
	}
	var s fs.SetAttr
	if mode, ok := in.GetMode(); ok {
		s.Mode = &mode
	}
	if uid, ok := in.GetUID(); ok {
		s.UID = &uid
	}
	if gid, ok := in.GetGID(); ok {
		s.GID = &gid
	}
	if size, ok := in.GetSize(); ok {
		s.Size = &size
	}
	if in.Valid&fuse.FATTR_KILL_SUIDGID != 0 {
		if err := f.killPrivileges(in.NodeId, h, in.Caller); err != nil {
			return status(err)
		}
	}
	s.AtimeHow, s.Atime = setTime(in.Valid, fuse.FATTR_ATIME, fuse.FATTR_ATIME_NOW, in.Atime, in.Atimensec)
	s.MtimeHow, s.Mtime = setTime(in.Valid, fuse.FATTR_MTIME, fuse.FATTR_MTIME_NOW, in.Mtime, in.Mtimensec)
	if err := f.mayTouch(h, &s); err != nil {
		return status(err)
	}
	w, err := f.volume.Setattr(superuser, h, &s, nil)
	if err != nil {
		return status(err)
	}
	if s.Size != nil && w.Before != nil && w.Before.Size > *s.Size+cutAtOnce {
		f.nodes.with(in.NodeId, func(x *node) { x.cut = time.Now() })
	}
	f.attr(w.After, &out.Attr)
	out.SetTimeout(f.keepingAttrs(in.NodeId, w.After))
	return fuse.OK
}

// mayTouch refuses to make one time alone the present, and leave the other, if the file is append-only: utimensat(2)
// says so, and ext4 does it. The volume goes by NFS, where that is a touch, and is allowed.
func (f *fileSystem) mayTouch(h fs.Handle, s *fs.SetAttr) error {
	if (s.AtimeHow == fs.ServerTime) == (s.MtimeHow == fs.ServerTime) {
		return nil
	}
	flags, err := f.volume.Flags(h)
	if err == nil && flags&fs.FlagAppendOnly != 0 {
		err = fs.ErrPerm
	}
	return err
}

// setTime is how a time is set, of which valid says whether it is, and whether it is the present. Seconds are signed.
// NFS has no time before 1970, so the first that it has is set there, as the kernel does for file systems that begin
// with 1970.
func setTime(valid, set, now uint32, sec uint64, nsec uint32) (fs.TimeHow, fs.Time) {
	switch {
	case valid&set == 0:
		return fs.DontChange, fs.Time{}
	case valid&now != 0:
		return fs.ServerTime, fs.Time{}
	}
	if int64(sec) < 0 {
		return fs.ClientTime, fs.Time{}
	}
	return fs.ClientTime, fs.Time{Sec: sec, Nsec: nsec}
}

// StatFs implements fuse.RawFileSystem.
func (f *fileSystem) StatFs(_ <-chan struct{}, _ *fuse.InHeader, out *fuse.StatfsOut) fuse.Status {
	s, err := f.volume.Space()
	if err != nil {
		return status(err)
	}
	*out = fuse.StatfsOut{
		Bsize: fs.BlockSize, Frsize: fs.BlockSize, NameLen: fs.MaxName,
		Blocks: s.TotalBytes / fs.BlockSize, Bfree: s.FreeBytes / fs.BlockSize, Bavail: s.FreeBytes / fs.BlockSize,
		Files: s.TotalFiles, Ffree: s.FreeFiles,
	}
	return fuse.OK
}
