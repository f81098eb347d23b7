// Package listtable is the Go behind verified/trusted/listtable.s.dfy: what the numbers of access lists mean on a
// volume.
package listtable

import (
	"slices"
	"sync/atomic"
)

// An Entry is what a list gives to one user, or one group. Rights are those of a mode: 4 to read, 2 to write, 1 to
// execute, and sums of them.
type Entry struct {
	Group  bool
	ID     uint32
	Rights uint32
}

// A List is an access list. Owner, Group, and Other are what it gives to the owner of a file, to the file's group, and
// to all who are not named. Masked: it has a mask, which bounds what the group and those of Named have.
type List struct {
	Owner, Group, Mask, Other uint32
	Masked                    bool
	Named                     []Entry
}

// Equal tells whether two lists are the same.
func (l *List) Equal(m *List) bool {
	return l.Owner == m.Owner && l.Group == m.Group && l.Mask == m.Mask && l.Other == m.Other &&
		l.Masked == m.Masked && slices.Equal(l.Named, m.Named)
}

// A Table has the lists of a volume by their numbers. The zero Table has none. It only grows. Any number of goroutines
// may use it.
type Table struct {
	lists atomic.Pointer[[]*List] // by number
}

// Lists are all lists by number, nil where there is none. Nobody changes them.
func (t *Table) Lists() []*List {
	if l := t.lists.Load(); l != nil {
		return *l
	}
	return nil
}

// Get is the list of a number, or nil if that means none.
func (t *Table) Get(number uint32) *List {
	if l := t.Lists(); number < uint32(len(l)) {
		return l[number]
	}
	return nil
}

// Add gives a number a meaning. It has none yet. One goroutine at a time may add. l is not changed any more.
func (t *Table) Add(number uint32, l *List) {
	was := t.Lists()
	grown := make([]*List, max(len(was), int(number)+1))
	copy(grown, was)
	grown[number] = l
	t.lists.Store(&grown)
}

// Has tells whether a number means a list.
func (t *Table) Has(number uint32) bool { return t.Get(number) != nil }

// Rights are those that the list of a number gives, but for the entries of users and groups, whose number is named. The
// number means a list.
func (t *Table) Rights(number uint32) (owner, group, mask, other uint32, masked bool, named uint64) {
	l := t.Get(number)
	return l.Owner, l.Group, l.Mask, l.Other, l.Masked, uint64(len(l.Named))
}

// Named is entry i of a user or group. There is one.
func (t *Table) Named(number uint32, i uint64) (group bool, id, rights uint32) {
	e := &t.Get(number).Named[i]
	return e.Group, e.ID, e.Rights
}
