package nfs3

import (
	"math"

	"tansy/fs"
	"tansy/oncrpc"
)

// LOOKUP, CREATE, MKDIR, SYMLINK, MKNOD, REMOVE, RMDIR, RENAME, LINK: the names
// in directories.

// dirop decodes diropargs3.
func (s *Service) dirop(c *call) (fs.Handle, []byte, error) {
	h, err := s.handle(c)
	return h, getName(&c.Args), err
}

func (s *Service) lookup(c *call) oncrpc.Accept {
	dir, name, err := s.dirop(c)
	if !c.Args.Ok() {
		return oncrpc.GarbageArgs
	}
	var n fs.Node
	if err == nil {
		n, err = s.fs.Lookup(c.cred, dir, name)
	}
	c.Reply.Uint32(s.status(c, err))
	if err == nil {
		s.putHandle(c, n.Handle)
		s.putPostOp(&c.Reply, &n.Attr)
	}
	s.putPostOp(&c.Reply, n.Dir.After)
	return oncrpc.Success
}

// created encodes the result of the operations that make a file.
func (s *Service) created(c *call, n fs.Node, err error) oncrpc.Accept {
	c.Reply.Uint32(s.status(c, err))
	if err == nil {
		c.Reply.Bool(true)
		s.putHandle(c, n.Handle)
		s.putPostOp(&c.Reply, &n.Attr)
	}
	s.putWCC(&c.Reply, n.Dir)
	return oncrpc.Success
}

func (s *Service) create(c *call) oncrpc.Accept {
	dir, name, err := s.dirop(c)
	how := fs.CreateHow(c.Args.Uint32())
	attrs := new(sattr)
	var verf uint64
	switch how {
	case fs.Unchecked, fs.Guarded:
		attrs = getSattr(&c.Args)
	case fs.Exclusive:
		verf = c.Args.Uint64()
	default:
		c.Args.Fail()
	}
	if !c.Args.Ok() {
		return oncrpc.GarbageArgs
	}
	var n fs.Node
	if err == nil {
		n, err = s.fs.Create(c.cred, dir, name, how, &attrs.SetAttr, verf)
	}
	return s.created(c, n, err)
}

func (s *Service) mkdir(c *call) oncrpc.Accept {
	dir, name, err := s.dirop(c)
	attrs := getSattr(&c.Args)
	if !c.Args.Ok() {
		return oncrpc.GarbageArgs
	}
	var n fs.Node
	if err == nil {
		n, err = s.fs.Mkdir(c.cred, dir, name, &attrs.SetAttr)
	}
	return s.created(c, n, err)
}

func (s *Service) symlink(c *call) oncrpc.Accept {
	dir, name, err := s.dirop(c)
	attrs := getSattr(&c.Args)
	target := c.Args.Opaque(math.MaxInt32)
	if !c.Args.Ok() {
		return oncrpc.GarbageArgs
	}
	var n fs.Node
	if err == nil {
		n, err = s.fs.Symlink(c.cred, dir, name, &attrs.SetAttr, target)
	}
	return s.created(c, n, err)
}

func (s *Service) mknod(c *call) oncrpc.Accept {
	dir, name, err := s.dirop(c)
	t := fs.Type(c.Args.Uint32())
	attrs := new(sattr)
	var major, minor uint32
	switch t {
	case fs.Char, fs.Block:
		attrs = getSattr(&c.Args)
		major, minor = c.Args.Uint32(), c.Args.Uint32()
	case fs.Socket, fs.FIFO:
		attrs = getSattr(&c.Args)
	default: // nothing follows, and the file system answers BADTYPE
	}
	if !c.Args.Ok() {
		return oncrpc.GarbageArgs
	}
	var n fs.Node
	if err == nil {
		n, err = s.fs.Mknod(c.cred, dir, name, t, &attrs.SetAttr, major, minor)
	}
	return s.created(c, n, err)
}

func (s *Service) remove(c *call) oncrpc.Accept { return s.unlink(c, s.fs.Remove) }
func (s *Service) rmdir(c *call) oncrpc.Accept  { return s.unlink(c, s.fs.Rmdir) }

func (s *Service) unlink(c *call, do func(*fs.Cred, fs.Handle, []byte) (fs.WCC, error)) oncrpc.Accept {
	dir, name, err := s.dirop(c)
	if !c.Args.Ok() {
		return oncrpc.GarbageArgs
	}
	var w fs.WCC
	if err == nil {
		w, err = do(c.cred, dir, name)
	}
	c.Reply.Uint32(s.status(c, err))
	s.putWCC(&c.Reply, w)
	return oncrpc.Success
}

func (s *Service) rename(c *call) oncrpc.Accept {
	from, fromName, err := s.dirop(c)
	to, toName, toErr := s.dirop(c)
	if !c.Args.Ok() {
		return oncrpc.GarbageArgs
	}
	if err == nil {
		err = toErr
	}
	var w, toW fs.WCC
	if err == nil {
		w, toW, err = s.fs.Rename(c.cred, from, fromName, to, toName)
	}
	c.Reply.Uint32(s.status(c, err))
	s.putWCC(&c.Reply, w)
	s.putWCC(&c.Reply, toW)
	return oncrpc.Success
}

func (s *Service) link(c *call) oncrpc.Accept {
	file, err := s.handle(c)
	dir, name, dirErr := s.dirop(c)
	if !c.Args.Ok() {
		return oncrpc.GarbageArgs
	}
	if err == nil {
		err = dirErr
	}
	var a *fs.Attr
	var w fs.WCC
	if err == nil {
		a, w, err = s.fs.Link(c.cred, file, dir, name)
	}
	c.Reply.Uint32(s.status(c, err))
	s.putPostOp(&c.Reply, a)
	s.putWCC(&c.Reply, w)
	return oncrpc.Success
}
