//go:build linux || darwin

package mount

import (
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"tansy/fs"
)

// A volume that is mounted and served at the same time (Options.Shared) has two faces. What either does, the other sees
// when the call has returned: the kernel keeps no names, no attributes, no listings, and no contents (read and write
// come here each time) but those of memory that is mapped. Those it is told to forget before a change of them by the
// other face is answered.
//
// The kernel does less for files whose contents it does not keep, so that is done here: appending at the end that the
// file has now, waiting for the device with O_SYNC, and taking setuid and setgid away from what is written to.

// openShared notes that a file is opened, which somebody else may have removed, or given a name again.
func (f *fileSystem) openShared(id uint64) error {
	h, err := f.nodes.handle(id)
	if err != nil {
		return err
	}
	defer f.nodes.lockNames(id)()
	if _, err := f.volume.Getattr(h); err != nil {
		return err // the kernel looks the name up once more
	}
	f.nodes.with(id, func(x *node) {
		x.gone = nil
		x.opens++
	})
	return nil
}

// beforeWrite does what comes before the data of a write, and returns where they go. The kernel writes the contents of
// mapped memory (WRITE_CACHE) where they belong, and for nobody in particular.
func (f *fileSystem) beforeWrite(h fs.Handle, in *fuse.WriteIn) (offset uint64, err error) {
	appends := f.shared && in.Flags&unix.O_APPEND != 0
	kills := in.WriteFlags&fuse.WRITE_KILL_SUIDGID != 0
	if in.WriteFlags&fuse.WRITE_CACHE != 0 || !appends && !kills {
		return in.Offset, nil
	}
	a, err := f.volume.Getattr(h)
	if err != nil {
		return 0, err
	}
	if kills {
		if err := f.killMode(in.NodeId, h, &a, in.Caller); err != nil {
			return 0, err
		}
	}
	if appends {
		return a.Size, nil
	}
	return in.Offset, nil
}

// withoutPrivileges is what becomes of a file's mode when who writes to it may not leave setuid and setgid. setgid
// without the group's x lets nobody run anything: root, and who is in the group, leave it, as on Linux's own file
// systems.
func withoutPrivileges(a *fs.Attr, who fuse.Caller) uint32 {
	mode := a.Mode &^ unix.S_ISUID
	if mode&unix.S_ISGID != 0 && (mode&unix.S_IXGRP != 0 || who.Uid != 0 && !inGroup(who, a.GID)) {
		mode &^= unix.S_ISGID
	}
	return mode
}

// changed has the kernel forget what it has of the contents from an offset on, n bytes or (0) all. Only of what is open
// it has any. It may have something to write first, which is answered meanwhile: who calls this holds nothing.
func (f *fileSystem) changed(h fs.Handle, from uint64, n uint32) {
	id := nodeID(h)
	if open, _ := f.nodes.isOpen(id); open {
		f.forget(id, int64(from), int64(n))
	}
}

// Beside is the mounted volume for others, who use v at the same time. Files that they remove live on while they are
// open in the mount, and the mount sees what they write. v is the volume that New was given, as those others know it.
func (m *Mount) Beside(v Served) Served { return beside{v, m.files} }

// Served is a volume as those know it who serve it; fs.FS is it, and so is what its Once returns.
type Served interface {
	fs.OnceFileSystem
	fs.Viewer
	fs.Lister
}

// beside is a Served whose changes the mount takes part in. Reading is not among them, and goes past it, without a
// copy.
type beside struct {
	Served
	mount *fileSystem
}

// Once implements fs.OnceFileSystem.
func (b beside) Once(id *fs.CallID) fs.FileSystem {
	return beside{b.Served.Once(id).(Served), b.mount}
}

// Write implements fs.FileSystem.
func (b beside) Write(
	c *fs.Cred, h fs.Handle, off uint64, data []byte, how fs.Stability,
) (uint32, fs.Stability, fs.WCC, error) {
	n, committed, w, err := b.Served.Write(c, h, off, data, how)
	if err == nil && n > 0 {
		b.mount.changed(h, off, n)
	}
	return n, committed, w, err
}

// Setattr implements fs.FileSystem.
func (b beside) Setattr(c *fs.Cred, h fs.Handle, s *fs.SetAttr, guard *fs.Time) (fs.WCC, error) {
	w, err := b.Served.Setattr(c, h, s, guard)
	if err == nil && s.Size != nil {
		b.mount.changed(h, *s.Size, 0)
	}
	if err == nil && s.Mode != nil {
		b.mount.forget(nodeID(h), -1, 0) // the mask of a list
	}
	return w, err
}

// SetLists implements fs.Lister. The kernel keeps the lists of a file that is open.
func (b beside) SetLists(c *fs.Cred, h fs.Handle, l fs.Lists, access, dflt bool) error {
	err := b.setLists(c, h, l, access, dflt)
	if err == nil {
		b.mount.forget(nodeID(h), -1, 0) // without the lock: the kernel may wait for what makes a file there
	}
	return err
}

func (b beside) setLists(c *fs.Cred, h fs.Handle, l fs.Lists, access, dflt bool) error {
	if dflt {
		b.mount.defaults.Lock()
		defer b.mount.defaults.Unlock()
	}
	return b.Served.SetLists(c, h, l, access, dflt)
}

// Create implements fs.FileSystem. It may cut a file that is there.
func (b beside) Create(
	c *fs.Cred, dir fs.Handle, name []byte, how fs.CreateHow, s *fs.SetAttr, verf uint64,
) (fs.Node, error) {
	n, err := b.Served.Create(c, dir, name, how, s, verf)
	if err == nil && s != nil && s.Size != nil {
		b.mount.changed(n.Handle, *s.Size, 0)
	}
	return n, err
}

// accessDelete is the right of ACCESS to take names out of a directory.
const accessDelete = 0x10

// losing is losing of the mount, if the caller may take names out of the directory. Of another caller the mount sees
// nothing.
func (b beside) losing(c *fs.Cred, dir fs.Handle, name []byte, take func() error) error {
	if granted, _, err := b.Access(c, dir, accessDelete); err != nil || granted == 0 {
		return take() // which says why not
	}
	return b.mount.losing(dir, name, take, b.mount.keeping(take))
}

// Remove implements fs.FileSystem.
func (b beside) Remove(c *fs.Cred, dir fs.Handle, name []byte) (w fs.WCC, err error) {
	err = b.losing(c, dir, name, func() (err error) {
		w, err = b.Served.Remove(c, dir, name)
		return err
	})
	return w, err
}

// Rmdir implements fs.FileSystem.
func (b beside) Rmdir(c *fs.Cred, dir fs.Handle, name []byte) (w fs.WCC, err error) {
	err = b.losing(c, dir, name, func() (err error) {
		w, err = b.Served.Rmdir(c, dir, name)
		return err
	})
	return w, err
}

// Rename implements fs.FileSystem.
func (b beside) Rename(
	c *fs.Cred, from fs.Handle, fromName []byte, to fs.Handle, toName []byte,
) (fw, tw fs.WCC, err error) {
	err = b.losing(c, to, toName, func() (err error) {
		fw, tw, err = b.Served.Rename(c, from, fromName, to, toName)
		return err
	})
	return fw, tw, err
}
