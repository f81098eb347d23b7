package nfs3

import (
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"net"

	"tansy/fs"
	"tansy/nfs/exports"
	"tansy/nfs/oncrpc"
)

// A handle names the export it was got through, and the export's rule for the caller's
// address decides, at every call anew, what may be done with it. So a handle carries no
// rights, and another host that has it has its own. The tag of a handle depends on the
// export, too: nobody makes a handle of one export of that of another.
//
// From a directory below the root, LOOKUP of ".." leads as far as the export's own
// directory and no further, and READDIRPLUS gives out no handle of "..". What somebody
// renames out of the export stays in reach of those who have handles of it.

// export is an export with the handles of its files.
type export struct {
	path    string
	names   []string // that lead to it from the root of the volume
	index   int      // in the table
	handles *handles
}

// keyring has the exports of one table by what their handles start with.
type keyring struct {
	table *exports.Table
	list  []*export // as in the table
	byID  map[[8]byte]*export
}

// ring is the keyring of the table that counts now.
func (s *Service) ring() *keyring {
	t := s.policy.Table()
	if r := s.rings.Load(); r != nil && r.table == t {
		return r
	}
	r := &keyring{table: t, byID: map[[8]byte]*export{}}
	for i, e := range t.Exports() {
		id, key := s.identity(e.Path)
		x := &export{path: e.Path, names: names(e.Path), index: i, handles: newHandles(id, key)}
		r.list, r.byID[id] = append(r.list, x), x
	}
	s.rings.Store(r)
	return r
}

// identity returns what handles of an export start with, and the key of their tags. The
// export of the root has the volume's, so that its handles are those of a server without exports.
func (s *Service) identity(path string) (id [8]byte, key [16]byte) {
	if path == "/" {
		return s.volume, s.key
	}
	mac := hmac.New(sha256.New, s.key[:])
	mac.Write(append(s.volume[:], path...))
	sum := mac.Sum(nil)
	return [8]byte(sum[:8]), [16]byte(sum[8:24])
}

// call is one call being served: an oncrpc.Call with the file system's view of
// the caller.
type call struct {
	*oncrpc.Call
	cred     *fs.Cred
	export   *export
	readOnly bool
	proc     string
	args     []byte // as they came
}

// admit decides by what a handle starts with, and by who calls, whether c may go on and as
// whom. The tag of the handle is checked when it is used (file).
func (s *Service) admit(c *call, h handle) error {
	if len(h) != HandleSize {
		return fs.ErrBadHandle
	}
	r := s.ring()
	e := r.byID[[8]byte(h[:8])]
	if e == nil {
		return s.stranger()
	}
	rule := r.table.Rules(c.Peer, c.Security)[e.index]
	if r.table.TooWeak(e.index, rule, c.Security) {
		return exports.ErrTooWeak
	}
	return s.enter(c, e, rule)
}

// enter makes c one of the export, if the rule allows it.
func (s *Service) enter(c *call, e *export, rule *exports.Rule) error {
	if s.failed.Load() {
		return fs.ErrIO
	}
	if rule == nil {
		return fmt.Errorf("%s is not exported to this client: %w", e.path, fs.ErrAcces)
	}
	if rule.Secure && !privileged(c.Peer) {
		return fmt.Errorf("%s is exported to ports below 1024 alone (option secure): %w", e.path, fs.ErrPerm)
	}
	c.export, c.readOnly, c.cred = e, rule.ReadOnly, s.caller(rule, c.Cred)
	return nil
}

// caller maps the credentials of a call to a user of the file system, which is not to be
// changed.
func (s *Service) caller(rule *exports.Rule, c *oncrpc.Cred) *fs.Cred {
	switch {
	case c.Flavor != oncrpc.AuthSys:
		return rule.Caller(nil)
	case s.groups != nil:
		return rule.Caller(&fs.Cred{UID: c.UID, GID: c.GID, GIDs: s.groups(c.UID)})
	}
	return rule.Caller((*fs.Cred)(&c.IDs))
}

// privileged tells if a peer calls from a port that on many systems only root may use.
func privileged(peer net.Addr) bool {
	switch a := peer.(type) {
	case *net.TCPAddr:
		return a.Port < 1024
	case *net.UDPAddr:
		return a.Port < 1024
	}
	return false
}

// file checks a handle. One of the wrong form is an error for the reply, not bad
// XDR. A second handle has to be of the same export as the first.
func (s *Service) file(c call, h handle) (fs.Handle, error) {
	f, err := c.export.handles.parse(h, &c.Scratch)
	if err == fs.ErrStale && (s.owns(h) || s.joined != nil && s.joined.find(h) != nil) {
		return f, fs.ErrXDev
	}
	if err == fs.ErrStale {
		err = s.stranger()
	}
	return f, err
}

// owns tells if a handle says to be of one of the exports of this volume.
func (s *Service) owns(h handle) bool { return s.ring().byID[[8]byte(h[:8])] != nil }

// stranger is the error for a handle that is of no export here: of another volume, or of an export
// that is no more. While a volume is missing, it may be of that one, and clients have to keep it.
func (s *Service) stranger() error {
	if s.joined != nil && s.joined.missing {
		return fs.ErrIO
	}
	return fs.ErrStale
}
