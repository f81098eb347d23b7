//go:build linux || darwin

package mount

import (
	"bytes"
	"strings"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"tansy/fs"
)

// xattrer is what a volume has for extended attributes (fs.FS says what).
type xattrer interface {
	GetXattr(h fs.Handle, name []byte) ([]byte, error)
	ListXattr(h fs.Handle) ([]byte, error)
	SetXattr(h fs.Handle, name, value []byte, create, replace bool) error
	RemoveXattr(h fs.Handle, name []byte) error
}

// Names that begin so are stored. Who may use them, and on files of which type, the kernel has looked at before it
// asks. Access lists are in lists.go; others (system) are not there.
var namespaces = []string{"user.", trusted, "security."}

const trusted = "trusted."

// xattr is the file of a call, if it can have an attribute of that name.
func (f *fileSystem) xattr(id uint64, name string) (fs.Handle, fuse.Status) {
	for _, n := range namespaces {
		if strings.HasPrefix(name, n) {
			h, err := f.nodes.handle(id)
			return h, status(err)
		}
	}
	return fs.Handle{}, fuse.Status(unix.EOPNOTSUPP)
}

// xattrStatus is status, where ErrNoEnt means that there is no such attribute.
func xattrStatus(err error) fuse.Status {
	if err == fs.ErrNoEnt {
		return fuse.ENODATA
	}
	return status(err)
}

// fill puts what was asked for into dest, if there is room.
func fill(dest, b []byte) (uint32, fuse.Status) {
	if len(dest) < len(b) {
		return uint32(len(b)), fuse.ERANGE // if none was offered, it is the length that was asked for
	}
	return uint32(copy(dest, b)), fuse.OK
}

// GetXAttr implements fuse.RawFileSystem.
func (f *fileSystem) GetXAttr(_ <-chan struct{}, in *fuse.InHeader, name string, dest []byte) (uint32, fuse.Status) {
	if dflt, ok := isList(name); ok {
		b, st := f.getList(in.NodeId, dflt)
		if st != fuse.OK {
			return 0, st
		}
		return fill(dest, b)
	}
	h, st := f.xattr(in.NodeId, name)
	if st != fuse.OK {
		return 0, st
	}
	value, err := f.volume.GetXattr(h, []byte(name))
	if err != nil {
		return 0, xattrStatus(err)
	}
	return fill(dest, value)
}

// ListXAttr implements fuse.RawFileSystem. Names of trusted attributes are for root.
func (f *fileSystem) ListXAttr(_ <-chan struct{}, in *fuse.InHeader, dest []byte) (uint32, fuse.Status) {
	h, err := f.nodes.handle(in.NodeId)
	if err != nil {
		return 0, status(err)
	}
	names, err := f.volume.ListXattr(h)
	if err != nil {
		return 0, status(err)
	}
	if in.Uid != 0 && bytes.Contains(names, []byte(trusted)) {
		var rest []byte
		for n := range bytes.SplitAfterSeq(names, []byte{0}) {
			if !bytes.HasPrefix(n, []byte(trusted)) {
				rest = append(rest, n...)
			}
		}
		names = rest
	}
	names, err = f.listNames(h, names)
	if err != nil {
		return 0, status(err)
	}
	return fill(dest, names)
}

// SetXAttr implements fuse.RawFileSystem.
func (f *fileSystem) SetXAttr(_ <-chan struct{}, in *fuse.SetXAttrIn, name string, value []byte) fuse.Status {
	if dflt, ok := isList(name); ok {
		return f.setListBytes(&in.InHeader, dflt, value)
	}
	h, st := f.xattr(in.NodeId, name)
	if st != fuse.OK {
		return st
	}
	create, replace := in.Flags&unix.XATTR_CREATE != 0, in.Flags&unix.XATTR_REPLACE != 0
	err := f.withRoom(func() error { return f.volume.SetXattr(h, []byte(name), value, create, replace) })
	if err == nil {
		f.forgetAttrs(in.NodeId)
	}
	return xattrStatus(err)
}

// RemoveXAttr implements fuse.RawFileSystem.
func (f *fileSystem) RemoveXAttr(_ <-chan struct{}, in *fuse.InHeader, name string) fuse.Status {
	if dflt, ok := isList(name); ok {
		return f.setList(in, dflt, nil)
	}
	h, st := f.xattr(in.NodeId, name)
	if st != fuse.OK {
		return st
	}
	err := f.volume.RemoveXattr(h, []byte(name))
	if err == nil {
		f.forgetAttrs(in.NodeId)
	}
	return xattrStatus(err)
}

// killPrivileges takes setuid and setgid away from a file that is about to be written to by somebody who may not leave
// them. The kernel, which would have to ask for capabilities before each write(2) if it did this itself, leaves it to
// us (HANDLE_KILLPRIV_V2).
func (f *fileSystem) killPrivileges(id uint64, h fs.Handle, who fuse.Caller) error {
	a, err := f.volume.Getattr(h)
	if err != nil {
		return err
	}
	return f.killMode(id, h, &a, who)
}

func (f *fileSystem) killMode(id uint64, h fs.Handle, a *fs.Attr, who fuse.Caller) error {
	mode := withoutPrivileges(a, who)
	if mode == a.Mode {
		return nil
	}
	if _, err := f.volume.Setattr(superuser, h, &fs.SetAttr{Mode: &mode}, nil); err != nil {
		return err
	}
	f.forgetAttrs(id) // the kernel would let programs run with the old mode
	return nil
}
