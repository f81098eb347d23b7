// Package dirlist is the Go behind verified/trusted/dirlist.s.dfy: the listing that
// READDIR and READDIRPLUS fill.
//
// The verified code walks a directory and offers its entries in order; the List
// keeps those that fit within the caller's limit, and says of each whether it did.
package dirlist

import (
	"tansy/internal/runtime/dbytes"
)

// Entry is an entry of a listing.
type Entry struct {
	Ino    uint64
	Name   []byte // the List's own copy
	Cookie uint64 // resumes after this entry
}

// List is a listing with a limit. It belongs to one goroutine.
type List struct {
	Entries []Entry

	fits  bool
	take  func(nameLen int) bool
	attr  func(i uint64, inode []byte)
	names []byte // backs the names
}

// New returns an empty listing, for which there is no room.
func New() *List { return new(List) }

// Fill says what an empty listing takes: fits tells whether there is room for it, take whether one more entry fits,
// which is then there. attr, if it is not nil, gets the serialized inode (256 bytes) of entry i, when all entries are
// there. That is attr's from then on.
func (l *List) Fill(fits bool, take func(nameLen int) bool, attr func(i uint64, inode []byte)) {
	l.fits, l.take, l.attr = fits, take, attr
}

// Reset empties l, of which nobody sees anything any more.
func (l *List) Reset() {
	clear(l.Entries)
	dbytes.SpoilBytes(l.names)
	*l = List{Entries: l.Entries[:0], names: l.names[:0]}
}

// Offer appends an entry exactly if it still fits.
func (l *List) Offer(ino uint64, blk *dbytes.Blk, off, n, cookie uint64) bool {
	if !l.take(int(n)) {
		return false
	}
	at := len(l.names)
	if cap(l.names)-at < int(n) { // those before stay where they are
		l.names, at = make([]byte, 0, max(4096, 2*cap(l.names))), 0
	}
	l.names = append(l.names, blk.Data()[off:off+n]...)
	l.Entries = append(l.Entries, Entry{Ino: ino, Name: l.names[at:len(l.names):len(l.names)], Cookie: cookie})
	return true
}

// Fits tells if there is room for what the List has.
func (l *List) Fits() bool { return l.fits }

// Len is the number of entries.
func (l *List) Len() uint64 { return uint64(len(l.Entries)) }

// InoAt is the inode number of entry i; 0, which is no inode, beyond the last one.
func (l *List) InoAt(i uint64) uint64 {
	if i >= l.Len() {
		return 0
	}
	return l.Entries[i].Ino
}

// AttrAt gives entry i its attributes; beyond the last one it does nothing. It takes ip over, which is empty
// afterwards.
func (l *List) AttrAt(i uint64, ip *dbytes.Bytes) {
	inode := ip.Data
	ip.Data = nil
	if i < l.Len() && l.attr != nil {
		l.attr(i, inode)
	}
}
