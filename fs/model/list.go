package model

import (
	"sort"

	"tansy/fs"
)

// Readdir implements fs.FileSystem.
func (m *Model) Readdir(c *fs.Cred, dir fs.Handle, cookie, verf uint64, plus bool, lim fs.Limit) (fs.Listing, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, a, err := m.dir(dir)
	switch {
	case err != nil:
	case !may(c, d, mayRead):
		err = fs.ErrAcces
	case cookie != 0 && verf != 0:
		err = fs.ErrBadCookie
	case lim.Bytes < 0:
		err = fs.ErrTooSmall
	}
	l := fs.Listing{Dir: a}
	if err != nil {
		return l, err
	}
	plus = plus && may(c, d, mayExec)
	// put adds an entry and tells if it fitted.
	put := func(name string, n *inode, cookie uint64) bool {
		if !lim.Take(len(name)) {
			return false
		}
		e := fs.Entry{Ino: n.attr.Ino, Name: []byte(name), Cookie: cookie}
		if plus {
			e.Handle, e.Attr = n.handle(), n.snap()
		}
		l.Entries = append(l.Entries, e)
		return true
	}
	fits := true
	if cookie < 1 {
		fits = put(".", d, 1)
	}
	if fits && cookie < 2 {
		fits = put("..", d.parent, 2)
	}
	i := sort.Search(len(d.list), func(i int) bool { return d.list[i].cookie > cookie })
	for ; fits && i < len(d.list); i++ {
		e := d.list[i]
		fits = put(e.name, e.node, e.cookie)
	}
	if !fits && len(l.Entries) == 0 {
		return l, fs.ErrTooSmall
	}
	l.EOF = fits
	return l, nil
}
