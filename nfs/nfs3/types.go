package nfs3

import (
	"math"

	"tansy/fs"
	"tansy/nfs/oncrpc"
)

// The structures of RFC 1813, section 2.5 and 2.6, on the wire.

func putTime(e *oncrpc.Encoder, t fs.Time) {
	if int64(t.Sec) < 0 { // before 1970, as mounts of old could set it: nfstime3 begins there
		t = fs.Time{}
	}
	e.Uint32(uint32(min(t.Sec, math.MaxUint32))) // and ends in 2106
	e.Uint32(t.Nsec)
}

func getTime(d *oncrpc.Decoder) fs.Time {
	return fs.Time{Sec: uint64(d.Uint32()), Nsec: d.Uint32()}
}

// putAttr encodes fattr3.
func (s *Service) putAttr(e *oncrpc.Encoder, a *fs.Attr) {
	e.Uint32(uint32(a.Type))
	e.Uint32(a.Mode)
	e.Uint32(a.Nlink)
	e.Uint32(a.UID)
	e.Uint32(a.GID)
	e.Uint64(a.Size)
	e.Uint64(a.Used)
	e.Uint32(a.Major)
	e.Uint32(a.Minor)
	e.Uint64(s.fsid)
	e.Uint64(a.Ino)
	putTime(e, a.Atime)
	putTime(e, a.Mtime)
	putTime(e, a.Ctime)
}

// putPostOp encodes post_op_attr.
func (s *Service) putPostOp(e *oncrpc.Encoder, a *fs.Attr) {
	e.Bool(a != nil)
	if a != nil {
		s.putAttr(e, a)
	}
}

// putWCC encodes wcc_data.
func (s *Service) putWCC(e *oncrpc.Encoder, w fs.WCC) {
	e.Bool(w.Before != nil)
	if w.Before != nil {
		e.Uint64(w.Before.Size)
		putTime(e, w.Before.Mtime)
		putTime(e, w.Before.Ctime)
	}
	s.putPostOp(e, w.After)
}

// putHandle encodes nfs_fh3.
func (s *Service) putHandle(c call, h fs.Handle) {
	c.export.handles.put(c.Scratch[32:], h, &c.Scratch)
	c.Reply.Opaque(c.Scratch[32:])
}

// sattr is fs.SetAttr with room for the values, so that it is one allocation.
type sattr struct {
	fs.SetAttr
	mode, uid, gid uint32
	size           uint64
}

// getSattr decodes sattr3.
func getSattr(d *oncrpc.Decoder) *sattr {
	s := new(sattr)
	if d.Bool() {
		s.mode = d.Uint32()
		s.Mode = &s.mode
	}
	if d.Bool() {
		s.uid = d.Uint32()
		s.UID = &s.uid
	}
	if d.Bool() {
		s.gid = d.Uint32()
		s.GID = &s.gid
	}
	if d.Bool() {
		s.size = d.Uint64()
		s.Size = &s.size
	}
	s.AtimeHow, s.Atime = getSetTime(d)
	s.MtimeHow, s.Mtime = getSetTime(d)
	return s
}

// getSetTime decodes set_atime or set_mtime.
func getSetTime(d *oncrpc.Decoder) (how fs.TimeHow, t fs.Time) {
	switch d.Uint32() {
	case 0:
		return fs.DontChange, t
	case 1:
		return fs.ServerTime, t
	case 2:
		return fs.ClientTime, getTime(d)
	}
	d.Fail()
	return fs.DontChange, t
}

// handle is an nfs_fh3 as it came: any bytes, at most maxHandle.
type handle []byte

func getHandle(d *oncrpc.Decoder) handle { return d.Opaque(maxHandle) }

// dirop is diropargs3. The length of the name is the file system's to judge.
type dirop struct {
	dir  handle
	name []byte
}

func getDirop(d *oncrpc.Decoder) dirop { return dirop{getHandle(d), d.Opaque(math.MaxInt32)} }
