package nfs3

import (
	"tansy/fs"
	"tansy/oncrpc"
)

// READDIR and READDIRPLUS.

// Sizes on the wire, in bytes, for the limits that the client gives.
const (
	sizePostOp = 4 + 84
	// sizeListing is all of READDIR3resok but the entries: attributes, verifier,
	// end of the list, eof.
	sizeListing = sizePostOp + 8 + 4 + 4
)

// entrySize is an entry3: a mark that it follows, fileid, name, cookie.
func entrySize(nameLen int) int { return 4 + 8 + 4 + (nameLen+3)&^3 + 8 }

// entryPlusSize is an entryplus3.
func entryPlusSize(nameLen int) int { return entrySize(nameLen) + sizePostOp + 4 + 4 + HandleSize }

func (s *Service) readdir(c *call) oncrpc.Accept {
	dir, err := s.handle(c)
	cookie, verf, count := c.Args.Uint64(), c.Args.Uint64(), c.Args.Uint32()
	if !c.Args.Ok() {
		return oncrpc.GarbageArgs
	}
	l, err := s.list(c, err, dir, cookie, verf, false, count)
	if err == nil {
		s.putListing(c, &l, false)
	}
	return oncrpc.Success
}

func (s *Service) readdirplus(c *call) oncrpc.Accept {
	dir, err := s.handle(c)
	cookie, verf := c.Args.Uint64(), c.Args.Uint64()
	dirCount, maxCount := c.Args.Uint32(), c.Args.Uint32()
	if !c.Args.Ok() {
		return oncrpc.GarbageArgs
	}
	l, err := s.list(c, err, dir, cookie, verf, true, maxCount)
	if err == nil {
		trim(&l, int(min(dirCount, maxListing)))
		s.putListing(c, &l, true)
	}
	return oncrpc.Success
}

// list fetches entries for a result of at most count bytes, and encodes the
// status and the directory's attributes.
func (s *Service) list(c *call, err error, dir fs.Handle, cookie, verf uint64, plus bool, count uint32) (l fs.Listing, _ error) {
	if err == nil {
		size := entrySize
		if plus {
			size = entryPlusSize
		}
		l, err = s.fs.Readdir(c.cred, dir, cookie, verf, plus, max(0, int(min(count, maxListing))-sizeListing), size)
	}
	c.Reply.Uint32(s.status(c, err))
	s.putPostOp(&c.Reply, l.Dir)
	return l, err
}

// trim cuts a listing to dirCount bytes of names and cookies, but leaves one
// entry, so that the client gets on.
func trim(l *fs.Listing, dirCount int) {
	for i, e := range l.Entries {
		dirCount -= entrySize(len(e.Name))
		if dirCount < 0 && i > 0 {
			l.Entries, l.EOF = l.Entries[:i], false
			return
		}
	}
}

func (s *Service) putListing(c *call, l *fs.Listing, plus bool) {
	e := &c.Reply
	e.Uint64(l.Verf)
	for i := range l.Entries {
		x := &l.Entries[i]
		e.Bool(true)
		e.Uint64(x.Ino)
		e.Opaque(x.Name)
		e.Uint64(x.Cookie)
		if plus {
			s.putPostOp(e, x.Attr)
			e.Bool(x.Attr != nil)
			if x.Attr != nil {
				s.putHandle(c, x.Handle)
			}
		}
	}
	e.Bool(false)
	e.Bool(l.EOF)
}
