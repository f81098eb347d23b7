package nfs3

import (
	"tansy/fs"
	"tansy/oncrpc"
)

// Walk returns the handle of the directory that names lead to from the root, which is
// what MOUNT gives out. Each name is looked up as LOOKUP does it for a caller with the
// credentials c, so that the caller must be allowed to search each directory on the way;
// with no names nothing is asked. A symbolic link is not followed, and like all that is
// no directory NFS3ERR_NOTDIR. Errors are those of fs.FileSystem.Lookup. Others may
// change the tree between two names.
func (s *Service) Walk(c *oncrpc.Cred, names []string) ([]byte, error) {
	at, cred := s.fs.Root(), s.caller(c)
	for _, name := range names {
		n, err := s.fs.Lookup(cred, at, []byte(name))
		if err != nil {
			return nil, err
		}
		if n.Attr.Type != fs.Directory {
			return nil, fs.ErrNotDir
		}
		at = n.Handle
	}
	b := make([]byte, HandleSize)
	s.handles.put(b, at, new([64]byte))
	return b, nil
}
