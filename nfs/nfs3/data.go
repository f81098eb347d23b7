package nfs3

import (
	"tansy/fs"
	"tansy/nfs/oncrpc"
)

// READLINK, READ, WRITE, COMMIT: what files hold.

type readlinkResult struct {
	target []byte
	attr   *fs.Attr
}

func (s *Service) readlink(c call, file handle) (r readlinkResult, err error) {
	h, err := s.file(c, file)
	if err == nil {
		r.target, r.attr, err = s.fs.Readlink(c.cred, h)
	}
	return r, err
}

func (s *Service) putReadlink(c call, r readlinkResult, err error) {
	s.putPostOp(&c.Reply, r.attr)
	if err == nil {
		c.Reply.Opaque(r.target)
	}
}

type readArgs struct {
	file  handle
	off   uint64
	count uint32
}

func getRead(d *oncrpc.Decoder) readArgs { return readArgs{getHandle(d), d.Uint64(), d.Uint32()} }

// readWeight is the memory a READ's data takes.
func readWeight(args oncrpc.Decoder) int { return int(min(getRead(&args).count, fs.MaxIO)) }

type readResult struct {
	data oncrpc.Data
	eof  bool
	attr *fs.Attr
}

func (s *Service) read(c call, a readArgs) (r readResult, err error) {
	h, err := s.file(c, a.file)
	if err == nil {
		count := min(a.count, fs.MaxIO)
		if c.Limit > 0 {
			count = min(count, uint32(c.Limit)) // as RFC 1813 allows: the client asks for the rest
		}
		r, err = s.view(c, h, a.off, count)
	}
	return r, err
}

// view reads, without a copy if the file system can do that.
func (s *Service) view(c call, h fs.Handle, off uint64, count uint32) (r readResult, err error) {
	if v, ok := s.fs.(fs.Viewer); ok {
		var d *fs.Data
		if d, r.eof, r.attr, err = v.View(c.cred, h, off, count); err == nil {
			r.data = d
		}
		return r, err
	}
	var b []byte
	b, r.eof, r.attr, err = s.fs.Read(c.cred, h, off, count)
	r.data = oncrpc.Bytes(b)
	return r, err
}

func (s *Service) putRead(c call, r readResult, err error) {
	s.putPostOp(&c.Reply, r.attr)
	if err == nil {
		c.Reply.Uint32(uint32(r.data.Len()))
		c.Reply.Bool(r.eof)
		c.Reply.Data(r.data)
	}
}

type writeArgs struct {
	file       handle
	off        uint64
	count, how uint32
	data       []byte
}

func getWrite(d *oncrpc.Decoder) writeArgs {
	return writeArgs{getHandle(d), d.Uint64(), d.Uint32(), d.Uint32(), d.Opaque(fs.MaxIO)}
}

type writeResult struct {
	wcc       fs.WCC
	n         uint32
	committed fs.Stability
	verf      uint64
}

func (s *Service) write(c call, a writeArgs) (r writeResult, err error) {
	h, err := s.file(c, a.file)
	if err != nil {
		return r, err
	}
	if a.how > uint32(fs.FileSync) || int(a.count) != len(a.data) {
		at, err := s.fs.Getattr(h)
		if err != nil {
			return r, err
		}
		r.wcc.After = &at
		return r, fs.ErrInval
	}
	r.n, r.committed, r.wcc, err = s.fs.Write(c.cred, h, a.off, a.data, fs.Stability(a.how))
	r.verf = s.fs.Verifier()
	return r, err
}

func (s *Service) putWrite(c call, r writeResult, err error) {
	s.putWCC(&c.Reply, r.wcc)
	if err == nil {
		c.Reply.Uint32(r.n)
		c.Reply.Uint32(uint32(r.committed))
		c.Reply.Uint64(r.verf)
	}
}

type commitArgs struct {
	file  handle
	off   uint64
	count uint32
}

func getCommit(d *oncrpc.Decoder) commitArgs { return commitArgs{getHandle(d), d.Uint64(), d.Uint32()} }

type commitResult struct {
	wcc  fs.WCC
	verf uint64
}

func (s *Service) commit(c call, a commitArgs) (r commitResult, err error) {
	h, err := s.file(c, a.file)
	if err == nil {
		r.wcc, err = s.fs.Commit(h, a.off, a.count)
	}
	r.verf = s.fs.Verifier()
	return r, err
}

func (s *Service) putCommit(c call, r commitResult, err error) {
	s.putWCC(&c.Reply, r.wcc)
	if err == nil {
		c.Reply.Uint64(r.verf)
	}
}
