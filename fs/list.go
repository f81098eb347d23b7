package fs

import (
	"slices"

	"tansy/internal/freelist"
	"tansy/internal/gen/fs/exec/answers"
	"tansy/internal/runtime/dirlist"
)

// page is the memory of a Listing.
type page struct {
	list    *dirlist.List
	entries []Entry
	attrs   []Attr // of all entries, or none
}

// unusedPages are those that are not in use, of about so many bytes each.
var unusedPages = freelist.New[*page](freelist.NewBudget(1<<20), 96<<10)

func newPage() *page {
	p, ok := unusedPages.Get()
	if !ok {
		p = &page{list: dirlist.New()}
	}
	return p
}

// Recycle gives back the memory of l, which nobody may use any more. Without it the garbage collector frees that
// memory.
func (l *Listing) Recycle() {
	if l.page != nil {
		l.page.recycle()
		*l = Listing{}
	}
}

func (p *page) recycle() {
	p.list.Reset()
	clear(p.entries)
	clear(p.attrs)
	unusedPages.Put(p)
}

// Readdir implements FileSystem.
func (v *FS) Readdir(who *Cred, dir Handle, cookie, verf uint64, plus bool, lim Limit) (Listing, error) {
	vc := v.cred(new(vcred), who)
	var c call
	var eof bool
	p := uint32(procReaddir)
	if plus {
		p = procReaddirplus
	}
	m := newPage()
	err := v.run(&c, p, func(t *txn) {
		m.list.Reset()
		m.attrs = m.attrs[:0]
		lim := lim // as it was given
		m.list.Fill(lim.Bytes >= 0, lim.Take, func(i uint64, inode []byte) {
			if len(m.attrs) == 0 {
				m.attrs = slices.Grow(m.attrs, len(m.list.Entries))[:len(m.list.Entries)]
			}
			m.attrs[i] = attributes(m.list.InoAt(i), &buf{Data: inode})
			t.SeenLast(inode)
		})
		eof = answers.Readdir(&c.Call, t, v.dirs, vc, dir.Ino, dir.Gen, cookie, verf, plus, m.list)
	})
	r := Listing{Dir: c.attr(dir.Ino)}
	if err != nil {
		m.recycle()
		return r, err
	}
	m.entries = slices.Grow(m.entries[:0], len(m.list.Entries))[:len(m.list.Entries)]
	for i, e := range m.list.Entries {
		m.entries[i] = Entry{Ino: e.Ino, Name: e.Name, Cookie: e.Cookie}
		if len(m.attrs) > 0 {
			m.entries[i].Attr, m.entries[i].Handle = &m.attrs[i], Handle{e.Ino, m.attrs[i].Gen}
		}
	}
	r.Entries, r.EOF, r.page = m.entries, eof, m
	return r, nil
}
