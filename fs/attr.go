package fs

import (
	"tansy/internal/gen/attributeops"
	"tansy/internal/gen/conversions"
)

// inodeSize is the size of a serialized inode; verified/fs/format/inode.dfy has the layout.
const inodeSize = 256

// decode returns the attributes in a serialized inode, nil for nil. It is small, to be inlined: who copies the attributes takes
// nothing of the heap then.
func decode(ino uint64, ip *buf) *Attr {
	if ip == nil || len(ip.Data) != inodeSize {
		return nil
	}
	a := attributes(ino, ip)
	return &a
}

// attributes are those in a serialized inode.
func attributes(ino uint64, ip *buf) Attr {
	a, ty := Attr{Ino: ino}, uint32(0)
	ty, a.Mode, a.Nlink, a.UID, a.GID, a.Major, a.Minor, a.Size, a.Used, a.Gen, a.Atime.Sec, a.Atime.Nsec, a.Mtime.Sec, a.Mtime.Nsec, a.Ctime.Sec, a.Ctime.Nsec = converted.Attributes(ip)
	a.Type = Type(ty)
	return a
}

// What lies where in inodes and records (verified/fs/procedures/conversions.dfy).
var converted = conversions.Companion_Default___

// wcc makes weak cache consistency data of the attributes before and after.
func wcc(ino uint64, before, after *buf) WCC {
	w := WCC{Before: decode(ino, before)}
	if after == before {
		w.After = w.Before
	} else {
		w.After = decode(ino, after)
	}
	return w
}

// cred makes r the caller c. Who gives a new one has it on the stack, if the verified code does not keep it.
func cred(r *vcred, c *Cred) *vcred {
	r.Make(c.UID, c.GID, groupsOf(c.GIDs))
	return r
}

// sattr converts the attributes to set.
func sattr(s *SetAttr) *attributeops.Sattr {
	r := attributeops.New_Sattr_()
	r.Make()
	if s == nil {
		return r
	}
	if s.Mode != nil {
		r.SetMode(*s.Mode)
	}
	if s.UID != nil {
		r.SetUid(*s.UID)
	}
	if s.GID != nil {
		r.SetGid(*s.GID)
	}
	if s.Size != nil {
		r.SetSize(*s.Size)
	}
	r.SetAtime(uint32(s.AtimeHow), s.Atime.Sec, s.Atime.Nsec)
	r.SetMtime(uint32(s.MtimeHow), s.Mtime.Sec, s.Mtime.Nsec)
	return r
}
