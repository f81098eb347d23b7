package nfs3

import (
	"tansy/fs"
	"tansy/nfs/oncrpc"
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

type readdirArgs struct {
	dir          handle
	cookie, verf uint64
	count        uint32 // bytes of the whole result
}

func getReaddir(d *oncrpc.Decoder) readdirArgs {
	return readdirArgs{getHandle(d), d.Uint64(), d.Uint64(), d.Uint32()}
}

func (s *Service) readdir(c call, a readdirArgs) (fs.Listing, error) {
	return s.list(c, a, fs.Limit{Size: entrySize}, false)
}

type readdirplusArgs struct {
	readdirArgs
	dirCount uint32 // bytes of names and cookies
}

func getReaddirplus(d *oncrpc.Decoder) (a readdirplusArgs) {
	a.dir, a.cookie, a.verf = getHandle(d), d.Uint64(), d.Uint64()
	a.dirCount, a.count = d.Uint32(), d.Uint32()
	return a
}

func (s *Service) readdirplus(c call, a readdirplusArgs) (fs.Listing, error) {
	lim := fs.Limit{Size: entryPlusSize, DirBytes: int(min(a.dirCount, maxListing)), DirSize: entrySize}
	return s.list(c, a.readdirArgs, lim, true)
}

// list fetches entries for a result of at most a.count bytes; of those it needs
// sizeListing even without entries.
func (s *Service) list(c call, a readdirArgs, lim fs.Limit, plus bool) (l fs.Listing, err error) {
	dir, err := s.file(c, a.dir)
	if err != nil {
		return l, err
	}
	lim.Bytes = int(min(a.count, maxListing)) - sizeListing
	return s.fs.Readdir(c.cred, dir, a.cookie, a.verf, plus, lim)
}

func (s *Service) putReaddir(c call, l fs.Listing, err error) {
	s.putListing(c, &l, false, err)
}

func (s *Service) putReaddirplus(c call, l fs.Listing, err error) {
	s.putListing(c, &l, true, err)
}

func (s *Service) putListing(c call, l *fs.Listing, plus bool, err error) {
	e := &c.Reply
	s.putPostOp(e, l.Dir)
	if err != nil {
		return
	}
	e.Uint64(l.Verf)
	for i := range l.Entries {
		x := &l.Entries[i]
		e.Bool(true)
		e.Uint64(x.Ino)
		e.Opaque(x.Name)
		e.Uint64(x.Cookie)
		if plus {
			attr := x.Attr
			if len(c.export.names) > 0 && string(x.Name) == ".." {
				attr = nil // it may be outside
			}
			s.putPostOp(e, attr)
			e.Bool(attr != nil)
			if attr != nil {
				s.putHandle(c, x.Handle)
			}
		}
	}
	e.Bool(false)
	e.Bool(l.EOF)
	l.Recycle()
}
