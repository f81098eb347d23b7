package nfs3

import (
	"tansy/fs"
	"tansy/oncrpc"
)

// READLINK, READ, WRITE, COMMIT: what files hold.

func (s *Service) readlink(c *call) oncrpc.Accept {
	h, err := s.handle(c)
	if !c.Args.Ok() {
		return oncrpc.GarbageArgs
	}
	var target []byte
	var a *fs.Attr
	if err == nil {
		target, a, err = s.fs.Readlink(c.cred, h)
	}
	c.Reply.Uint32(s.status(c, err))
	s.putPostOp(&c.Reply, a)
	if err == nil {
		c.Reply.Opaque(target)
	}
	return oncrpc.Success
}

func (s *Service) read(c *call) oncrpc.Accept {
	h, err := s.handle(c)
	off, count := c.Args.Uint64(), c.Args.Uint32()
	if !c.Args.Ok() {
		return oncrpc.GarbageArgs
	}
	var data []byte
	var eof bool
	var a *fs.Attr
	if err == nil {
		data, eof, a, err = s.fs.Read(c.cred, h, off, min(count, fs.MaxIO))
	}
	c.Reply.Uint32(s.status(c, err))
	s.putPostOp(&c.Reply, a)
	if err == nil {
		c.Reply.Uint32(uint32(len(data)))
		c.Reply.Bool(eof)
		c.Reply.Data(data)
	}
	return oncrpc.Success
}

// readWeight is the memory a READ's data takes.
func readWeight(args oncrpc.Decoder) int {
	args.Opaque(maxHandle)
	args.Uint64()
	return int(min(args.Uint32(), fs.MaxIO))
}

func (s *Service) write(c *call) oncrpc.Accept {
	h, err := s.handle(c)
	off, count, how := c.Args.Uint64(), c.Args.Uint32(), c.Args.Uint32()
	data := c.Args.Opaque(fs.MaxIO)
	if !c.Args.Ok() {
		return oncrpc.GarbageArgs
	}
	var n uint32
	var committed fs.Stability
	var w fs.WCC
	if err == nil && (how > uint32(fs.FileSync) || int(count) != len(data)) {
		var a fs.Attr
		if a, err = s.fs.Getattr(h); err == nil {
			w.After, err = &a, fs.ErrInval
		}
	} else if err == nil {
		n, committed, w, err = s.fs.Write(c.cred, h, off, data, fs.Stability(how))
	}
	c.Reply.Uint32(s.status(c, err))
	s.putWCC(&c.Reply, w)
	if err == nil {
		c.Reply.Uint32(n)
		c.Reply.Uint32(uint32(committed))
		c.Reply.Uint64(s.fs.Verifier())
	}
	return oncrpc.Success
}

func (s *Service) commit(c *call) oncrpc.Accept {
	h, err := s.handle(c)
	off, count := c.Args.Uint64(), c.Args.Uint32()
	if !c.Args.Ok() {
		return oncrpc.GarbageArgs
	}
	var w fs.WCC
	if err == nil {
		w, err = s.fs.Commit(h, off, count)
	}
	c.Reply.Uint32(s.status(c, err))
	s.putWCC(&c.Reply, w)
	if err == nil {
		c.Reply.Uint64(s.fs.Verifier())
	}
	return oncrpc.Success
}
