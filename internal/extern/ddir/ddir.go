// Package ddir is the Go behind verified/trusted/dirlist.s.dfy: the listing that
// READDIR and READDIRPLUS fill.
//
// The verified code walks a directory and offers its entries in order; the List
// keeps those that fit within the caller's limit, and says of each whether it did.
package ddir

import (
	"tansy/internal/extern/dbytes"
	"tansy/internal/freelist"
)

// Entry is an entry of a listing.
type Entry struct {
	Ino    uint64
	Name   []byte // the List's own copy
	Cookie uint64 // resumes after this entry
	Attr   []byte // the serialized inode (256 bytes), when it was asked for; else nil. It is the List's
}

// List is a listing with a limit on its encoded size. It belongs to one call.
type List struct {
	Entries []Entry

	room int
	size func(nameLen int) int
	buf  []byte // backs the names: one allocation for many
	attr []byte // backs the attributes
}

// idle are lists that have been recycled, of about so many bytes each.
var idle = freelist.New[*List](freelist.NewBudget(1<<20), 128<<10)

// New returns an empty listing. size is the encoded size of an entry in bytes; the
// sizes of the entries that fit sum up to at most max; with a max below 0 none fits.
func New(max int, size func(nameLen int) int) *List {
	l, ok := idle.Get()
	if !ok {
		l = new(List)
	}
	l.room, l.size = max, size
	return l
}

// Recycle takes l back, but for the names of its entries.
func (l *List) Recycle() {
	clear(l.Entries)
	l.Entries, l.buf, l.attr, l.size = l.Entries[:0], nil, l.attr[:0], nil
	idle.Put(l)
}

// Offer appends an entry exactly if it still fits.
func (l *List) Offer(ino uint64, blk *dbytes.Blk, off, n, cookie uint64) bool {
	need := l.size(int(n))
	if need > l.room {
		return false
	}
	l.room -= need
	if uint64(cap(l.buf)-len(l.buf)) < n {
		l.buf = make([]byte, 0, 4096)
	}
	at := len(l.buf)
	l.buf = append(l.buf, blk.Data()[off:off+n]...)
	l.Entries = append(l.Entries, Entry{Ino: ino, Name: l.buf[at:len(l.buf):len(l.buf)], Cookie: cookie})
	return true
}

// Fits tells if there is room for what the List has. There is, unless max is below 0.
func (l *List) Fits() bool { return l.room >= 0 }

// Len is the number of entries.
func (l *List) Len() uint64 { return uint64(len(l.Entries)) }

// InoAt is the inode number of entry i; 0, which is no inode, beyond the last one.
func (l *List) InoAt(i uint64) uint64 {
	if i >= l.Len() {
		return 0
	}
	return l.Entries[i].Ino
}

// AttrAt gives entry i its attributes; beyond the last one it does nothing. ip is
// copied.
func (l *List) AttrAt(i uint64, ip *dbytes.Bytes) {
	if i >= l.Len() {
		return
	}
	n := len(ip.Data)
	if cap(l.attr)-len(l.attr) < n {
		l.attr = make([]byte, 0, max(16<<10, 2*cap(l.attr))) // those before stay where they are
	}
	at := len(l.attr)
	l.attr = append(l.attr, ip.Data...)
	l.Entries[i].Attr = l.attr[at:len(l.attr):len(l.attr)]
}
