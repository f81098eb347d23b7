package nfs3

import (
	"slices"

	"tansy/fs"
	"tansy/oncrpc"
)

// caller maps the credentials of a call to a user of the file system, which is not to be
// changed.
func (s *Service) caller(c *oncrpc.Cred) *fs.Cred {
	ids := (*fs.Cred)(&c.IDs)
	switch {
	case c.Flavor != oncrpc.AuthSys:
		return &s.anon
	case s.rootSquash:
		return squashed(ids, &s.anon)
	}
	return ids
}

// squashed returns c without root's rights: user 0 becomes that of anon, group 0 that of
// anon, also among the supplementary groups. All other numbers stay. This is what
// root_squash means in exports(5). c may be shared, so it stays as it is.
func squashed(c, anon *fs.Cred) *fs.Cred {
	groups := slices.Contains(c.GIDs, 0)
	if c.UID != 0 && c.GID != 0 && !groups {
		return c
	}
	r := *c
	if r.UID == 0 {
		r.UID = anon.UID
	}
	if r.GID == 0 {
		r.GID = anon.GID
	}
	if groups {
		r.GIDs = slices.Clone(c.GIDs)
		for i, g := range r.GIDs {
			if g == 0 {
				r.GIDs[i] = anon.GID
			}
		}
	}
	return &r
}
