package fs

import (
	"tansy/internal/gen/attributeops"
	"tansy/internal/gen/createops"
	"tansy/internal/gen/onceops"
	"tansy/internal/gen/removeops"
	"tansy/internal/gen/renameops"
)

// The procedures that must not be done twice. Each is one call of verified code: with a place for a record, or without one (p is nil),
// as for callers that do not send calls again, and on volumes that were made without places.

// Once implements OnceFileSystem.
func (v *FS) Once(id *CallID) FileSystem { return &FS{v.volume, id} }

// once is run for a call that may come again, if id is not nil.
func (v *FS) once(c *call, p uint32, id *CallID, op func(t *txn, p *place) (st uint32, again bool)) error {
	at := v.replies.begin(id)
	c.Make(p, 0, v.deferred, 0)
	c.Record = at != nil
	again := false
	err := v.serve(c, func(t *txn) (st uint32) {
		var to *place
		if c.Record {
			to = at
		}
		st, again = op(t, to)
		return st
	})
	v.replies.end(at, c.Record && err == nil && !again, again)
	if at != nil && !c.Record && err != ErrIO { // it was the record that could not be read
		v.replies.broke(at)
	}
	return err
}

func (v *FS) create(t *txn, p *place, c *vcred, dir Handle, name *buf, how CreateHow, a *attributeops.Sattr, verf uint64) (st uint32, again bool, ino uint64, ip, before, after *buf, later bool) {
	sec, nsec := v.now()
	if p == nil {
		st, ino, ip, before, after, later = createops.Companion_Default___.Create(t, v.dirs, c, dir.Ino, dir.Gen, name, uint32(how), a, verf, sec, nsec)
		return
	}
	return onceops.Companion_Default___.Create(t, v.dirs, p.index, p.record(), p.look, p.since, c, dir.Ino, dir.Gen, name, uint32(how), a, verf, sec, nsec)
}

func (v *FS) mkdir(t *txn, p *place, c *vcred, dir Handle, name *buf, a *attributeops.Sattr) (st uint32, again bool, ino uint64, ip, before, after *buf) {
	sec, nsec := v.now()
	if p == nil {
		st, ino, ip, before, after = createops.Companion_Default___.Mkdir(t, v.dirs, c, dir.Ino, dir.Gen, name, a, sec, nsec)
		return
	}
	return onceops.Companion_Default___.Mkdir(t, v.dirs, p.index, p.record(), p.look, p.since, c, dir.Ino, dir.Gen, name, a, sec, nsec)
}

func (v *FS) symlink(t *txn, p *place, c *vcred, dir Handle, name *buf, a *attributeops.Sattr, target *buf) (st uint32, again bool, ino uint64, ip, before, after *buf) {
	sec, nsec := v.now()
	if p == nil {
		st, ino, ip, before, after = createops.Companion_Default___.Symlink(t, v.dirs, c, dir.Ino, dir.Gen, name, a, target, sec, nsec)
		return
	}
	return onceops.Companion_Default___.Symlink(t, v.dirs, p.index, p.record(), p.look, p.since, c, dir.Ino, dir.Gen, name, a, target, sec, nsec)
}

func (v *FS) mknod(t *txn, p *place, c *vcred, dir Handle, name *buf, ty Type, a *attributeops.Sattr, major, minor uint32) (st uint32, again bool, ino uint64, ip, before, after *buf) {
	sec, nsec := v.now()
	if p == nil {
		st, ino, ip, before, after = createops.Companion_Default___.Mknod(t, v.dirs, c, dir.Ino, dir.Gen, name, uint32(ty), a, major, minor, sec, nsec)
		return
	}
	return onceops.Companion_Default___.Mknod(t, v.dirs, p.index, p.record(), p.look, p.since, c, dir.Ino, dir.Gen, name, uint32(ty), a, major, minor, sec, nsec)
}

func (v *FS) unlink(t *txn, p *place, c *vcred, dir Handle, name *buf, sub bool) (st uint32, again bool, before, after *buf, later bool) {
	sec, nsec := v.now()
	if p == nil {
		st, before, after, later = removeops.Companion_Default___.Remove(t, v.dirs, c, dir.Ino, dir.Gen, name, sub, sec, nsec)
		return
	}
	return onceops.Companion_Default___.Remove(t, v.dirs, p.index, p.record(), p.look, p.since, c, dir.Ino, dir.Gen, name, sub, sec, nsec)
}

func (v *FS) rename(t *txn, p *place, c *vcred, from Handle, fromName *buf, to Handle, toName *buf) (st uint32, again bool, fb, fa, tb, ta *buf, later bool) {
	sec, nsec := v.now()
	if p == nil {
		st, fb, fa, tb, ta, later = renameops.Companion_Default___.Rename(t, v.dirs, c, from.Ino, from.Gen, fromName, to.Ino, to.Gen, toName, sec, nsec)
		return
	}
	return onceops.Companion_Default___.Rename(t, v.dirs, p.index, p.record(), p.look, p.since, c, from.Ino, from.Gen, fromName, to.Ino, to.Gen, toName, sec, nsec)
}

func (v *FS) link(t *txn, p *place, c *vcred, file, dir Handle, name *buf) (st uint32, again bool, ip, before, after *buf) {
	sec, nsec := v.now()
	if p == nil {
		st, ip, before, after = removeops.Companion_Default___.Link(t, v.dirs, c, file.Ino, file.Gen, dir.Ino, dir.Gen, name, sec, nsec)
		return
	}
	return onceops.Companion_Default___.Link(t, v.dirs, p.index, p.record(), p.look, p.since, c, file.Ino, file.Gen, dir.Ino, dir.Gen, name, sec, nsec)
}

func (v *FS) setattr(t *txn, p *place, c *vcred, h Handle, a *attributeops.Sattr, guarded bool, guard Time) (st uint32, again bool, before, after *buf, later bool) {
	sec, nsec := v.now()
	if p == nil {
		st, before, after, later = attributeops.Companion_Default___.Setattr(t, v.dirs, c, h.Ino, h.Gen, a, guarded, guard.Sec, guard.Nsec, sec, nsec)
		return
	}
	return onceops.Companion_Default___.Setattr(t, v.dirs, p.index, p.record(), p.look, p.since, c, h.Ino, h.Gen, a, guarded, guard.Sec, guard.Nsec, sec, nsec)
}
