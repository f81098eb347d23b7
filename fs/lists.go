package fs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"

	"tansy/internal/gen/fs/exec/answers"
	"tansy/internal/gen/fs/exec/exec"
	"tansy/internal/gen/fs/exec/localcalls"
	"tansy/internal/lockorder"
	"tansy/internal/runtime/listtable"
)

// Access lists (ACLs) are those of POSIX 1003.1e, draft 17, as Linux has them. What they allow, and how new files get
// them, verified/fs/spec/nfs3.s.dfy says. An inode has the numbers of its lists; the table says what each means.

// AccessList is an access list, or a default list. Rights are those of a mode: 4 to read, 2 to write, 1 to execute, and
// sums of them. Owner, Group, and Other are what it gives to the owner of a file, to the file's group, and to all who
// are not named. Masked: it has a mask, which bounds what the group and those of Named have. Of the access list of a
// file, Owner, Mask, and Other are the bits of the file's mode.
type AccessList struct {
	Owner, Group, Mask, Other uint32
	Masked                    bool
	Named                     []AccessEntry
}

var _ Lister = (*FS)(nil)

// Lists are the access list of a file, and the default list of a directory; nil: it has none.
type Lists struct{ Access, Default *AccessList }

// AccessEntry is what an AccessList gives to a user, or to a group.
type AccessEntry struct {
	Group      bool
	ID, Rights uint32
}

// Equal tells whether two lists are the same.
func (l *AccessList) Equal(m *AccessList) bool { return l.list().Equal(m.list()) }

// Valid tells whether l is an access list: rights are some of 7; users are named before groups, none of them of the
// number 2^32 - 1; and if any is, there is a mask.
func (l *AccessList) Valid() bool {
	if (l.Owner|l.Group|l.Mask|l.Other) > 7 || len(l.Named) > 0 && !l.Masked || !l.Masked && l.Mask != 0 {
		return false
	}
	for i, e := range l.Named {
		if e.Rights > 7 || e.ID == NoID || i > 0 && l.Named[i-1].Group && !e.Group {
			return false
		}
	}
	return true
}

// list is l as the table has it.
func (l *AccessList) list() *listtable.List {
	t := &listtable.List{Owner: l.Owner, Group: l.Group, Mask: l.Mask, Other: l.Other, Masked: l.Masked}
	for _, e := range l.Named {
		t.Named = append(t.Named, listtable.Entry(e))
	}
	return t
}

// accessList is a list of the table, with some of its rights from elsewhere.
func accessList(l *listtable.List, owner, mask, other uint32) *AccessList {
	a := &AccessList{Owner: owner, Group: l.Group, Mask: mask, Other: other, Masked: l.Masked}
	for _, e := range l.Named {
		a.Named = append(a.Named, AccessEntry(e))
	}
	return a
}

// The table lies in inode 2's file, where the extended attributes of inodes would lie that are not there, as attributes
// whose names are the numbers. docs/design/format.md has the bytes.
const (
	maxList     = 4095            // the largest number
	listsOfRoot = 1024            // the last numbers, which root alone takes
	listPage    = BlockSize - 8   // bytes of lists in a block
	listHeader  = 4 + listName    // of a list in a block: of the attribute, and its name
	listName    = 3               // a number, in hexadecimal
	listRights  = 2               // bytes of what a list has beside its entries
	listEntry   = 5               // bytes of an entry
	listAge     = 1               // the generation that a block of lists says
	noBlock     = uint64(1) << 27 // inode 2's file has no block of that number
	groupMark   = 8               // of an entry's first byte: it is a group's
	maskMark    = 1 << 12         // of the first two bytes of a list: it has a mask
	accessShift = 8               // where the numbers stand among the flags of a file
	dfltShift   = 20
)

// accessLists are those of a volume.
type accessLists struct {
	table listtable.Table
	mu    lockorder.Mutex[lockorder.Lists] // one list is looked for, and added, at a time
	seed  maphash.Seed
	alike map[uint64][]uint32 // the numbers of lists, by a hash of what a file's mode does not say
	used  []int               // bytes of each page
	err   error               // nothing can be added: some of the table cannot be read
}

// add gives a number a list. mu is held, or nobody else has the volume yet.
func (s *accessLists) add(number uint32, l *listtable.List) {
	if s.alike == nil {
		s.seed, s.alike = maphash.MakeSeed(), map[uint64][]uint32{}
	}
	k := s.hash(l)
	s.alike[k] = append(s.alike[k], number)
	s.table.Add(number, l)
}

// hash is the same for lists that differ in what a file's mode says alone.
func (s *accessLists) hash(l *listtable.List) uint64 {
	return maphash.Bytes(s.seed, bytesOfList(&listtable.List{Group: l.Group, Masked: l.Masked, Named: l.Named}))
}

// numberOf is the number of a list, or, for an access list, of one that differs in what a file's mode says alone; 0:
// there is none. mu is held.
func (s *accessLists) numberOf(l *listtable.List, access bool) uint32 {
	if s.alike == nil {
		return 0
	}
	for _, n := range s.alike[s.hash(l)] {
		x := s.table.Get(n)
		of := *l
		if access {
			of.Owner, of.Mask, of.Other = x.Owner, x.Mask, x.Other
		}
		if x.Owner == of.Owner && x.Mask == of.Mask && x.Equal(&of) { // the names last, which are many
			return n
		}
	}
	return 0
}

// free is the least number that means no list; maxList + 1: none is left. Those below others were of lists that no file
// had: tansy repair has taken them away.
func (s *accessLists) free() uint32 {
	lists := s.table.Lists()
	for n := 1; n < len(lists); n++ { // 0 means that there is none
		if lists[n] == nil {
			return uint32(n)
		}
	}
	return uint32(max(len(lists), 1))
}

// listPageAt is the block of a page of the table.
func (v *FS) listPageAt(page uint64) uint64 {
	if page == 0 {
		return 0
	}
	return v.geo.Ninode() + page - 1
}

// findLists reads the table, if inode 2's file has a size. What cannot be read is left out: files with such a list are
// their owners' alone, and no lists are added.
func (v *FS) findLists(size uint64) {
	l := &v.xattrs.lists
	for page := uint64(0); page <= maxList && v.listPageAt(page) < size/BlockSize; page++ {
		var c call
		var b *buf
		empty := false
		err := v.run(&c, procGetattr, func(t *txn) {
			b, empty = localcalls.Table(&c.Call, t, v.dirs, v.listPageAt(page))
		})
		l.used = append(l.used, 0)
		if err == nil && empty {
			continue // tansy repair may have taken it, and left those behind it
		}
		if err == nil {
			l.used[page], err = v.addAll(b.Data)
		}
		if err != nil {
			v.log.Error("some access lists cannot be read; files that have them are open to their owners alone", "err", err)
			l.err = err
		}
	}
}

// errList is the error of a table with something else in it.
var errList = errors.New("there is something else in the table of access lists")

// addAll adds the lists of a page to the table in memory.
func (v *FS) addAll(b []byte) (used int, err error) {
	if binary.LittleEndian.Uint64(b) != listAge {
		return 0, errList
	}
	for b = b[8:]; len(b) >= 4 && b[0] != 0; {
		named := 4 + int(b[0])
		n := named + int(binary.LittleEndian.Uint32(b)>>8)
		if n > len(b) {
			return used, errList
		}
		var number uint32
		name, value := string(b[4:named]), b[named:n]
		list, ok := parseList(value)
		if _, scan := fmt.Sscanf(name, "%03x", &number); scan != nil || !ok || number == 0 || number > maxList ||
			name != nameOf(number) || v.xattrs.lists.table.Has(number) {
			return used, fmt.Errorf("%w: %q", errList, name)
		}
		v.xattrs.lists.add(number, list)
		used += n
		b = b[n:]
	}
	return used, nil
}

func nameOf(number uint32) string { return fmt.Sprintf("%03x", number) }

// parseList is the list that some bytes of the table mean; ok: they mean one.
func parseList(b []byte) (l *listtable.List, ok bool) {
	if len(b) < listRights || (len(b)-listRights)%listEntry != 0 {
		return nil, false
	}
	r := uint32(binary.LittleEndian.Uint16(b))
	l = &listtable.List{
		Owner: r & 7, Group: r >> 3 & 7, Mask: r >> 6 & 7, Other: r >> 9 & 7, Masked: r&maskMark != 0,
	}
	for e := b[listRights:]; len(e) > 0; e = e[listEntry:] {
		if e[0] >= 2*groupMark {
			return nil, false
		}
		l.Named = append(l.Named, listtable.Entry{
			Group: e[0]&groupMark != 0, Rights: uint32(e[0] & 7), ID: binary.LittleEndian.Uint32(e[1:]),
		})
	}
	return l, r < 2*maskMark && (l.Masked || len(l.Named) == 0)
}

// bytesOfList are the bytes that mean a list.
func bytesOfList(l *listtable.List) []byte {
	r := l.Owner | l.Group<<3 | l.Mask<<6 | l.Other<<9
	if l.Masked {
		r |= maskMark
	}
	b := binary.LittleEndian.AppendUint16(nil, uint16(r))
	for _, e := range l.Named {
		first := byte(e.Rights)
		if e.Group {
			first |= groupMark
		}
		b = binary.LittleEndian.AppendUint32(append(b, first), e.ID)
	}
	return b
}

// numberFor is the number of a list for who may give it to that file, which it gets if it has none. Nobody else has a
// list take its place in the table: the errors are those of SetAccess and of SetDefault.
func (v *FS) numberFor(who *Cred, h Handle, l *listtable.List, dflt bool) (uint32, error) {
	a, err := v.Getattr(h)
	switch {
	case err != nil:
		return 0, err
	case a.Type == Symlink:
		return 0, ErrInval
	case who.UID != 0 && who.UID != a.UID:
		return 0, ErrPerm
	}
	s := &v.xattrs.lists
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.numberOf(l, !dflt); n != 0 {
		return n, nil
	}
	flags, err := v.Flags(h)
	switch {
	case err != nil:
		return 0, err
	case flags&(FlagImmutable|FlagAppendOnly) != 0:
		return 0, ErrPerm
	case dflt && a.Type != Directory:
		return 0, ErrAcces
	case who.UID != 0 && s.free() > maxList-listsOfRoot:
		return 0, ErrNoSpc
	}
	return v.newList(l)
}

// newList is the number that a list gets. The error is ErrNoSpc if there is no number left, or no room for the list.
// The table's lock is held.
func (v *FS) newList(l *listtable.List) (uint32, error) {
	s := &v.xattrs.lists
	number, value := s.free(), bytesOfList(l)
	need := listHeader + len(value)
	switch {
	case s.err != nil:
		return 0, ErrIO
	case number > maxList:
		return 0, ErrNoSpc
	}
	page := slices.IndexFunc(s.used, func(used int) bool { return used+need <= listPage })
	if page < 0 { // all have lists, so there are no more of them than numbers
		page = len(s.used)
	}
	at := v.listPageAt(uint64(page))
	if at >= noBlock {
		return 0, ErrNoSpc
	}
	vn, vv := bytesOf([]byte(nameOf(number))), bytesOf(value)
	var c call
	err := v.run(&c, exec.LOCAL(), func(t *txn) { localcalls.NewList(&c.Call, t, v.dirs, at, vn, vv) })
	if err != nil {
		return 0, err
	}
	if page == len(s.used) {
		s.used = append(s.used, 0)
	}
	s.used[page] += need
	s.add(number, l)
	return number, nil
}

// listsOf are the numbers of the lists that a file has, and its mode.
func (v *FS) listsOf(h Handle) (access, dflt, mode uint32, err error) {
	var flags uint32
	var c call
	err = v.run(&c, procGetattr, func(t *txn) {
		flags, mode = localcalls.Lists(&c.Call, t, v.dirs, h.Ino, h.Gen)
	})
	return flags >> accessShift & maxList, flags >> dfltShift & maxList, mode, err
}

// noLists tells whether the volume has no access lists at all.
func (v *FS) noLists() bool {
	return len(v.xattrs.lists.table.Lists()) == 0 && v.xattrs.lists.err == nil && !v.calls.Closed()
}

// HasDefault tells whether a directory has a default list.
func (v *FS) HasDefault(h Handle) (bool, error) {
	if v.noLists() {
		return false, nil
	}
	_, dflt, _, err := v.listsOf(h)
	return dflt != 0, err
}

// GetAccess returns the access list of a file, or nil if it has none; its mode says all then. The error is ErrIO if the
// list cannot be read.
func (v *FS) GetAccess(h Handle) (*AccessList, error) {
	if v.noLists() {
		return nil, nil
	}
	n, _, mode, err := v.listsOf(h)
	if err != nil {
		return nil, err
	}
	return v.accessOf(n, mode)
}

// accessOf is the access list of a file with this number of one, and this mode.
func (v *FS) accessOf(number, mode uint32) (*AccessList, error) {
	if number == 0 {
		return nil, nil
	}
	l := v.xattrs.lists.table.Get(number)
	if l == nil {
		return nil, ErrIO
	}
	return accessList(l, mode>>6&7, mode>>3&7, mode&7), nil
}

// GetDefault returns the default list of a directory, or nil if it has none. The error is ErrIO if the list cannot be
// read.
func (v *FS) GetDefault(h Handle) (*AccessList, error) {
	if v.noLists() {
		return nil, nil
	}
	_, n, _, err := v.listsOf(h)
	if err != nil {
		return nil, err
	}
	return v.defaultOf(n)
}

// defaultOf is the default list of a directory with this number of one.
func (v *FS) defaultOf(number uint32) (*AccessList, error) {
	if number == 0 {
		return nil, nil
	}
	if l := v.xattrs.lists.table.Get(number); l != nil {
		return accessList(l, l.Owner, l.Mask, l.Other), nil
	}
	return nil, ErrIO
}

// GetLists implements Lister.
func (v *FS) GetLists(h Handle, access, dflt bool) (l Lists, a Attr, err error) {
	var flags uint32
	var c call
	err = v.run(&c, procGetattr, func(t *txn) {
		answers.Getattr(&c.Call, t, v.dirs, h.Ino, h.Gen)
		if c.Result == 0 {
			flags, _ = localcalls.Lists(&c.Call, t, v.dirs, h.Ino, h.Gen)
		}
	})
	if err != nil {
		return l, a, err
	}
	a = *c.attr(h.Ino)
	if access {
		if l.Access, err = v.accessOf(flags>>accessShift&maxList, a.Mode); err != nil {
			l.Access, err = MissingList(a.Mode), nil
		}
	}
	if dflt {
		l.Default, err = v.defaultOf(flags >> dfltShift & maxList)
	}
	return l, a, err
}

// MissingList stands for the access list of a file with this mode that cannot be read: the file is its owner's alone.
func MissingList(mode uint32) *AccessList { return &AccessList{Owner: mode >> 6 & 7, Masked: true} }

// SetAccess gives a file an access list, and the mode that goes with it; nil takes the list away, and leaves the mode.
// Who does that owns the file, or is root, else the error is ErrPerm, as it is if the file is immutable or append-only;
// who is neither root nor of the file's group takes setgid away. It is ErrInval for a symbolic link, and if l is no
// list (AccessList.Valid); ErrNoSpc if the volume can have no more lists (4,095, of which root alone takes the last
// 1,024; one that no file has any more counts until tansy repair --forget-lists takes it away).
func (v *FS) SetAccess(who *Cred, h Handle, l *AccessList) error {
	n, sets, rights, err := v.numberOfAccess(who, h, l)
	if err != nil {
		return err
	}
	return v.setList(who, h, false, n, sets, rights)
}

// numberOfAccess is the number for an access list that is to be set, and what it makes of the mode's rights, if it sets
// them.
func (v *FS) numberOfAccess(who *Cred, h Handle, l *AccessList) (number uint32, sets bool, rights uint32, err error) {
	if l == nil {
		return 0, false, 0, nil
	}
	if !l.Valid() {
		return 0, false, 0, ErrInval
	}
	group := l.Group
	if l.Masked { // what a list without one says, a mode says as well
		group = l.Mask
		kept := (&AccessList{Group: l.Group, Masked: true, Named: l.Named}).list()
		if number, err = v.numberFor(who, h, kept, false); err != nil {
			return 0, false, 0, err
		}
	}
	return number, true, l.Owner<<6 | group<<3 | l.Other, nil
}

// SetDefault gives a directory a default list; nil takes it away. The errors are those of SetAccess, and ErrAcces if it
// is none.
func (v *FS) SetDefault(who *Cred, h Handle, l *AccessList) error {
	n, err := v.numberOfDefault(who, h, l)
	if err != nil {
		return err
	}
	return v.setList(who, h, true, n, false, 0)
}

// numberOfDefault is the number for a default list that is to be set.
func (v *FS) numberOfDefault(who *Cred, h Handle, l *AccessList) (uint32, error) {
	if l == nil {
		return 0, nil
	}
	if !l.Valid() {
		return 0, ErrInval
	}
	return v.numberFor(who, h, l.list(), true)
}

// SetLists implements Lister. The errors are those of SetAccess and of SetDefault.
func (v *FS) SetLists(who *Cred, h Handle, l Lists, access, dflt bool) error {
	switch {
	case access && !dflt:
		return v.SetAccess(who, h, l.Access)
	case dflt && !access:
		return v.SetDefault(who, h, l.Default)
	case !dflt:
		_, err := v.Getattr(h)
		return err
	case l.Default != nil && !l.Default.Valid():
		return ErrInval // before the access list takes a number
	}
	n, sets, rights, err := v.numberOfAccess(who, h, l.Access)
	if err != nil {
		return err
	}
	d, err := v.numberOfDefault(who, h, l.Default)
	if err != nil {
		return err
	}
	vc := v.cred(new(vcred), who)
	var c call
	return v.run(&c, exec.LOCAL(), func(t *txn) {
		localcalls.SetLists(&c.Call, t, v.dirs, vc, h.Ino, h.Gen, n, sets, rights, d)
	})
}

func (v *FS) setList(who *Cred, h Handle, dflt bool, number uint32, sets bool, rights uint32) error {
	vc := v.cred(new(vcred), who)
	var c call
	return v.run(&c, exec.LOCAL(), func(t *txn) {
		localcalls.SetList(&c.Call, t, v.dirs, vc, h.Ino, h.Gen, dflt, number, sets, rights)
	})
}
