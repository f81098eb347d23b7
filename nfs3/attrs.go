package nfs3

import (
	"tansy/fs"
	"tansy/oncrpc"
)

// GETATTR, SETATTR, ACCESS, FSSTAT, FSINFO, PATHCONF: files and the volume as
// they are described.

func (s *Service) getattr(c *call) oncrpc.Accept {
	h, err := s.handle(c)
	if !c.Args.Ok() {
		return oncrpc.GarbageArgs
	}
	var a fs.Attr
	if err == nil {
		a, err = s.fs.Getattr(h)
	}
	c.Reply.Uint32(s.status(c, err))
	if err == nil {
		s.putAttr(&c.Reply, &a)
	}
	return oncrpc.Success
}

func (s *Service) setattr(c *call) oncrpc.Accept {
	h, err := s.handle(c)
	attrs := getSattr(&c.Args)
	var guard *fs.Time
	if c.Args.Bool() {
		t := getTime(&c.Args)
		guard = &t
	}
	if !c.Args.Ok() {
		return oncrpc.GarbageArgs
	}
	var w fs.WCC
	if err == nil {
		w, err = s.fs.Setattr(c.cred, h, &attrs.SetAttr, guard)
	}
	c.Reply.Uint32(s.status(c, err))
	s.putWCC(&c.Reply, w)
	return oncrpc.Success
}

func (s *Service) access(c *call) oncrpc.Accept {
	h, err := s.handle(c)
	want := c.Args.Uint32()
	if !c.Args.Ok() {
		return oncrpc.GarbageArgs
	}
	var granted uint32
	var a *fs.Attr
	if err == nil {
		granted, a, err = s.fs.Access(c.cred, h, want&accessAll)
	}
	c.Reply.Uint32(s.status(c, err))
	s.putPostOp(&c.Reply, a)
	if err == nil {
		c.Reply.Uint32(granted)
	}
	return oncrpc.Success
}

func (s *Service) fsstat(c *call) oncrpc.Accept {
	h, err := s.handle(c)
	if !c.Args.Ok() {
		return oncrpc.GarbageArgs
	}
	var st fs.Stat
	var a *fs.Attr
	if err == nil {
		st, a, err = s.fs.Fsstat(h)
	}
	c.Reply.Uint32(s.status(c, err))
	s.putPostOp(&c.Reply, a)
	if err == nil {
		c.Reply.Uint64(st.TotalBytes)
		c.Reply.Uint64(st.FreeBytes)
		c.Reply.Uint64(st.FreeBytes) // nothing is reserved for root
		c.Reply.Uint64(st.TotalFiles)
		c.Reply.Uint64(st.FreeFiles)
		c.Reply.Uint64(st.FreeFiles)
		c.Reply.Uint32(0) // seconds the numbers stay true: none
	}
	return oncrpc.Success
}

// describe is the part that FSINFO and PATHCONF share: the handle must be good,
// and the attributes follow. It tells if the constants follow too.
func (s *Service) describe(c *call) (bool, oncrpc.Accept) {
	h, err := s.handle(c)
	if !c.Args.Ok() {
		return false, oncrpc.GarbageArgs
	}
	var a fs.Attr
	if err == nil {
		a, err = s.fs.Getattr(h)
	}
	c.Reply.Uint32(s.status(c, err))
	if err != nil {
		s.putPostOp(&c.Reply, nil)
		return false, oncrpc.Success
	}
	s.putPostOp(&c.Reply, &a)
	return true, oncrpc.Success
}

func (s *Service) fsinfo(c *call) oncrpc.Accept {
	ok, accept := s.describe(c)
	if ok {
		e := &c.Reply
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
	return accept
}

func (s *Service) pathconf(c *call) oncrpc.Accept {
	ok, accept := s.describe(c)
	if ok {
		e := &c.Reply
		e.Uint32(fs.MaxLinks) // linkmax
		e.Uint32(fs.MaxName)  // name_max
		e.Bool(true)          // no_trunc: a name too long is an error
		e.Bool(true)          // chown_restricted
		e.Bool(false)         // case_insensitive
		e.Bool(true)          // case_preserving
	}
	return accept
}
