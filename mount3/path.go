package mount3

import (
	"path"
	"slices"
	"strings"
)

// split returns the names in a path. A path of "/a//b/" and "a/./b" is "/a/b".
func split(dir string) []string {
	return slices.DeleteFunc(strings.Split(dir, "/"), func(name string) bool { return name == "" || name == "." })
}

// below returns the names that lead from the export to dir, and what DUMP and UMNT call
// that place. ok is false if dir is not in the export. ".." is left to be looked up, since
// what stands before it has to exist, and to be a directory; above the export is the
// export itself. As no symbolic link is followed, dir without ".." is the same place.
func (s *Service) below(dir string) (names []string, place string, ok bool) {
	names = split(dir)
	n := len(s.export)
	if len(names) < n || !slices.Equal(names[:n], s.export) {
		return nil, "", false
	}
	names = names[n:]
	return names, path.Join(s.cfg.Export, path.Clean("/"+strings.Join(names, "/"))), true
}
