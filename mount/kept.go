//go:build linux || darwin

package mount

import (
	"errors"

	"tansy/fs"
)

// NFS knows no open files, so the volume's procedures free a file with its last name. One that is open at that moment
// the volume is told to keep, in the same transaction, and to let go when it is closed. Being kept is a link to the
// volume, and none to programs. Those that a crash leaves the volume lets go when it is opened.
//
// A mount that has the volume for itself is not told of open files, which would be two requests for each. It keeps
// every file that the kernel knows, and lets it go when the kernel has forgotten it. If nobody has the file open, that
// is within the call that takes its last name away.

// keeper is what a volume has for open files (fs.FS says what).
type keeper interface {
	Keep(h fs.Handle) error
	LetGo(h fs.Handle) error
	RemoveOpen(c *fs.Cred, dir fs.Handle, name []byte, open fs.Handle) (fs.WCC, error)
	RenameOpen(
		c *fs.Cred, from fs.Handle, fromName []byte, to fs.Handle, toName []byte, open fs.Handle,
	) (fromWCC, toWCC fs.WCC, err error)
	WhiteoutOpen(
		c *fs.Cred, owner uint32, from fs.Handle, fromName []byte, to fs.Handle, toName []byte, open fs.Handle,
	) error
	Tmpfile(c *fs.Cred, dir fs.Handle, s *fs.SetAttr) (fs.Node, error)
}

// losing calls take, which takes a name away from whatever file has it; or, if that is its last one and the file is
// open, keeping, which does the same and has the volume keep the file. The kernel changes no other name in this
// directory meanwhile.
func (f *fileSystem) losing(dir fs.Handle, name []byte, take func() error, keeping func(open fs.Handle) error) error {
	n, err := f.volume.Lookup(superuser, dir, name)
	if err != nil {
		return take() // which says what is wrong, if anything is
	}
	id := nodeID(n.Handle)
	defer f.nodes.lockNames(id)()
	a, err := f.volume.Getattr(n.Handle)
	if err != nil {
		return take() // the file has gone; the name may be another's
	}
	last := a.Type == fs.Directory || a.Nlink == 1
	open, kept := f.nodes.isOpen(id)
	if !last || !open || a.Type == fs.Directory || kept {
		err := take()
		switch {
		case err != nil:
		case last:
			f.nodes.setGone(a)
		default:
			f.forgetAttrs(id)
		}
		return err
	}
	defer f.forgetAttrs(id)
	f.nodes.setKept(id, true) // from here on that link does not count
	if err := keeping(n.Handle); err != nil {
		f.nodes.neverKept(id) // who asked meanwhile was told of one link less
		return err
	}
	if _, kept := f.nodes.isOpen(id); kept && f.shared {
		// It may have a name for all that: one renamed to itself, one that others link meanwhile, or if take was done
		// before and this was another file.
		if a, err := f.volume.Getattr(n.Handle); err == nil && a.Nlink > 1 {
			f.nodes.setKept(id, false)
			return f.volume.LetGo(n.Handle)
		}
	}
	return nil
}

// keeping is what takes a name away, in a transaction of its own, after another one that has the volume keep the file:
// what NFS clients ask for is done as they asked. If the file cannot be kept, they have it removed for all that.
func (f *fileSystem) keeping(take func() error) func(open fs.Handle) error {
	return func(open fs.Handle) error {
		keep := f.volume.Keep(open)
		err := take()
		switch {
		case keep != nil:
			f.nodes.setKept(nodeID(open), false)
		case err != nil:
			err = errors.Join(err, f.volume.LetGo(open))
		}
		return err
	}
}

// close notes that a file is closed once. With the last time a kept one is let go.
func (f *fileSystem) close(id uint64) {
	defer f.nodes.lockNames(id)()
	kept := false
	f.nodes.with(id, func(x *node) {
		if x.opens = max(x.opens-1, 0); x.opens == 0 {
			kept = x.kept
		}
	})
	if kept {
		f.letGo(id)
	}
}

// letAllGo lets go what is kept, at the end of the mount: nobody has anything open then.
func (f *fileSystem) letAllGo() {
	for _, id := range f.nodes.allKept() {
		unlock := f.nodes.lockNames(id)
		f.letGo(id)
		unlock()
	}
}

// letGo lets a kept file go, which nobody has open. Who calls it holds its names.
func (f *fileSystem) letGo(id uint64) {
	h, err := f.nodes.handle(id)
	if err != nil {
		return
	}
	a, err := f.volume.Getattr(h)
	if err == nil {
		err = f.volume.LetGo(h)
	}
	if err != nil {
		f.log.Error("a file that was removed while it was open stays until the volume is opened again",
			"inode", h.Ino, "err", err)
		return
	}
	if a.Nlink == 1 {
		f.nodes.setGone(a)
	} else { // it has a name: O_TMPFILE, linkat(2)
		f.nodes.setKept(id, false)
	}
}
