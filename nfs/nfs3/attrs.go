package nfs3

import (
	"tansy/fs"
	"tansy/nfs/oncrpc"
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

func (s *Service) putGetattr(c call, a fs.Attr, err error) {
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
	if a.guard == nil {
		return s.fs.Setattr(c.cred, h, &a.attrs.SetAttr, nil)
	}
	return s.once(c).Setattr(c.cred, h, &a.attrs.SetAttr, a.guard)
}

// putWCCOnly encodes the results that are weak cache consistency data and no more.
func (s *Service) putWCCOnly(c call, w fs.WCC, err error) { s.putWCC(&c.Reply, w) }

type accessArgs struct {
	file handle
	want uint32
}

func getAccess(d *oncrpc.Decoder) accessArgs { return accessArgs{getHandle(d), d.Uint32()} }

type accessResult struct {
	granted uint32
	attr    fs.Attr
}

func (s *Service) access(c call, a accessArgs) (r accessResult, err error) {
	h, err := s.file(c, a.file)
	if err == nil {
		want := a.want & accessAll
		if c.readOnly {
			want &^= AccessModify | AccessExtend | AccessDelete
		}
		r.granted, r.attr, err = s.fs.Access(c.cred, h, want)
	}
	return r, err
}

func (s *Service) putAccess(c call, r accessResult, err error) {
	s.putPostOp(&c.Reply, r.attr.OrNil())
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

func (s *Service) putFsstat(c call, r fsstatResult, err error) {
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

type fsinfoResult struct {
	info fs.Info
	attr *fs.Attr
}

func (s *Service) fsinfo(c call, file handle) (r fsinfoResult, err error) {
	h, err := s.file(c, file)
	if err == nil {
		r.info, r.attr, err = s.fs.Fsinfo(h)
	}
	return r, err
}

func (s *Service) putFsinfo(c call, r fsinfoResult, err error) {
	e, i := &c.Reply, &r.info
	s.putPostOp(e, r.attr)
	if err == nil {
		for _, x := range [...]uint32{i.RtMax, i.RtPref, i.RtMult, i.WtMax, i.WtPref, i.WtMult, i.DtPref} {
			e.Uint32(x)
		}
		e.Uint64(i.MaxFileSize)
		putTime(e, i.TimeDelta)
		e.Uint32(i.Properties)
	}
}

type pathconfResult struct {
	conf fs.Pathconf
	attr *fs.Attr
}

func (s *Service) pathconf(c call, file handle) (r pathconfResult, err error) {
	h, err := s.file(c, file)
	if err == nil {
		r.conf, r.attr, err = s.fs.Pathconf(h)
	}
	return r, err
}

func (s *Service) putPathconf(c call, r pathconfResult, err error) {
	e := &c.Reply
	s.putPostOp(e, r.attr)
	if err == nil {
		e.Uint32(r.conf.LinkMax)
		e.Uint32(r.conf.NameMax)
		e.Bool(r.conf.NoTrunc)
		e.Bool(r.conf.ChownRestricted)
		e.Bool(r.conf.CaseInsensitive)
		e.Bool(r.conf.CasePreserving)
	}
}
