//go:build linux || darwin

package mount

import (
	"encoding/binary"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"

	"tansy/fs"
)

// lister is what a volume has for access lists (fs.FS says what).
type lister interface {
	HasDefault(dir fs.Handle) (bool, error)
	GetAccess(h fs.Handle) (*fs.AccessList, error)
	GetDefault(h fs.Handle) (*fs.AccessList, error)
	SetAccess(c *fs.Cred, h fs.Handle, l *fs.AccessList) error
	SetDefault(c *fs.Cred, h fs.Handle, l *fs.AccessList) error
}

// The attributes by which programs read and set access lists (ACLs). The kernel asks for them, too: it decides by them
// who may do what.
const (
	accessName  = "system.posix_acl_access"
	defaultName = "system.posix_acl_default"
)

// isList tells whether a name is that of an access list, and of which.
func isList(name string) (dflt, ok bool) {
	return name == defaultName, name == defaultName || name == accessName
}

// Such an attribute is a version and entries: what for, rights, and for whom (linux/posix_acl_xattr.h). They are in the
// order of the numbers of what they are for.
const (
	listVersion = 2
	listHeader  = 4
	listEntry   = 8
)

// listBytes is an access list as an attribute.
func listBytes(l *fs.AccessList) []byte {
	b := binary.LittleEndian.AppendUint32(nil, listVersion)
	for _, e := range l.Entries() {
		b = binary.LittleEndian.AppendUint16(b, uint16(e.For))
		b = binary.LittleEndian.AppendUint16(b, uint16(e.Rights))
		b = binary.LittleEndian.AppendUint32(b, e.ID)
	}
	return b
}

// listOf is the access list that an attribute is; nil: one of no entries, which takes the list away. ok: it is one.
func listOf(b []byte) (l *fs.AccessList, ok bool) {
	if len(b) < listHeader || binary.LittleEndian.Uint32(b) != listVersion || (len(b)-listHeader)%listEntry != 0 {
		return nil, false
	}
	if len(b) == listHeader {
		return nil, true
	}
	var entries []fs.ListEntry
	for e := b[listHeader:]; len(e) > 0; e = e[listEntry:] {
		entries = append(entries, fs.ListEntry{
			For: uint32(binary.LittleEndian.Uint16(e)), Rights: uint32(binary.LittleEndian.Uint16(e[2:])),
			ID: binary.LittleEndian.Uint32(e[4:]),
		})
	}
	return fs.ListOf(entries)
}

// getList is GetXAttr of an access list.
func (f *fileSystem) getList(id uint64, dflt bool) ([]byte, fuse.Status) {
	h, err := f.nodes.handle(id)
	if err != nil {
		return nil, status(err)
	}
	get := f.volume.GetAccess
	if dflt {
		get = f.volume.GetDefault
	}
	l, err := get(h)
	switch {
	case err == fs.ErrIO && !dflt: // of an error the kernel would refuse root as well
		a, err := f.volume.Getattr(h)
		if err != nil {
			return nil, status(err)
		}
		l = fs.MissingList(a.Mode)
	case err != nil:
		return nil, status(err)
	case l == nil:
		return nil, fuse.ENODATA
	}
	return listBytes(l), fuse.OK
}

// setList is SetXAttr and, without a list, RemoveXAttr of an access list.
func (f *fileSystem) setList(in *fuse.InHeader, dflt bool, l *fs.AccessList) fuse.Status {
	h, err := f.nodes.handle(in.NodeId)
	if err != nil {
		return status(err)
	}
	a, err := f.volume.Getattr(h)
	if err != nil {
		return status(err)
	}
	c := &fs.Cred{UID: in.Uid, GID: in.Gid}
	if in.Uid != 0 && inGroup(in.Caller, a.GID) {
		c.GIDs = []uint32{a.GID}
	}
	set := f.volume.SetAccess
	if dflt {
		set = f.volume.SetDefault
	}
	err = f.withRoom(func() error { return set(c, h, l) })
	if err == nil {
		f.forgetAttrs(in.NodeId) // its mode may be another, and its ctime is
	}
	return status(err)
}

// setListBytes is setList of an attribute.
func (f *fileSystem) setListBytes(in *fuse.InHeader, dflt bool, b []byte) fuse.Status {
	l, ok := listOf(b)
	if !ok {
		return fuse.EINVAL
	}
	if l != nil && len(l.Named) > fs.MaxNamed {
		return fuse.Status(syscall.E2BIG)
	}
	return f.setList(in, dflt, l)
}

// listNames adds the names of the access lists that a file has to those of its attributes.
func (f *fileSystem) listNames(h fs.Handle, names []byte) ([]byte, error) {
	for _, x := range []struct {
		name string
		get  func(fs.Handle) (*fs.AccessList, error)
	}{{accessName, f.volume.GetAccess}, {defaultName, f.volume.GetDefault}} {
		l, err := x.get(h)
		if err != nil && err != fs.ErrIO {
			return nil, err
		}
		if l != nil || err != nil {
			names = append(append(names, x.name...), 0)
		}
	}
	return names, nil
}

// masked is the mode of a new file in a directory: what the caller's mask leaves of the mode asked for, unless a
// default list bounds it instead. Until the file is there, nobody gives the directory another default list: the kernel
// lets no process, and f.defaults no client.
func (f *fileSystem) masked(dir fs.Handle, mode, mask uint32) (uint32, error) {
	has, err := f.volume.HasDefault(dir)
	if has {
		return mode, err
	}
	return mode &^ (mask & 0o777), err
}
