package fs

import (
	"bytes"
	"math"
	"sync/atomic"

	"tansy/internal/gen/fs/exec/calls"
	"tansy/internal/gen/fs/exec/exec"
	"tansy/internal/gen/fs/exec/localcalls"
)

// Extended attributes (verified/fs/spec/xattr.s.dfy), which local mounts have. NFS clients see nothing of them.

// xattrState is what a volume remembers of them, so that one without any takes no time for them. It is on the careful
// side.
type xattrState struct {
	some atomic.Bool // some inode may have any
	// So often has a file begun to get capabilities, and was that over. None has begun: no file has any.
	capsBegun, capsOver atomic.Uint64
	lists               accessLists // which lie with them
}

// underWay is what capsSettled returns while a file gets capabilities: more than capsBegun ever counts.
const underWay = math.MaxUint64

// capsSettled returns how often files have got capabilities, or underWay. It asks first what was over: if no more has
// begun when it asks for that, none was under way in between.
func (x *xattrState) capsSettled() uint64 {
	over := x.capsOver.Load()
	if begun := x.capsBegun.Load(); begun == over {
		return begun
	}
	return underWay
}

// capability is the attribute that gives rights to a program. It must not outlive a change of the program.
var capability = []byte("security.capability")

// found says that the volume has attributes.
func (x *xattrState) found() {
	x.some.Store(true)
	x.capsBegun.Store(1)
	x.capsOver.Store(1)
}

// GetXattr returns the value of an extended attribute. The error is ErrNoEnt if the file has none of that name.
func (v *FS) GetXattr(h Handle, name []byte) ([]byte, error) {
	if !v.xattrs.some.Load() && !v.calls.Closed() {
		return nil, ErrNoEnt
	}
	return v.getXattr(h, name)
}

// getXattr is GetXattr, also where files have none.
func (v *FS) getXattr(h Handle, name []byte) ([]byte, error) {
	vn := bytesOf(name)
	var c call
	var value *buf
	err := v.run(&c, procGetattr, func(t *txn) {
		value = localcalls.GetXattr(&c.Call, t, v.dirs, h.Ino, h.Gen, vn)
	})
	if err != nil {
		return nil, err
	}
	return value.Data, nil
}

// ListXattr returns the names of all extended attributes of a file, but for those of notes. A zero byte ends each name.
func (v *FS) ListXattr(h Handle) ([]byte, error) {
	if !v.xattrs.some.Load() && !v.calls.Closed() {
		return nil, nil
	}
	return v.listXattr(h)
}

// listXattr is ListXattr, also where files have none.
func (v *FS) listXattr(h Handle) ([]byte, error) {
	var c call
	var names *buf
	err := v.run(&c, procGetattr, func(t *txn) {
		names = localcalls.ListXattr(&c.Call, t, v.dirs, h.Ino, h.Gen)
	})
	if err != nil {
		return nil, err
	}
	return withoutNotes(names.Data), nil
}

// SetXattr sets an extended attribute. With create it must not be there (else ErrExist); with replace it must be (else
// ErrNoEnt). The error is ErrNoSpc if all attributes of the file would take more than a block, or if no block is free;
// ErrPerm if it is immutable or append-only.
func (v *FS) SetXattr(h Handle, name, value []byte, create, replace bool) error {
	v.xattrs.some.Store(true)
	if bytes.Equal(name, capability) {
		v.xattrs.capsBegun.Add(1)
		defer v.xattrs.capsOver.Add(1)
	}
	return v.setXattr(h, name, value, create, replace)
}

// setXattr is SetXattr, but tells nobody that capabilities come.
func (v *FS) setXattr(h Handle, name, value []byte, create, replace bool) error {
	vn, vv := bytesOf(name), bytesOf(value)
	var c call
	return v.run(&c, exec.LOCAL(), func(t *txn) {
		localcalls.SetXattr(&c.Call, t, v.dirs, h.Ino, h.Gen, vn, vv, create, replace, false)
	})
}

// RemoveXattr removes an extended attribute. The error is ErrNoEnt if the file has none of that name, and ErrPerm if it
// is immutable or append-only.
func (v *FS) RemoveXattr(h Handle, name []byte) error { return v.removeXattr(h, name, false) }

// removeXattr is RemoveXattr. own: the server does it of itself, so that flags do not forbid it.
func (v *FS) removeXattr(h Handle, name []byte, own bool) error {
	vn := bytesOf(name)
	var c call
	return v.run(&c, exec.LOCAL(), func(t *txn) {
		localcalls.RemoveXattr(&c.Call, t, v.dirs, h.Ino, h.Gen, vn, own)
	})
}

// ---- capabilities ----

// A change of a file's contents or owner takes its capabilities away, as Linux has it, whoever makes the change: before
// it, so that no crash leaves them to what comes after. changed is told afterwards, with what this returned:
// capabilities that came meanwhile go, too, also those that were under way before. The caller has entered.
func (v *FS) changing(who *Cred, h Handle) (since uint64) {
	since = v.xattrs.capsSettled()
	if since == 0 {
		return since
	}
	if v := v.part(); v.capable(h) && v.mayChange(who, h) {
		v.dropCapability(h)
	}
	return since
}

// changed comes after a change. since is 0 if changing did not come before it.
func (v *FS) changed(h Handle, since uint64, err error) {
	if err != nil || v.xattrs.capsBegun.Load() == since {
		return
	}
	if v := v.part(); v.capable(h) {
		v.dropCapability(h)
	}
}

// capable tells whether a file has capabilities.
func (v *FS) capable(h Handle) bool {
	_, err := v.GetXattr(h, capability)
	return err == nil
}

// mayChange tells whether a call that changes h may be answered with success: who is refused must not take anything
// away.
func (v *FS) mayChange(who *Cred, h Handle) bool {
	if flags, err := v.Flags(h); err != nil || flags&FlagImmutable != 0 {
		return false
	}
	if who.UID == 0 {
		return true
	}
	granted, a, err := v.Access(who, h, accessChange)
	return err == nil && (granted != 0 || a.UID == who.UID)
}

func (v *FS) dropCapability(h Handle) {
	if err := v.Deferring().removeXattr(h, capability, true); err != nil && err != ErrNoEnt && err != ErrStale {
		v.log.Error("a file that is being changed keeps its capabilities", "inode", h.Ino, "err", err)
	}
}

// ---- files that go ----

// losing is the inode that goes if a name of a directory does, or 0; it is looked for only if the volume has
// attributes.
func (v *FS) losing(dir Handle, name []byte) uint64 {
	if !v.xattrs.some.Load() {
		return 0
	}
	n, err := v.part().Lookup(&Cred{}, dir, name)
	if err != nil || n.Attr.Type != Directory && n.Attr.Nlink > 1 {
		return 0
	}
	return n.Handle.Ino
}

// forget gives back the room of the attributes of a file that has gone. If it is there for all that, nothing happens.
// What a crash, or somebody else's rename, keeps this from takes a block until the inode gets attributes again, or
// tansy repair finds it.
func (v *FS) forget(ino uint64, err error) {
	if err != nil || ino == 0 || !v.xattrs.some.Load() || v.refusesChanges() {
		return
	}
	there := false
	var c call
	err = v.part().run(&c, procGetattr, func(t *txn) {
		there = localcalls.HasXattrs(&c.Call, t, v.dirs, ino)
	})
	if err == nil && there {
		err = v.background(exec.FREE(), func(c *calls.Call, t *txn) { localcalls.ForgetXattrs(c, t, v.dirs, ino) })
	}
	if err != nil {
		v.log.Error("the extended attributes of a removed file still take room", "inode", ino, "err", err)
	}
}
