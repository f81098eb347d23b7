package fs

import (
	"encoding/binary"

	"tansy/internal/gen/fs/procedures/squashops"
)

// Squash is the part of an export's rule that says who a caller is (exports(5)). verified/fs/spec/squash.s.dfy says
// what it means, and the code that does it is verified.
type Squash struct {
	Root             bool   // user 0 and group 0 become the anonymous ones, also among supplementary groups
	All              bool   // everybody becomes the anonymous user, in no other group
	AnonUID, AnonGID uint32 // the anonymous user, which is also a caller without credentials; neither is NoID
}

// NoID is the number of no user and no group. In POSIX an id of -1 means "no change", and kernels refuse to show a file
// that has it. A caller of that number is the anonymous user. Among supplementary groups the number is left out, and in
// a SetAttr it sets nothing.
const NoID = 1<<32 - 1

// Caller returns who a caller is that says to be c, which is nil for AUTH_NONE. c is not changed, and the result may be
// c.
func (s *Squash) Caller(c *Cred) *Cred {
	// Most calls change nothing: lemmas AsClaimed and OthersStay in verified/fs/spec/squashing.dfy.
	if c != nil && !s.All && s.stays(c) {
		return c
	}
	claim := c
	if c == nil {
		claim = &Cred{}
	}
	before := groupsOf(claim.GIDs)
	uid, gid, after := squashops.Squash(s.Root, s.All, s.AnonUID, s.AnonGID, c != nil, claim.UID, claim.GID, before)
	r := &Cred{UID: uid, GID: gid}
	for b := after.Data; len(b) >= 4; b = b[4:] {
		r.GIDs = append(r.GIDs, binary.LittleEndian.Uint32(b))
	}
	return r
}

// stays tells whether a caller is who they say they are, unless everybody is anonymous.
func (s *Squash) stays(c *Cred) bool {
	if s.changes(c.UID) || s.changes(c.GID) {
		return false
	}
	for _, g := range c.GIDs {
		if s.changes(g) {
			return false
		}
	}
	return true
}

// changes tells whether the user or group of this number becomes another.
func (s *Squash) changes(id uint32) bool { return id == NoID || s.Root && id == 0 }

var noGroups buf

// groupsOf is a list of groups as the verified code has it, which changes nothing of it.
func groupsOf(gids []uint32) *buf {
	if len(gids) == 0 {
		return &noGroups
	}
	g := &buf{Data: make([]byte, 4*len(gids))}
	for i, x := range gids {
		binary.LittleEndian.PutUint32(g.Data[4*i:], x)
	}
	return g
}
