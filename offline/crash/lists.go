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

// SetLists is that of the model, but for what flags forbid.
func (p possible) SetLists(who *fs.Cred, h fs.Handle, l fs.Lists, access, dflt bool) error {
	if a, err := p.Getattr(h); err == nil && a.Type != fs.Symlink && p.fixed(h) {
		return fs.ErrPerm
	}
	return p.Model.SetLists(who, h, l, access, dflt)
}
