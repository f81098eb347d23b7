package fs

import (
	"tansy/internal/gen/fs/exec/answers"
	"tansy/internal/gen/fs/exec/oncecalls"
)

// node makes the result of an operation that finds or makes a file.
func node(c *call, dir Handle, err error) (Node, error) {
	n, err := found(c, err)
	n.Dir = c.wcc(dir.Ino)
	return n, err
}

// found is node without its directory.
func found(c *call, err error) (n Node, _ error) {
	if err == nil {
		a := c.attr(c.Ino)
		n.Handle, n.Attr = Handle{c.Ino, a.Gen}, *a
	}
	return n, err
}

// Lookup implements FileSystem.
func (v *FS) Lookup(who *Cred, dir Handle, name []byte) (Node, error) {
	vc, vn := v.cred(new(vcred), who), bytesOf(name)
	var c call
	err := v.run(&c, procLookup, func(t *txn) {
		answers.Lookup(&c.Call, t, v.dirs, vc, dir.Ino, dir.Gen, vn)
	})
	n, err := found(&c, err)
	n.Parent = orZero(c.before.of(dir.Ino, c.Before))
	return n, err
}

// Create implements FileSystem.
func (v *FS) Create(who *Cred, dir Handle, name []byte, how CreateHow, s *SetAttr, verf uint64) (Node, error) {
	id := v.id
	if how == Exclusive {
		s, id = nil, nil // the verifier tells whether it comes again
	}
	w, leave, err := v.together()
	if err != nil {
		return Node{}, err
	}
	defer leave()
	vc, vn, a := v.cred(new(vcred), who), bytesOf(name), sattr(s)
	var c call // SHRINK is of an existing file, truncated to a size it had not before
	err = w.once(&c, procCreate, id, func(t *txn, p *place) (again bool) {
		return oncecalls.Create(&c.Call, t, v.dirs,
			p.index, p.record, p.look, p.since,
			vc, dir.Ino, dir.Gen, vn, uint32(how), a, verf)
	})
	if err == nil && s != nil && s.Size != nil { // of a file that may have been there
		w.changed(Handle{c.Ino, c.file.Gen}, 0, nil)
	}
	return node(&c, dir, err)
}

// Mkdir implements FileSystem.
func (v *FS) Mkdir(who *Cred, dir Handle, name []byte, s *SetAttr) (Node, error) {
	vc, vn, a := v.cred(new(vcred), who), bytesOf(name), sattr(s)
	var c call
	err := v.once(&c, procMkdir, v.id, func(t *txn, p *place) (again bool) {
		return oncecalls.Mkdir(&c.Call, t, v.dirs,
			p.index, p.record, p.look, p.since,
			vc, dir.Ino, dir.Gen, vn, a)
	})
	return node(&c, dir, err)
}

// Symlink implements FileSystem.
func (v *FS) Symlink(who *Cred, dir Handle, name []byte, s *SetAttr, target []byte) (Node, error) {
	vc, vn, a, vt := v.cred(new(vcred), who), bytesOf(name), sattr(s), bytesOf(target)
	var c call
	err := v.once(&c, procSymlink, v.id, func(t *txn, p *place) (again bool) {
		return oncecalls.Symlink(&c.Call, t, v.dirs,
			p.index, p.record, p.look, p.since,
			vc, dir.Ino, dir.Gen, vn, a, vt)
	})
	return node(&c, dir, err)
}

// Mknod implements FileSystem.
func (v *FS) Mknod(who *Cred, dir Handle, name []byte, ty Type, s *SetAttr, major, minor uint32) (Node, error) {
	vc, vn, a := v.cred(new(vcred), who), bytesOf(name), sattr(s)
	var c call
	err := v.once(&c, procMknod, v.id, func(t *txn, p *place) (again bool) {
		return oncecalls.Mknod(&c.Call, t, v.dirs,
			p.index, p.record, p.look, p.since,
			vc, dir.Ino, dir.Gen, vn, uint32(ty), a, major, minor)
	})
	return node(&c, dir, err)
}

// Remove implements FileSystem.
func (v *FS) Remove(who *Cred, dir Handle, name []byte) (WCC, error) {
	return v.remove(who, dir, name, false)
}

// Rmdir implements FileSystem.
func (v *FS) Rmdir(who *Cred, dir Handle, name []byte) (WCC, error) {
	return v.remove(who, dir, name, true)
}

func (v *FS) remove(who *Cred, dir Handle, name []byte, sub bool) (WCC, error) {
	p := uint32(procRemove)
	if sub {
		p = procRmdir
	}
	w, leave, err := v.together()
	if err != nil {
		return WCC{}, err
	}
	defer leave()
	vc, vn := v.cred(new(vcred), who), bytesOf(name)
	file := w.losing(dir, name)
	var c call
	err = w.once(&c, p, v.id, func(t *txn, p *place) (again bool) {
		return oncecalls.Remove(&c.Call, t, v.dirs,
			p.index, p.record, p.look, p.since,
			vc, dir.Ino, dir.Gen, vn, sub)
	})
	w.forget(file, err)
	return c.wcc(dir.Ino), err
}

// Rename implements FileSystem.
func (v *FS) Rename(who *Cred, from Handle, fromName []byte, to Handle, toName []byte) (WCC, WCC, error) {
	w, leave, err := v.together()
	if err != nil {
		return WCC{}, WCC{}, err
	}
	defer leave()
	vc, fn, tn := v.cred(new(vcred), who), bytesOf(fromName), bytesOf(toName)
	file := w.losing(to, toName)
	var c call
	err = w.once(&c, procRename, v.id, func(t *txn, p *place) (again bool) {
		return oncecalls.Rename(&c.Call, t, v.dirs,
			p.index, p.record, p.look, p.since,
			vc, from.Ino, from.Gen, fn, to.Ino, to.Gen, tn)
	})
	w.forget(file, err)
	return c.wcc(from.Ino), c.wcc2(to.Ino), err
}

// Link implements FileSystem.
func (v *FS) Link(who *Cred, file, dir Handle, name []byte) (*Attr, WCC, error) {
	vc, vn := v.cred(new(vcred), who), bytesOf(name)
	var c call
	err := v.once(&c, procLink, v.id, func(t *txn, p *place) (again bool) {
		return oncecalls.Link(&c.Call, t, v.dirs,
			p.index, p.record, p.look, p.since,
			vc, file.Ino, file.Gen, dir.Ino, dir.Gen, vn)
	})
	return c.attr(file.Ino), c.wcc(dir.Ino), err
}
