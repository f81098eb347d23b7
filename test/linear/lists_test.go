package linear

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"strings"

	"tansy/fs"
	"tansy/fs/model"
	"tansy/nfs/nfs3"
	"tansy/test/kit/nfsclient"
)

// Access lists in histories: set and read by NFSACL, and obeyed by all other calls. The attributes in the reply of
// SETACL are of a later instant, so they count for nothing.

// someLists are those that a SETACL sets: few, as a volume of many histories has a number for each list that there ever
// was. They name the users that make the calls, and their groups.
var someLists = func() []*fs.AccessList {
	r := rand.New(rand.NewPCG(1, 1))
	rights := func() uint32 { return pick(r, uint32(7), 7, 6, 4, 5, 0) }
	all := []*fs.AccessList{nil, nil, nil}
	for range 20 {
		l := &fs.AccessList{Owner: rights(), Group: rights(), Other: rights()}
		all = append(all, l)
		if r.IntN(6) == 0 {
			continue // no more than a mode
		}
		l.Mask, l.Masked = rights(), true
		for _, u := range users[4:] {
			if r.IntN(2) == 0 {
				l.Named = append(l.Named, fs.AccessEntry{ID: u.UID, Rights: rights()})
			}
		}
		for _, g := range []uint32{100, 200} {
			if r.IntN(2) == 0 || len(l.Named) == 0 {
				l.Named = append(l.Named, fs.AccessEntry{Group: true, ID: g, Rights: rights()})
			}
		}
	}
	return all
}()

// drawLists says which lists a SETACL sets.
func (c *call) drawLists(r *rand.Rand) {
	c.setsAccess = r.IntN(3) > 0
	c.setsDef = !c.setsAccess || r.IntN(4) == 0
	c.lists = fs.Lists{Access: pick(r, someLists...), Default: pick(r, someLists...)}
}

// setListsOf sets lists of a file of the server, or of the model.
func (c *call) setListsOf(f fs.FileSystem) error {
	client, ok := f.(*nfsclient.Client)
	if !ok {
		return f.(*model.Model).SetLists(c.cred, c.h, c.lists, c.setsAccess, c.setsDef)
	}
	mask := uint32(0)
	if c.setsAccess {
		mask |= nfs3.ACLAccess | nfs3.ACLAccessCount
	}
	if c.setsDef {
		mask |= nfs3.ACLDefault | nfs3.ACLDefaultCount
	}
	_, err := client.SetACL(c.cred, c.h, mask, wire(c.lists.Access), wire(c.lists.Default))
	return err
}

// wire is a list as clients send it.
func wire(l *fs.AccessList) nfsclient.ACL {
	var words []uint32
	if l != nil {
		for _, e := range l.Entries() {
			words = append(words, e.For, e.ID, e.Rights)
		}
	}
	return nfsclient.ACLOf(words...)
}

// listsOf are the attributes and the lists of a file of the server, or of the model, these as text.
func listsOf(f fs.FileSystem, h fs.Handle) (*fs.Attr, string, error) {
	if client, ok := f.(*nfsclient.Client); ok {
		a, _, access, dflt, err := client.GetACL(root, h, nfs3.ACLAccess|nfs3.ACLDefault)
		if err != nil {
			return nil, "", err
		}
		return a, textOf(access) + "; " + textOf(dflt), nil
	}
	m := f.(*model.Model)
	a, err := m.Getattr(h)
	access, e := m.GetAccess(h)
	dflt, e2 := m.GetDefault(h)
	if err := cmp.Or(err, e, e2); err != nil {
		return nil, "", err
	}
	if access == nil { // the mode says all
		access = &fs.AccessList{Owner: a.Mode >> 6 & 7, Group: a.Mode >> 3 & 7, Other: a.Mode & 7}
	}
	return &a, textOf(wire(masked(access))) + "; " + textOf(wire(masked(dflt))), nil
}

// masked is a list as the server sends it: always with a mask.
func masked(l *fs.AccessList) *fs.AccessList {
	if l == nil || l.Masked {
		return l
	}
	x := *l
	x.Mask, x.Masked = l.Group, true
	return &x
}

// textOf is what a list says: for owner and group of the file without whose these are.
func textOf(l nfsclient.ACL) string {
	var all []string
	for _, e := range l.Entries {
		what := e.For & (fs.ForOwner | fs.ForUser | fs.ForGroup | fs.ForNamed | fs.ForMask | fs.ForOther)
		if what&(fs.ForUser|fs.ForNamed) == 0 {
			e.ID = 0
		}
		all = append(all, fmt.Sprintf("%x:%d:%d", what, e.ID, e.Rights))
	}
	return strings.Join(all, ",")
}

// withLists is a file system with something wrong, and the lists of the right one.
type withLists struct {
	fs.FileSystem
	fs.Lister
}

// listInTwo sets the mode that goes with an access list, and then the list.
type listInTwo struct{ withLists }

func (f listInTwo) SetLists(c *fs.Cred, h fs.Handle, l fs.Lists, access, dflt bool) error {
	if access && l.Access != nil && l.Access.Masked {
		mode := l.Access.Owner<<6 | l.Access.Mask<<3 | l.Access.Other
		if _, err := f.Setattr(c, h, &fs.SetAttr{Mode: &mode}, nil); err != nil {
			return err
		}
		pause()
	}
	return f.withLists.SetLists(c, h, l, access, dflt)
}

// listIgnored sets no list of a file, and the mode that goes with it.
type listIgnored struct{ withLists }

func (f listIgnored) SetLists(c *fs.Cred, h fs.Handle, l fs.Lists, access, dflt bool) error {
	if access && l.Access != nil {
		plain := *l.Access
		if plain.Masked {
			plain.Group = plain.Mask
		}
		plain.Mask, plain.Masked, plain.Named = 0, false, nil
		l.Access = &plain
	}
	return f.withLists.SetLists(c, h, l, access, dflt)
}

// listing is a file system with its lists.
func listing(f fs.FileSystem) withLists { return withLists{f, f.(fs.Lister)} }
