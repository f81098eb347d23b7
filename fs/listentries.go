package fs

import (
	"cmp"
	"slices"
)

// ListEntry is an entry of an access list, as programs and clients have them. Linux's attributes and NFSACL have the
// same numbers for what an entry is for.
type ListEntry struct {
	For    uint32 // one of ForOwner to ForOther
	Rights uint32
	ID     uint32 // of a user or a group that is named; of the others it means nothing
}

// What an entry of an access list is for.
const (
	ForOwner = 0x01 // the file's
	ForUser  = 0x02 // one that is named
	ForGroup = 0x04 // the file's
	ForNamed = 0x08 // another group
	ForMask  = 0x10
	ForOther = 0x20
)

// MaxNamed is how many users and groups a list may name: so many Linux reads into a page of 4 KiB, with the entries
// that each list has.
const MaxNamed = (4096-4)/8 - 4

// Entries are those of l, in the order of what they are for. The ID of one that names nobody is NoID.
func (l *AccessList) Entries() []ListEntry {
	e := make([]ListEntry, 0, len(l.Named)+4)
	named := func(group bool, what uint32) {
		for _, n := range l.Named {
			if n.Group == group {
				e = append(e, ListEntry{what, n.Rights, n.ID})
			}
		}
	}
	e = append(e, ListEntry{ForOwner, l.Owner, NoID})
	named(false, ForUser)
	e = append(e, ListEntry{ForGroup, l.Group, NoID})
	named(true, ForNamed)
	if l.Masked {
		e = append(e, ListEntry{ForMask, l.Mask, NoID})
	}
	return append(e, ListEntry{ForOther, l.Other, NoID})
}

// ListOf is the list of some entries, which are in the order of what they are for. ok: they are a list.
func ListOf(entries []ListEntry) (l *AccessList, ok bool) {
	l = new(AccessList)
	last, had := uint32(0), uint32(0)
	for _, e := range entries {
		many := e.For == ForUser || e.For == ForNamed
		if e.For < last || e.For == last && !many {
			return nil, false
		}
		last, had = e.For, had|e.For
		switch e.For {
		case ForOwner:
			l.Owner = e.Rights
		case ForGroup:
			l.Group = e.Rights
		case ForMask:
			l.Mask, l.Masked = e.Rights, true
		case ForOther:
			l.Other = e.Rights
		case ForUser, ForNamed:
			l.Named = append(l.Named, AccessEntry{Group: e.For == ForNamed, ID: e.ID, Rights: e.Rights})
		default:
			return nil, false
		}
	}
	const always = ForOwner | ForGroup | ForOther
	return l, had&always == always && l.Valid()
}

// SortEntries puts entries in the order that ListOf wants, and those of users and of groups in the order of their
// numbers.
func SortEntries(entries []ListEntry) {
	slices.SortStableFunc(entries, func(a, b ListEntry) int {
		if a.For == b.For && a.For != ForUser && a.For != ForNamed {
			return 0
		}
		return cmp.Or(cmp.Compare(a.For, b.For), cmp.Compare(a.ID, b.ID))
	})
}
