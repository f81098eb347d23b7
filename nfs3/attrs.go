package nfs3

import (
	"tansy/fs"
	"tansy/oncrpc"
)

// GETATTR, SETATTR, ACCESS, FSSTAT, FSINFO, PATHCONF: files and the volume as
// they are described.

func (s *Service) getattr(c call, file handle) (a fs.Attr, err error) {
	h, err := s.file(c, file)
	if err != nil {
		return a, err
	}
	return s.fs.Getattr(h)
}

func (s *Service) putGetattr(c *oncrpc.Call, a fs.Attr, err error) {
	if err == nil {
		s.putAttr(&c.Reply, &a)
	}
}

type setattrArgs struct {
	file  handle
	attrs *sattr
	guard *fs.Time // nil: none
}

func getSetattr(d *oncrpc.Decoder) (a setattrArgs) {
	a.file, a.attrs = getHandle(d), getSattr(d)
	if d.Bool() {
		t := getTime(d)
		a.guard = &t
	}
	return a
}

func (s *Service) setattr(c call, a setattrArgs) (w fs.WCC, err error) {
	h, err := s.file(c, a.file)
	if err != nil {
		return w, err
	}
	return s.fs.Setattr(c.cred, h, &a.attrs.SetAttr, a.guard)
}

// putWCCOnly encodes the results that are weak cache consistency data and no more.
func (s *Service) putWCCOnly(c *oncrpc.Call, w fs.WCC, err error) { s.putWCC(&c.Reply, w) }

type accessArgs struct {
	file handle
	want uint32
}

func getAccess(d *oncrpc.Decoder) accessArgs { return accessArgs{getHandle(d), d.Uint32()} }

type accessResult struct {
	granted uint32
	attr    *fs.Attr
}

func (s *Service) access(c call, a accessArgs) (r accessResult, err error) {
	h, err := s.file(c, a.file)
	if err == nil {
		r.granted, r.attr, err = s.fs.Access(c.cred, h, a.want&accessAll)
	}
	return r, err
}

func (s *Service) putAccess(c *oncrpc.Call, r accessResult, err error) {
	s.putPostOp(&c.Reply, r.attr)
	if err == nil {
		c.Reply.Uint32(r.granted)
	}
}

type fsstatResult struct {
	stat fs.Stat
	attr *fs.Attr
}

func (s *Service) fsstat(c call, file handle) (r fsstatResult, err error) {
	h, err := s.file(c, file)
	if err == nil {
		r.stat, r.attr, err = s.fs.Fsstat(h)
	}
	return r, err
}

func (s *Service) putFsstat(c *oncrpc.Call, r fsstatResult, err error) {
	s.putPostOp(&c.Reply, r.attr)
	if err == nil {
		c.Reply.Uint64(r.stat.TotalBytes)
		c.Reply.Uint64(r.stat.FreeBytes)
		c.Reply.Uint64(r.stat.FreeBytes) // nothing is reserved for root
		c.Reply.Uint64(r.stat.TotalFiles)
		c.Reply.Uint64(r.stat.FreeFiles)
		c.Reply.Uint64(r.stat.FreeFiles)
		c.Reply.Uint32(0) // seconds the numbers stay true: none
	}
}

// describe is FSINFO and PATHCONF: the handle must be good; what follows the
// attributes are constants.
func (s *Service) describe(c call, file handle) (*fs.Attr, error) {
	a, err := s.getattr(c, file)
	if err != nil {
		return nil, err
	}
	return &a, nil
}

func (s *Service) putFsinfo(c *oncrpc.Call, a *fs.Attr, err error) {
	e := &c.Reply
	s.putPostOp(e, a)
	if err == nil {
		e.Uint32(fs.MaxIO)           // rtmax
		e.Uint32(fs.MaxIO)           // rtpref
		e.Uint32(fs.BlockSize)       // rtmult
		e.Uint32(fs.MaxIO)           // wtmax
		e.Uint32(fs.MaxIO)           // wtpref
		e.Uint32(fs.BlockSize)       // wtmult
		e.Uint32(maxListing)         // dtpref
		e.Uint64(fs.MaxSize)         // maxfilesize
		putTime(e, fs.Time{Nsec: 1}) // time_delta
		e.Uint32(propLink | propSymlink | propHomogeneous | propCanSetTime)
	}
}

func (s *Service) putPathconf(c *oncrpc.Call, a *fs.Attr, err error) {
	e := &c.Reply
	s.putPostOp(e, a)
	if err == nil {
		e.Uint32(fs.MaxLinks) // linkmax
		e.Uint32(fs.MaxName)  // name_max
		e.Bool(true)          // no_trunc: a name too long is an error
		e.Bool(true)          // chown_restricted
		e.Bool(false)         // case_insensitive
		e.Bool(true)          // case_preserving
	}
}
