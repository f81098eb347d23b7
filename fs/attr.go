package fs

import (
	"tansy/internal/gen/fs/exec/calls"
	"tansy/internal/gen/fs/procedures/attributeops"
	"tansy/internal/gen/fs/procedures/conversions"
	"tansy/internal/gen/fs/procedures/permissions"
	"tansy/internal/layout"
	"tansy/internal/runtime/dbytes"
	"tansy/internal/runtime/dtxn"
)

// What the protocol has and what verified code has, in terms of each other.

// Short names for what is called everywhere.
type (
	txn   = dtxn.Txn
	buf   = dbytes.Bytes
	vcred = permissions.Cred
)

func bytesOf(b []byte) *buf { return &buf{Data: b} }

// A call is one of a client, or of the background. The attributes that the verified Call has are serialized inodes, in
// memory that is used again as soon as they have been decoded. Verified code puts them there.
type call struct {
	calls.Call
	file            Attr // those attributes, but for the inode's number
	before, after   Attr
	before2, after2 Attr
}

// decode decodes the attributes. What is left of those that the Call has tells only whether they are known.
func (c *call) decode() {
	c.File = c.file.decode(c.File)
	c.Before = c.before.decode(c.Before)
	c.After = c.after.decode(c.After)
	c.Before2 = c.before2.decode(c.Before2)
	c.After2 = c.after2.decode(c.After2)
}

// decode returns nil if ip is none.
func (a *Attr) decode(ip *buf) *buf {
	if ip == nil || len(ip.Data) != layout.InodeSize {
		return nil
	}
	*a = attributes(0, ip)
	return ip
}

// of returns a as the attributes of inode ino, or nil if there are none. It is small, to be inlined: who copies the
// attributes takes nothing of the heap then.
func (a Attr) of(ino uint64, decoded *buf) *Attr {
	if decoded == nil {
		return nil
	}
	a.Ino = ino
	return &a
}

// attr are the attributes of the file, which is inode ino.
func (c *call) attr(ino uint64) *Attr { return c.file.of(ino, c.File) }

// orZero is a, or zero if that is nil.
func orZero(a *Attr) Attr {
	if a == nil {
		return Attr{}
	}
	return *a
}

// attributes are those in a serialized inode.
func attributes(ino uint64, ip *buf) Attr {
	var a conversions.Attributes
	a.Decode(ip)
	return Attr{
		Ino: ino, Gen: a.Gen, Type: Type(a.Ty), Mode: a.Mode, Nlink: a.Nlink, UID: a.Uid, GID: a.Gid,
		Major: a.Major, Minor: a.Minor, Size: a.Size, Used: a.Used,
		Atime: Time{a.Atime, a.Atimens}, Mtime: Time{a.Mtime, a.Mtimens}, Ctime: Time{a.Ctime, a.Ctimens},
	}
}

// wcc is the weak cache consistency data of inode ino.
func (c *call) wcc(ino uint64) WCC {
	w := WCC{Before: c.before.of(ino, c.Before)}
	if c.After == c.Before {
		w.After = w.Before
	} else {
		w.After = c.after.of(ino, c.After)
	}
	return w
}

// wcc2 is wcc of the second directory of a call.
func (c *call) wcc2(ino uint64) WCC {
	return WCC{Before: c.before2.of(ino, c.Before2), After: c.after2.of(ino, c.After2)}
}

// cred makes r the caller c of a volume. Who gives a new one has it on the stack, if the verified code does not keep
// it.
func (v *volume) cred(r *vcred, c *Cred) *vcred {
	r.Make(c.UID, c.GID, groupsOf(c.GIDs), &v.xattrs.lists.table)
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
