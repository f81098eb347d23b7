package nfs3

import (
	"math"

	"tansy/fs"
	"tansy/nfs/oncrpc"
)

// LOOKUP, CREATE, MKDIR, SYMLINK, MKNOD, REMOVE, RMDIR, RENAME, LINK: the names
// in directories.

func (s *Service) lookup(c call, a dirop) (n fs.Node, err error) {
	dir, err := s.file(c, a.dir)
	if err != nil {
		return n, err
	}
	if string(a.name) == ".." && len(c.export.names) > 0 {
		return s.parent(c, dir)
	}
	return s.fs.Lookup(c.cred, dir, a.name)
}

func (s *Service) putLookup(c call, n fs.Node, err error) {
	if err == nil {
		s.putHandle(c, n.Handle)
		s.putPostOp(&c.Reply, &n.Attr)
	}
	s.putPostOp(&c.Reply, n.Parent.OrNil())
}

// putCreated encodes the result of the operations that make a file.
func (s *Service) putCreated(c call, n fs.Node, err error) {
	if err == nil {
		c.Reply.Bool(true)
		s.putHandle(c, n.Handle)
		s.putPostOp(&c.Reply, &n.Attr)
	}
	s.putWCC(&c.Reply, n.Dir)
}

type createArgs struct {
	where dirop
	how   fs.CreateHow
	attrs *sattr // nil for Exclusive
	verf  uint64 // for Exclusive
}

func getCreate(d *oncrpc.Decoder) (a createArgs) {
	a.where, a.how = getDirop(d), fs.CreateHow(d.Uint32())
	switch a.how {
	case fs.Unchecked, fs.Guarded:
		a.attrs = getSattr(d)
	case fs.Exclusive:
		a.verf = d.Uint64()
	default:
		d.Fail()
	}
	return a
}

func (s *Service) create(c call, a createArgs) (n fs.Node, err error) {
	dir, err := s.file(c, a.where.dir)
	if err != nil {
		return n, err
	}
	var attrs fs.SetAttr
	if a.attrs != nil {
		attrs = a.attrs.SetAttr
	}
	return s.once(c).Create(c.cred, dir, a.where.name, a.how, &attrs, a.verf)
}

type mkdirArgs struct {
	where dirop
	attrs *sattr
}

func getMkdir(d *oncrpc.Decoder) mkdirArgs { return mkdirArgs{getDirop(d), getSattr(d)} }

func (s *Service) mkdir(c call, a mkdirArgs) (n fs.Node, err error) {
	dir, err := s.file(c, a.where.dir)
	if err != nil {
		return n, err
	}
	return s.once(c).Mkdir(c.cred, dir, a.where.name, &a.attrs.SetAttr)
}

type symlinkArgs struct {
	where  dirop
	attrs  *sattr
	target []byte
}

func getSymlink(d *oncrpc.Decoder) symlinkArgs {
	return symlinkArgs{getDirop(d), getSattr(d), d.Opaque(math.MaxInt32)}
}

func (s *Service) symlink(c call, a symlinkArgs) (n fs.Node, err error) {
	dir, err := s.file(c, a.where.dir)
	if err != nil {
		return n, err
	}
	return s.once(c).Symlink(c.cred, dir, a.where.name, &a.attrs.SetAttr, a.target)
}

type mknodArgs struct {
	where        dirop
	typ          fs.Type
	attrs        *sattr // nil for types that cannot be made
	major, minor uint32 // for devices
}

func getMknod(d *oncrpc.Decoder) (a mknodArgs) {
	a.where, a.typ = getDirop(d), fs.Type(d.Uint32())
	switch a.typ {
	case fs.Char, fs.Block:
		a.attrs = getSattr(d)
		a.major, a.minor = d.Uint32(), d.Uint32()
	case fs.Socket, fs.FIFO:
		a.attrs = getSattr(d)
	default: // nothing follows, and the file system answers BADTYPE
	}
	return a
}

func (s *Service) mknod(c call, a mknodArgs) (n fs.Node, err error) {
	dir, err := s.file(c, a.where.dir)
	if err != nil {
		return n, err
	}
	var attrs fs.SetAttr
	if a.attrs != nil {
		attrs = a.attrs.SetAttr
	}
	return s.once(c).Mknod(c.cred, dir, a.where.name, a.typ, &attrs, a.major, a.minor)
}

func (s *Service) remove(c call, a dirop) (w fs.WCC, err error) {
	dir, err := s.file(c, a.dir)
	if err != nil {
		return w, err
	}
	return s.once(c).Remove(c.cred, dir, a.name)
}

func (s *Service) rmdir(c call, a dirop) (w fs.WCC, err error) {
	dir, err := s.file(c, a.dir)
	if err != nil {
		return w, err
	}
	return s.once(c).Rmdir(c.cred, dir, a.name)
}

type renameArgs struct{ from, to dirop }

func getRename(d *oncrpc.Decoder) renameArgs { return renameArgs{getDirop(d), getDirop(d)} }

type renameResult struct{ from, to fs.WCC }

func (s *Service) rename(c call, a renameArgs) (r renameResult, err error) {
	from, err := s.file(c, a.from.dir)
	if err != nil {
		return r, err
	}
	to, err := s.file(c, a.to.dir)
	if err != nil {
		return r, err
	}
	r.from, r.to, err = s.once(c).Rename(c.cred, from, a.from.name, to, a.to.name)
	return r, err
}

func (s *Service) putRename(c call, r renameResult, err error) {
	s.putWCC(&c.Reply, r.from)
	s.putWCC(&c.Reply, r.to)
}

type linkArgs struct {
	file  handle
	where dirop
}

func getLink(d *oncrpc.Decoder) linkArgs { return linkArgs{getHandle(d), getDirop(d)} }

type linkResult struct {
	attr *fs.Attr
	wcc  fs.WCC
}

func (s *Service) link(c call, a linkArgs) (r linkResult, err error) {
	file, err := s.file(c, a.file)
	if err != nil {
		return r, err
	}
	dir, err := s.file(c, a.where.dir)
	if err != nil {
		return r, err
	}
	r.attr, r.wcc, err = s.once(c).Link(c.cred, file, dir, a.where.name)
	return r, err
}

func (s *Service) putLink(c call, r linkResult, err error) {
	s.putPostOp(&c.Reply, r.attr)
	s.putWCC(&c.Reply, r.wcc)
}
