package fs

import (
	"encoding/binary"

	"tansy/internal/gen/attributechanges"
	"tansy/internal/gen/attributeops"
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
	p := ip.Data
	u32 := func(off int) uint32 { return binary.LittleEndian.Uint32(p[off:]) }
	u64 := func(off int) uint64 { return binary.LittleEndian.Uint64(p[off:]) }
	return Attr{
		Type: Type(u32(0)), Mode: u32(4) & 0o7777, Nlink: u32(8), UID: u32(12), GID: u32(16),
		Major: u32(20), Minor: u32(24), Size: u64(32), Used: attributechanges.Companion_Default___.Used(ip), Ino: ino, Gen: u64(48),
		Atime: Time{u64(56), u32(80)}, Mtime: Time{u64(64), u32(84)}, Ctime: Time{u64(72), u32(88)},
	}
}

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
