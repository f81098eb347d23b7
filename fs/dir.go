package fs

import (
	"tansy/internal/extern/ddir"
	"tansy/internal/gen/lookupops"
	"tansy/internal/gen/readdirops"
)

// node makes the result of an operation that finds or makes a file.
func node(ino uint64, ip *buf, dir Handle, before, after *buf, err error) (Node, error) {
	if err != nil {
		return Node{Dir: wcc(dir.Ino, before, nil, err)}, final(err)
	}
	a := decode(ino, ip)
	return Node{Handle: Handle{ino, a.Gen}, Attr: *a, Dir: wcc(dir.Ino, before, after, nil)}, nil
}

// Lookup implements FileSystem.
func (v *FS) Lookup(c *Cred, dir Handle, name []byte) (Node, error) {
	vc, vn := cred(c), bytesOf(name)
	var ino uint64
	var ip, dp *buf
	err := v.run(procLookup, 0, func(t *txn) (st uint32) {
		st, ino, ip, dp = lookupops.Companion_Default___.Lookup(t, v.dirs, vc, dir.Ino, dir.Gen, vn)
		return st
	})
	return node(ino, ip, dir, dp, dp, err)
}

// Create implements FileSystem.
func (v *FS) Create(c *Cred, dir Handle, name []byte, how CreateHow, s *SetAttr, verf uint64) (Node, error) {
	id := v.call
	if how == Exclusive {
		s, id = nil, nil // the verifier tells whether it comes again
	}
	vc, vn, a := cred(c), bytesOf(name), sattr(s)
	var ino uint64
	var ip, before, after *buf
	var later bool
	op := func() error {
		return v.once(procCreate, id, func(t *txn, p *place) (st uint32, again bool) {
			st, again, ino, ip, before, after, later = v.create(t, p, vc, dir, vn, how, a, verf)
			return
		})
	}
	err := op()
	for err == errShrinkFirst { // an existing file is truncated to a size it had not before
		if err = v.shrink(ino); err == nil {
			err = op()
		}
	}
	if err == nil && later {
		v.free.wake()
	}
	return node(ino, ip, dir, before, after, err)
}

// Mkdir implements FileSystem.
func (v *FS) Mkdir(c *Cred, dir Handle, name []byte, s *SetAttr) (Node, error) {
	vc, vn, a := cred(c), bytesOf(name), sattr(s)
	var ino uint64
	var ip, before, after *buf
	err := v.once(procMkdir, v.call, func(t *txn, p *place) (st uint32, again bool) {
		st, again, ino, ip, before, after = v.mkdir(t, p, vc, dir, vn, a)
		return
	})
	return node(ino, ip, dir, before, after, err)
}

// Symlink implements FileSystem.
func (v *FS) Symlink(c *Cred, dir Handle, name []byte, s *SetAttr, target []byte) (Node, error) {
	vc, vn, a, vt := cred(c), bytesOf(name), sattr(s), bytesOf(target)
	var ino uint64
	var ip, before, after *buf
	err := v.once(procSymlink, v.call, func(t *txn, p *place) (st uint32, again bool) {
		st, again, ino, ip, before, after = v.symlink(t, p, vc, dir, vn, a, vt)
		return
	})
	return node(ino, ip, dir, before, after, err)
}

// Mknod implements FileSystem.
func (v *FS) Mknod(c *Cred, dir Handle, name []byte, ty Type, s *SetAttr, major, minor uint32) (Node, error) {
	vc, vn, a := cred(c), bytesOf(name), sattr(s)
	var ino uint64
	var ip, before, after *buf
	err := v.once(procMknod, v.call, func(t *txn, p *place) (st uint32, again bool) {
		st, again, ino, ip, before, after = v.mknod(t, p, vc, dir, vn, ty, a, major, minor)
		return
	})
	return node(ino, ip, dir, before, after, err)
}

// Remove implements FileSystem.
func (v *FS) Remove(c *Cred, dir Handle, name []byte) (WCC, error) {
	return v.remove(c, dir, name, false)
}

// Rmdir implements FileSystem.
func (v *FS) Rmdir(c *Cred, dir Handle, name []byte) (WCC, error) {
	return v.remove(c, dir, name, true)
}

func (v *FS) remove(c *Cred, dir Handle, name []byte, sub bool) (WCC, error) {
	p := uint32(procRemove)
	if sub {
		p = procRmdir
	}
	vc, vn := cred(c), bytesOf(name)
	var before, after *buf
	var later bool
	err := v.once(p, v.call, func(t *txn, p *place) (st uint32, again bool) {
		st, again, before, after, later = v.unlink(t, p, vc, dir, vn, sub)
		return
	})
	if err == nil && later {
		v.free.wake()
	}
	return wcc(dir.Ino, before, after, err), final(err)
}

// Rename implements FileSystem.
func (v *FS) Rename(c *Cred, from Handle, fromName []byte, to Handle, toName []byte) (WCC, WCC, error) {
	vc, fn, tn := cred(c), bytesOf(fromName), bytesOf(toName)
	var fb, fa, tb, ta *buf
	var later bool
	err := v.once(procRename, v.call, func(t *txn, p *place) (st uint32, again bool) {
		st, again, fb, fa, tb, ta, later = v.rename(t, p, vc, from, fn, to, tn)
		return
	})
	if err == nil && later {
		v.free.wake()
	}
	return wcc(from.Ino, fb, fa, err), wcc(to.Ino, tb, ta, err), final(err)
}

// Link implements FileSystem.
func (v *FS) Link(c *Cred, file, dir Handle, name []byte) (*Attr, WCC, error) {
	vc, vn := cred(c), bytesOf(name)
	var ip, before, after *buf
	err := v.once(procLink, v.call, func(t *txn, p *place) (st uint32, again bool) {
		st, again, ip, before, after = v.link(t, p, vc, file, dir, vn)
		return
	})
	return attrs(file.Ino, ip, err), wcc(dir.Ino, before, after, err), final(err)
}

// Readdir implements FileSystem.
func (v *FS) Readdir(c *Cred, dir Handle, cookie, verf uint64, plus bool, maxBytes int, size func(nameLen int) int) (Listing, error) {
	vc := cred(c)
	var l *ddir.List
	var eof bool
	var dp *buf
	p, list := uint32(procReaddir), readdirops.Companion_Default___.Readdir
	if plus {
		p, list = procReaddirplus, readdirops.Companion_Default___.Readdirplus
	}
	err := v.run(p, 0, func(t *txn) (st uint32) {
		l = ddir.New(maxBytes, size)
		st, eof, dp = list(t, v.dirs, vc, dir.Ino, dir.Gen, cookie, verf, l)
		return st
	})
	r := Listing{Dir: attrs(dir.Ino, dp, err)}
	if err != nil {
		return r, final(err)
	}
	r.EOF = eof
	r.Entries = make([]Entry, len(l.Entries))
	for i, e := range l.Entries {
		r.Entries[i] = Entry{Ino: e.Ino, Name: e.Name, Cookie: e.Cookie}
		if e.Attr != nil {
			a := decode(e.Ino, bytesOf(e.Attr))
			r.Entries[i].Attr, r.Entries[i].Handle = a, Handle{e.Ino, a.Gen}
		}
	}
	return r, nil
}
