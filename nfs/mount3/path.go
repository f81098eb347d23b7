package mount3

import (
	"path"
	"slices"
	"strings"

	"tansy/fs"
)

// split returns the names in a path. A path of "/a//b/" and "a/./b" is "/a/b".
func split(dir string) []string {
	return slices.DeleteFunc(strings.Split(dir, "/"), func(name string) bool { return name == "" || name == "." })
}

// below returns the volume that dir is in, the names that lead to it from the volume's root, and
// what DUMP and UMNT call that place. ".." is left to be looked up, since what stands before it
// has to exist, and to be a directory; above the root of a volume is that root itself. As no
// symbolic link is followed, dir without ".." is the same place.
func (s *Service) below(dir string) (v *Volume, names []string, place string, err error) {
	names = split(dir)
	err = fs.ErrNoEnt
	for i := range s.volumes {
		v = &s.volumes[i]
		n := len(v.names)
		if len(names) >= n && slices.Equal(names[:n], v.names) {
			return v, names[n:], path.Join(v.Path, path.Clean("/"+strings.Join(names[n:], "/"))), nil
		}
		if len(names) < n && slices.Equal(names, v.names[:len(names)]) {
			err = fs.ErrAcces // on the way to a volume, and exported to nobody
		}
	}
	return nil, nil, "", err
}
