package crash

import (
	"errors"
	"fmt"

	"tansy/fs"
)

// Flags of steps, and what they forbid. The model of a file system has none, so possible has them beside it, and
// refuses what they forbid in the order in which fs does. All is done by root.

// flagLetters are those of chattr(1) for what flags do.
var flagLetters = map[byte]uint32{
	'i': fs.FlagImmutable, 'a': fs.FlagAppendOnly, 'd': fs.FlagNoDump, 'A': fs.FlagNoAtime,
}

// parseFlags reads flags.
func parseFlags(text string) (flags uint32, err error) {
	if text == nothing {
		return 0, nil
	}
	for i := range len(text) {
		f, ok := flagLetters[text[i]]
		if !ok {
			return 0, fmt.Errorf("%q are no flags: give some of i, a, d, and A, or %s for none", text, nothing)
		}
		flags |= f
	}
	return flags, nil
}

// Flags is that of fs.FS.
func (p possible) Flags(h fs.Handle) (uint32, error) {
	_, err := p.Getattr(h)
	return p.flags[h], err
}

// SetFlags is that of fs.FS.
func (p possible) SetFlags(_ *fs.Cred, h fs.Handle, flags uint32) error {
	_, err := p.Getattr(h)
	switch {
	case err != nil:
		return err
	case p.immutable(h) && flags&fs.FlagImmutable != 0 && flags != p.flags[h]:
		return fs.ErrPerm
	}
	p.flags[h] = flags
	return nil
}

// immutable tells whether nothing of a file may change.
func (p possible) immutable(h fs.Handle) bool { return p.flags[h]&fs.FlagImmutable != 0 }

// fixed tells whether nothing of a file may change but that more comes to its end.
func (p possible) fixed(h fs.Handle) bool {
	return p.flags[h]&(fs.FlagImmutable|fs.FlagAppendOnly) != 0
}

// mayEnter is an error if flags forbid that a directory gets a name. One that it has is refused for that.
func (p possible) mayEnter(dir fs.Handle, name []byte) error {
	if _, err := p.Lookup(root, dir, name); errors.Is(err, fs.ErrNoEnt) && p.immutable(dir) {
		return fs.ErrPerm
	}
	return nil
}

// mayLeave is an error if flags forbid that a directory loses a name, or that it is of another file.
func (p possible) mayLeave(dir fs.Handle, name []byte) error {
	n, err := p.Lookup(root, dir, name)
	if p.immutable(dir) || err == nil && (p.fixed(dir) || p.fixed(n.Handle)) {
		return fs.ErrPerm
	}
	return nil
}

// mayWrite is an error if flags forbid a WRITE at an offset.
func (p possible) mayWrite(h fs.Handle, off uint64) error {
	a, err := p.Getattr(h)
	if err == nil && a.Type == fs.Regular && (p.immutable(h) || p.fixed(h) && off != a.Size) {
		return fs.ErrPerm
	}
	return nil
}

// Setattr implements fs.FileSystem.
func (p possible) Setattr(who *fs.Cred, h fs.Handle, s *fs.SetAttr, guard *fs.Time) (fs.WCC, error) {
	if a, err := p.Getattr(h); err == nil && p.fixed(h) && (s.Size == nil || a.Type == fs.Regular) {
		return fs.WCC{}, fs.ErrPerm
	}
	return p.Model.Setattr(who, h, s, guard)
}

// Write implements fs.FileSystem.
func (p possible) Write(who *fs.Cred, h fs.Handle, off uint64, b []byte, how fs.Stability) (
	uint32, fs.Stability, fs.WCC, error,
) {
	if err := p.mayWrite(h, off); err != nil {
		return 0, how, fs.WCC{}, err
	}
	return p.Model.Write(who, h, off, b, how)
}

// Create implements fs.FileSystem.
func (p possible) Create(who *fs.Cred, dir fs.Handle, name []byte, how fs.CreateHow, s *fs.SetAttr, verf uint64) (
	fs.Node, error,
) {
	if err := p.mayEnter(dir, name); err != nil {
		return fs.Node{}, err
	}
	return p.Model.Create(who, dir, name, how, s, verf)
}

// Mkdir implements fs.FileSystem.
func (p possible) Mkdir(who *fs.Cred, dir fs.Handle, name []byte, s *fs.SetAttr) (fs.Node, error) {
	if err := p.mayEnter(dir, name); err != nil {
		return fs.Node{}, err
	}
	return p.Model.Mkdir(who, dir, name, s)
}

// Mknod implements fs.FileSystem.
func (p possible) Mknod(who *fs.Cred, dir fs.Handle, name []byte, t fs.Type, s *fs.SetAttr, major, minor uint32) (
	fs.Node, error,
) {
	if err := p.mayEnter(dir, name); err != nil {
		return fs.Node{}, err
	}
	return p.Model.Mknod(who, dir, name, t, s, major, minor)
}

// Symlink implements fs.FileSystem.
func (p possible) Symlink(who *fs.Cred, dir fs.Handle, name []byte, s *fs.SetAttr, target []byte) (fs.Node, error) {
	if err := p.mayEnter(dir, name); err != nil {
		return fs.Node{}, err
	}
	return p.Model.Symlink(who, dir, name, s, target)
}

// Link implements fs.FileSystem.
func (p possible) Link(who *fs.Cred, h, dir fs.Handle, name []byte) (*fs.Attr, fs.WCC, error) {
	a, err := p.Getattr(h)
	if err == nil && a.Type != fs.Directory {
		err = p.mayEnter(dir, name)
		if _, there := p.Lookup(root, dir, name); errors.Is(there, fs.ErrNoEnt) && p.fixed(h) {
			err = fs.ErrPerm
		}
		if err != nil {
			return nil, fs.WCC{}, err
		}
	}
	return p.Model.Link(who, h, dir, name)
}

// Remove implements fs.FileSystem.
func (p possible) Remove(who *fs.Cred, dir fs.Handle, name []byte) (fs.WCC, error) {
	if err := p.mayLeave(dir, name); err != nil {
		return fs.WCC{}, err
	}
	return p.Model.Remove(who, dir, name)
}

// Rmdir implements fs.FileSystem.
func (p possible) Rmdir(who *fs.Cred, dir fs.Handle, name []byte) (fs.WCC, error) {
	if err := p.mayLeave(dir, name); err != nil {
		return fs.WCC{}, err
	}
	return p.Model.Rmdir(who, dir, name)
}

// Rename implements fs.FileSystem.
func (p possible) Rename(who *fs.Cred, from fs.Handle, fromName []byte, to fs.Handle, toName []byte) (
	fs.WCC, fs.WCC, error,
) {
	if err := p.mayMove(from, fromName, to, toName); err != nil {
		return fs.WCC{}, fs.WCC{}, err
	}
	return p.Model.Rename(who, from, fromName, to, toName)
}

// mayMove is an error if flags forbid a RENAME.
func (p possible) mayMove(from fs.Handle, fromName []byte, to fs.Handle, toName []byte) error {
	for _, dir := range []fs.Handle{from, to} {
		if _, err := p.Getattr(dir); err != nil {
			return nil
		}
	}
	if p.immutable(from) || p.immutable(to) {
		return fs.ErrPerm
	}
	n, err := p.Lookup(root, from, fromName)
	there, e := p.Lookup(root, to, toName)
	if err != nil || e == nil && n.Handle == there.Handle {
		return nil
	}
	if err := p.mayLeave(from, fromName); err != nil {
		return err
	}
	if err = p.mayLeave(to, toName); err != nil {
		if _, _, e := p.fork().Model.Rename(root, from, fromName, to, toName); errors.Is(e, fs.ErrInval) {
			return nil // a directory into itself
		}
	}
	return err
}
