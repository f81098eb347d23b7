package crash

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tansy/fs"
)

// Access lists of steps and of what is seen. As text a list has its entries with a comma between, each as setfacl(1)
// has it, with numbers for names: `u::rw-,u:8:r--,g::r--,m::r--,o::r--`. nothing stands for no list.

const nothing = "-"

// entryName is what an entry is for, as text.
type entryName struct {
	what  uint32
	name  byte
	named bool
}

var entryNames = []entryName{
	{fs.ForOwner, 'u', false}, {fs.ForUser, 'u', true}, {fs.ForGroup, 'g', false}, {fs.ForNamed, 'g', true},
	{fs.ForMask, 'm', false}, {fs.ForOther, 'o', false},
}

// letters are the rights of an entry.
const letters = "rwx"

// parseList reads a list.
func parseList(text string) (*fs.AccessList, error) {
	if text == nothing {
		return nil, nil
	}
	var entries []fs.ListEntry
	for one := range strings.SplitSeq(text, ",") {
		e, err := parseEntry(one)
		if err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	l, ok := fs.ListOf(entries)
	if !ok {
		return nil, fmt.Errorf("%q is no access list: give one such as %s, or %s for none", text, otherList, nothing)
	}
	return l, nil
}

// parseEntry reads an entry.
func parseEntry(text string) (e fs.ListEntry, err error) {
	bad := fmt.Errorf("%q is no entry of an access list: give one such as u:8:rw-", text)
	words := strings.Split(text, ":")
	if len(words) != 3 || len(words[0]) != 1 || len(words[2]) != len(letters) {
		return e, bad
	}
	for _, n := range entryNames {
		if n.name == words[0][0] && n.named == (words[1] != "") {
			e.For = n.what
		}
	}
	if e.ID = fs.NoID; words[1] != "" {
		id, err := strconv.ParseUint(words[1], 10, 32)
		if err != nil {
			return e, bad
		}
		e.ID = uint32(id)
	}
	for i := range letters {
		e.Rights <<= 1
		switch words[2][i] {
		case letters[i]:
			e.Rights++
		case '-':
		default:
			e.For = 0
		}
	}
	if e.For == 0 {
		return e, bad
	}
	return e, nil
}

// listText is a list as parseList reads it.
func listText(l *fs.AccessList) string {
	if l == nil {
		return nothing
	}
	var all []string
	for _, e := range l.Entries() {
		i := slices.IndexFunc(entryNames, func(n entryName) bool { return n.what == e.For })
		id, rights := "", []byte(letters)
		if entryNames[i].named {
			id = strconv.FormatUint(uint64(e.ID), 10)
		}
		for k := range rights {
			if e.Rights>>(len(letters)-1-k)&1 == 0 {
				rights[k] = '-'
			}
		}
		all = append(all, fmt.Sprintf("%c:%s:%s", entryNames[i].name, id, rights))
	}
	return strings.Join(all, ",")
}

// listed is a file system whose access lists and flags can be seen.
type listed interface {
	fs.FileSystem
	GetAccess(h fs.Handle) (*fs.AccessList, error)
	GetDefault(h fs.Handle) (*fs.AccessList, error)
	Flags(h fs.Handle) (uint32, error)
}

// listsOf are the lists of a file, as text; empty if it has none.
func listsOf(v listed, h fs.Handle) (text string, err error) {
	access, err := v.GetAccess(h)
	if err != nil {
		return "", err
	}
	dflt, err := v.GetDefault(h)
	if access != nil {
		text += " list " + listText(access)
	}
	if dflt != nil {
		text += " default list " + listText(dflt)
	}
	return text, err
}

// setLists does a step that sets one list or both.
func setLists(v volume, path, access, dflt string, setsAccess, setsDefault bool) error {
	a, err := parseList(access)
	if err != nil {
		return err
	}
	d, err := parseList(dflt)
	if err != nil {
		return err
	}
	return on(v, path, func(h fs.Handle) error {
		return v.SetLists(root, h, fs.Lists{Access: a, Default: d}, setsAccess, setsDefault)
	})
}

// The model of a file system has no lists, so possible has them beside it. All is done by root, so they refuse nobody.
// Of an access list, the rights of owner, mask, and others are those of the mode.

// SetLists implements fs.Lister.
func (p possible) SetLists(who *fs.Cred, h fs.Handle, l fs.Lists, access, dflt bool) error {
	a, err := p.Getattr(h)
	switch {
	case err != nil:
		return err
	case a.Type == fs.Symlink:
		return fs.ErrInval
	case p.fixed(h):
		return fs.ErrPerm
	case dflt && l.Default != nil && a.Type != fs.Directory:
		return fs.ErrAcces
	}
	has := p.lists[h]
	if access {
		has.Access = l.Access
		if l.Access != nil {
			if err := p.bound(h, a.Mode&^0o777|rightsOf(l.Access)); err != nil {
				return err
			}
			if !l.Access.Masked { // the mode says all
				has.Access = nil
			}
		}
	}
	if dflt {
		has.Default = l.Default
	}
	p.lists[h] = has
	return nil
}

// rightsOf is what an access list makes of the rights of a mode.
func rightsOf(l *fs.AccessList) uint32 {
	group := l.Group
	if l.Masked {
		group = l.Mask
	}
	return l.Owner<<6 | group<<3 | l.Other
}

// bound gives a file a mode.
func (p possible) bound(h fs.Handle, mode uint32) error {
	_, err := p.Setattr(root, h, &fs.SetAttr{Mode: &mode}, nil)
	return err
}

// inherit gives what was made in a directory what it has from there.
func (p possible) inherit(dir fs.Handle, made fs.Node, err error) (fs.Node, error) {
	d := p.lists[dir].Default
	if err != nil || d == nil {
		return made, err
	}
	var has fs.Lists
	if d.Masked {
		has.Access = d
	}
	if made.Attr.Type == fs.Directory {
		has.Default = d
	}
	p.lists[made.Handle] = has
	made.Attr.Mode &= 0o7000 | rightsOf(d)
	return made, p.bound(made.Handle, made.Attr.Mode)
}

// Create implements fs.FileSystem.
func (p possible) Create(who *fs.Cred, dir fs.Handle, name []byte, how fs.CreateHow, s *fs.SetAttr, verf uint64) (
	fs.Node, error,
) {
	if err := p.mayEnter(dir, name); err != nil {
		return fs.Node{}, err
	}
	n, err := p.Model.Create(who, dir, name, how, s, verf)
	return p.inherit(dir, n, err)
}

// Mkdir implements fs.FileSystem.
func (p possible) Mkdir(who *fs.Cred, dir fs.Handle, name []byte, s *fs.SetAttr) (fs.Node, error) {
	if err := p.mayEnter(dir, name); err != nil {
		return fs.Node{}, err
	}
	n, err := p.Model.Mkdir(who, dir, name, s)
	return p.inherit(dir, n, err)
}

// Mknod implements fs.FileSystem.
func (p possible) Mknod(who *fs.Cred, dir fs.Handle, name []byte, t fs.Type, s *fs.SetAttr, major, minor uint32) (
	fs.Node, error,
) {
	if err := p.mayEnter(dir, name); err != nil {
		return fs.Node{}, err
	}
	n, err := p.Model.Mknod(who, dir, name, t, s, major, minor)
	return p.inherit(dir, n, err)
}

// GetAccess is that of fs.FS.
func (p possible) GetAccess(h fs.Handle) (*fs.AccessList, error) {
	a, err := p.Getattr(h)
	l := p.lists[h].Access
	if err != nil || l == nil {
		return nil, err
	}
	return &fs.AccessList{
		Owner: a.Mode >> 6 & 7, Group: l.Group, Mask: a.Mode >> 3 & 7, Other: a.Mode & 7, Masked: true, Named: l.Named,
	}, nil
}

// GetDefault is that of fs.FS.
func (p possible) GetDefault(h fs.Handle) (*fs.AccessList, error) { return p.lists[h].Default, nil }
