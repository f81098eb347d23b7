package nfs3

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"tansy/fs"
	"tansy/nfs/oncrpc"
)

// Walk returns the handle of the directory to which names lead from the root: the handle that MOUNT gives out. It is a
// handle of the lowest export above that directory with a rule for the caller's address.
//
// The server finds the export's own directory as itself. Each name behind that is looked up as by LOOKUP, for the
// caller and under that rule, so that the caller must be allowed to search each directory on the way. MOUNT is answered
// in the clear whatever xprtsec says, for clients of Linux ask so and speak TLS afterwards: a handle carries no rights.
// Who has no certificate in the clear may be each client that is named by one. A symbolic link
// is not followed: it is NFS3ERR_NOTDIR, like all else that is no directory. Errors are those of fs.FileSystem.Lookup.
// Others may change the tree between two names.
func (s *Service) Walk(oc *oncrpc.Call, way []string) ([]byte, error) {
	r := s.ring()
	place := path.Clean("/" + strings.Join(way, "/"))
	rules := r.table.Rules(oc.Peer, oc.Security)
	if oc.Security == nil {
		rules = slices.Clone(rules)
		for i, rule := range rules {
			if rule == nil {
				rules[i] = r.table.Certified(i)
			}
		}
	}
	i, ok := r.table.Covering(place, rules)
	if !ok {
		return nil, fmt.Errorf("%s is not exported to this client: %w", place, fs.ErrAcces)
	}
	c, e := call{Call: oc}, r.list[i]
	if err := s.enter(&c, e, rules[i]); err != nil {
		if errors.Is(err, fs.ErrPerm) {
			err = fmt.Errorf("%w: %w", fs.ErrAcces, err) // so MOUNT says it
		}
		return nil, err
	}
	if len(e.names) > 0 {
		way = names(place)[len(e.names):] // what lies outside of the export is not looked at
	}
	at, err := s.walk(&fs.Cred{}, s.fs.Root(), e.names)
	if err == nil {
		at, err = s.walk(c.cred, at, way)
	}
	if err != nil {
		return nil, err
	}
	b := make([]byte, HandleSize)
	e.handles.put(b, at, new([64]byte))
	return b, nil
}

// walk looks names up, one after the other; all have to be directories.
func (s *Service) walk(cred *fs.Cred, at fs.Handle, names []string) (fs.Handle, error) {
	for _, name := range names {
		n, err := s.fs.Lookup(cred, at, []byte(name))
		if err != nil {
			return at, err
		}
		if n.Attr.Type != fs.Directory {
			return at, fs.ErrNotDir
		}
		at = n.Handle
	}
	return at, nil
}

// names are those in a clean path.
func names(path string) []string {
	return slices.DeleteFunc(strings.Split(path, "/"), func(n string) bool { return n == "" })
}

// parent is LOOKUP of ".." in an export that is not that of the root.
func (s *Service) parent(c call, dir fs.Handle) (n fs.Node, err error) {
	top, err := s.walk(&fs.Cred{}, s.fs.Root(), c.export.names)
	if err != nil {
		return n, fs.ErrStale // the directory of the export is gone
	}
	if dir == top {
		return s.fs.Lookup(c.cred, dir, []byte("."))
	}
	if n, err = s.fs.Lookup(c.cred, dir, []byte("..")); err != nil {
		return n, err
	}
	for at := n.Handle; at != top; {
		up, err := s.fs.Lookup(&fs.Cred{}, at, []byte(".."))
		if err != nil || up.Handle == at { // at the root of the volume: dir is outside
			return fs.Node{}, fs.ErrStale
		}
		at = up.Handle
	}
	return n, nil
}
