//go:build linux || darwin

package mount

import (
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"tansy/fs"
)

// superuser is in whose name the volume is asked: the kernel has checked the permissions.
var superuser = &fs.Cred{}

// isReserved tells whether a name is one that programs may not give (folder.go).
func (f *fileSystem) isReserved(dir uint64, name string) bool {
	return dir == f.root.Ino && name == oldFolder
}

// Lookup implements fuse.RawFileSystem. The kernel also keeps that there is no such name.
func (f *fileSystem) Lookup(_ <-chan struct{}, in *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	dir, err := f.nodes.handle(in.NodeId)
	if err != nil {
		return status(err)
	}
	n, err := f.volume.Lookup(superuser, dir, []byte(name))
	if err == fs.ErrNoEnt {
		out.SetEntryTimeout(f.keepNames)
		return fuse.OK
	}
	if err != nil {
		return status(err)
	}
	f.entry(n.Handle, &n.Attr, out)
	return fuse.OK
}

// Forget implements fuse.RawFileSystem. What the kernel does not know any more nobody has open.
func (f *fileSystem) Forget(id, times uint64) {
	if id == nodeID(f.root) {
		return
	}
	if !f.nodes.tracked {
		defer f.nodes.lockNames(id)()
		if f.nodes.keptUntil(id, times) {
			f.letGo(id)
		}
	}
	f.nodes.forget(id, times)
}

// privileged are the bits of a mode that end with a change of owner, and giving a new file to its owner is one.
const privileged = unix.S_ISUID | unix.S_ISGID

// A maker is a procedure of the volume that makes a file in a directory, in the name of c.
type maker func(c *fs.Cred, dir fs.Handle, s *fs.SetAttr) (fs.Node, error)

// create makes a file of the caller in directory in.NodeId, by a procedure that is told in whose name, and with which
// attributes. The group is the caller's, or that of a directory with setgid. mask is the caller's umask.
func (f *fileSystem) create(in *fuse.InHeader, name string, mode, mask uint32, by maker) (fs.Node, error) {
	if f.isReserved(in.NodeId, name) {
		return fs.Node{}, fs.ErrAcces
	}
	dir, err := f.nodes.handle(in.NodeId)
	if err != nil {
		return fs.Node{}, err
	}
	if in.Uid == fs.NoID || in.Gid == fs.NoID { // the kernel does not ask for these; the file would be root's
		return fs.Node{}, fs.ErrInval
	}
	f.defaults.RLock()
	defer f.defaults.RUnlock()
	if mode, err = f.masked(dir, mode&0o7777, mask); err != nil {
		return fs.Node{}, err
	}
	c, s := &fs.Cred{GID: in.Gid}, &fs.SetAttr{Mode: &mode}
	if in.Uid != 0 {
		s.UID = &in.Uid
	}
	var n fs.Node
	err = f.withRoom(func() error {
		n, err = by(c, dir, s)
		return err
	})
	mode = n.Attr.Mode | mode&privileged
	if err == nil && in.Uid != 0 && n.Attr.Mode != mode && losesBits(mode, n.Attr.Type) {
		var w fs.WCC
		if w, err = f.volume.Setattr(superuser, n.Handle, &fs.SetAttr{Mode: &mode}, nil); err == nil {
			n.Attr = *w.After
		}
	}
	return n, err
}

// losesBits says whether a new file of a mode may have lost bits of it, with its owner.
func losesBits(mode uint32, ty fs.Type) bool {
	return mode&privileged != 0 && ty != fs.Directory && ty != fs.Symlink
}

// Mknod implements fuse.RawFileSystem.
func (f *fileSystem) Mknod(_ <-chan struct{}, in *fuse.MknodIn, name string, out *fuse.EntryOut) fuse.Status {
	n, err := f.create(&in.InHeader, name, in.Mode, in.Umask, func(
		c *fs.Cred, dir fs.Handle, s *fs.SetAttr,
	) (fs.Node, error) {
		if in.Mode&unix.S_IFMT == unix.S_IFREG {
			return f.volume.Create(c, dir, []byte(name), fs.Guarded, s, 0)
		}
		for t, bits := range typeBits {
			if bits == in.Mode&unix.S_IFMT {
				return f.volume.Mknod(c, dir, []byte(name), t, s, unix.Major(uint64(in.Rdev)), unix.Minor(uint64(in.Rdev)))
			}
		}
		return fs.Node{}, fs.ErrInval
	})
	return f.made(n, err, out)
}

// made tells the kernel what became of making a file.
func (f *fileSystem) made(n fs.Node, err error, out *fuse.EntryOut) fuse.Status {
	if err != nil {
		return status(err)
	}
	f.entry(n.Handle, &n.Attr, out)
	return fuse.OK
}

// Mkdir implements fuse.RawFileSystem.
func (f *fileSystem) Mkdir(_ <-chan struct{}, in *fuse.MkdirIn, name string, out *fuse.EntryOut) fuse.Status {
	n, err := f.create(&in.InHeader, name, in.Mode, in.Umask, func(
		c *fs.Cred, dir fs.Handle, s *fs.SetAttr,
	) (fs.Node, error) {
		return f.volume.Mkdir(c, dir, []byte(name), s)
	})
	return f.made(n, err, out)
}

// Symlink implements fuse.RawFileSystem.
func (f *fileSystem) Symlink(
	_ <-chan struct{}, in *fuse.InHeader, target, name string, out *fuse.EntryOut,
) fuse.Status {
	n, err := f.create(in, name, 0o777, 0, func(c *fs.Cred, dir fs.Handle, s *fs.SetAttr) (fs.Node, error) {
		return f.volume.Symlink(c, dir, []byte(name), s, []byte(target))
	})
	return f.made(n, err, out)
}

// Readlink implements fuse.RawFileSystem.
func (f *fileSystem) Readlink(_ <-chan struct{}, in *fuse.InHeader) ([]byte, fuse.Status) {
	h, err := f.nodes.handle(in.NodeId)
	if err != nil {
		return nil, status(err)
	}
	target, _, err := f.volume.Readlink(superuser, h)
	return target, status(err)
}

// Create implements fuse.RawFileSystem: a new file, opened. If opens are not tracked, the kernel is to call Mknod, for
// it would tell when this file is closed.
func (f *fileSystem) Create(_ <-chan struct{}, in *fuse.CreateIn, name string, out *fuse.CreateOut) fuse.Status {
	if !f.nodes.tracked {
		return fuse.ENOSYS
	}
	n, err := f.create(&in.InHeader, name, in.Mode, in.Umask, func(
		c *fs.Cred, dir fs.Handle, s *fs.SetAttr,
	) (fs.Node, error) {
		return f.volume.Create(c, dir, []byte(name), fs.Guarded, s, 0)
	})
	if err == fs.ErrExist && f.shared && in.Flags&unix.O_EXCL == 0 {
		err = fs.ErrStale // somebody else has made it since the kernel looked, who now looks once more
	}
	if st := f.made(n, err, &out.EntryOut); st != fuse.OK {
		return st
	}
	f.nodes.with(nodeID(n.Handle), func(x *node) { x.opens++ })
	out.OpenFlags, out.Fh = f.openFlags, f.locks.opened()
	return fuse.OK
}

// Tmpfile implements fuse.RawFileSystem: a new file without a name, opened (O_TMPFILE). The volume keeps it from the
// start.
func (f *fileSystem) Tmpfile(_ <-chan struct{}, in *fuse.CreateIn, out *fuse.CreateOut) fuse.Status {
	n, err := f.create(&in.InHeader, "", in.Mode, in.Umask, f.volume.Tmpfile)
	if err != nil {
		return status(err)
	}
	f.nodes.learn(n.Handle)
	f.nodes.with(nodeID(n.Handle), func(x *node) {
		x.opens = 1
		f.nodes.mark(x, true)
	})
	f.entry(n.Handle, &n.Attr, &out.EntryOut)
	f.nodes.forget(nodeID(n.Handle), 1) // it was learnt twice
	out.OpenFlags, out.Fh = f.openFlags, f.locks.opened()
	return fuse.OK
}

// Link implements fuse.RawFileSystem.
func (f *fileSystem) Link(_ <-chan struct{}, in *fuse.LinkIn, name string, out *fuse.EntryOut) fuse.Status {
	if f.isReserved(in.NodeId, name) {
		return status(fs.ErrAcces)
	}
	file, err := f.nodes.handle(in.Oldnodeid)
	if err != nil {
		return status(err)
	}
	dir, err := f.nodes.handle(in.NodeId)
	if err != nil {
		return status(err)
	}
	link := func() error {
		defer f.nodes.lockNames(nodeID(file))()
		a, _, err := f.volume.Link(superuser, file, dir, []byte(name))
		if err != nil {
			return err
		}
		// It has a name, which keeps it. What cannot be let go now is let go as any other.
		if _, kept := f.nodes.isOpen(nodeID(file)); kept && f.volume.LetGo(file) == nil {
			f.nodes.setKept(nodeID(file), false)
			a.Nlink--
		}
		f.entry(file, a, out)
		f.forgetAttrs(nodeID(file))
		return nil
	}
	return status(f.withRoom(link))
}

// Unlink implements fuse.RawFileSystem.
func (f *fileSystem) Unlink(_ <-chan struct{}, in *fuse.InHeader, name string) fuse.Status {
	dir, err := f.nodes.handle(in.NodeId)
	if err != nil {
		return status(err)
	}
	return status(f.losing(dir, []byte(name), func() error {
		_, err := f.volume.Remove(superuser, dir, []byte(name))
		return err
	}, func(open fs.Handle) error {
		_, err := f.volume.RemoveOpen(superuser, dir, []byte(name), open)
		return err
	}))
}

// Rmdir implements fuse.RawFileSystem.
func (f *fileSystem) Rmdir(_ <-chan struct{}, in *fuse.InHeader, name string) fuse.Status {
	dir, err := f.nodes.handle(in.NodeId)
	if err != nil {
		return status(err)
	}
	remove := func() error {
		_, err := f.volume.Rmdir(superuser, dir, []byte(name))
		return err
	}
	keeping := func(fs.Handle) error { return remove() } // no file is taken away, so none is kept
	return status(f.losing(dir, []byte(name), remove, keeping))
}

// Rename implements fuse.RawFileSystem. The kernel changes no name in either directory meanwhile, so to look first
// whether there is one to be replaced is to be sure (RENAME_NOREPLACE), if nobody else changes the volume. An exchange
// takes no name away from an open file.
func (f *fileSystem) Rename(_ <-chan struct{}, in *fuse.RenameIn, name, newName string) fuse.Status {
	how := in.Flags &^ renameWhiteout
	whiteout := how != in.Flags
	if how != 0 && how != renameNoReplace && in.Flags != renameExchange {
		return fuse.EINVAL
	}
	makes := whiteout || how == renameExchange // the old name is another file's then
	if f.isReserved(in.Newdir, newName) || makes && f.isReserved(in.NodeId, name) {
		return status(fs.ErrAcces)
	}
	from, err := f.nodes.handle(in.NodeId)
	if err != nil {
		return status(err)
	}
	to, err := f.nodes.handle(in.Newdir)
	if err != nil {
		return status(err)
	}
	switch how {
	case renameExchange:
		err := f.volume.Exchange(superuser, from, []byte(name), to, []byte(newName))
		if err == nil {
			f.forgetAttrsOf(from, []byte(name))
			f.forgetAttrsOf(to, []byte(newName))
		}
		return status(err)
	case renameNoReplace:
		if _, err := f.volume.Lookup(superuser, to, []byte(newName)); err != fs.ErrNoEnt {
			if err == nil {
				err = fs.ErrExist
			}
			return status(err)
		}
	}
	err = f.withRoom(func() error {
		if whiteout {
			return f.whiteout(&in.InHeader, from, []byte(name), to, []byte(newName))
		}
		return f.losing(to, []byte(newName), func() error {
			_, _, err := f.volume.Rename(superuser, from, []byte(name), to, []byte(newName))
			return err
		}, func(open fs.Handle) error {
			_, _, err := f.volume.RenameOpen(superuser, from, []byte(name), to, []byte(newName), open)
			return err
		})
	})
	if err == nil {
		f.forgetAttrsOf(to, []byte(newName))
	}
	return status(err)
}

// whiteout renames, and leaves a whiteout of the caller under the old name (RENAME_WHITEOUT).
func (f *fileSystem) whiteout(in *fuse.InHeader, from fs.Handle, name []byte, to fs.Handle, newName []byte) error {
	if in.Uid == fs.NoID || in.Gid == fs.NoID { // as in create
		return fs.ErrInval
	}
	c := &fs.Cred{GID: in.Gid}
	return f.losing(to, newName, func() error {
		return f.volume.Whiteout(c, in.Uid, from, name, to, newName)
	}, func(open fs.Handle) error {
		return f.volume.WhiteoutOpen(c, in.Uid, from, name, to, newName, open)
	})
}
