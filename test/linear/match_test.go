package linear

import (
	"fmt"

	"tansy/fs"
)

// unknown marks what stands for a value that no reply told yet: the time stamps
// and the handle of an operation that got no answer but may have happened. Its low
// bits are the number of the operation.
const unknown = 1 << 62

func standIn(v uint64) bool { return v&unknown != 0 }

func unknownTime(id int) fs.Time { return fs.Time{Sec: unknown | uint64(id)} }
func unknownHandle(id int) fs.Handle {
	return fs.Handle{Ino: unknown | uint64(id), Gen: unknown | uint64(id)}
}

// match compares a reply of the model with the server's. What the model does not
// know is learnt: times and handles.
type match struct {
	calls   []*call // of the history
	top     fs.Handle
	times   map[fs.Time]fs.Time
	handles map[fs.Handle]fs.Handle
	why     error // the first difference
}

func (m *match) fail(format string, args ...any) {
	if m.why == nil {
		m.why = fmt.Errorf(format, args...)
	}
}

func (m *match) time(what string, a, b fs.Time) {
	if standIn(a.Sec) {
		if known, ok := m.times[a]; ok {
			a = known
		} else if c := m.calls[a.Sec&^unknown]; !c.stamped(b) && !c.lifted(b) {
			m.fail("%s is %s, which operation %d cannot have set", what, stamp(b), c.id)
		} else {
			if m.times == nil {
				m.times = map[fs.Time]fs.Time{}
			}
			m.times[a] = b
			return
		}
	}
	if a != b {
		m.fail("%s is %s, not %s", what, stamp(b), stamp(a))
	}
}

// stamped tells if the operation can have given the stamp t.
func (c *call) stamped(t fs.Time) bool {
	n := t.Sec*1e9 + uint64(t.Nsec)
	return c.clock.read(n, c.begun, c.ended)
}

// lifted tells if the operation can have given the stamp t because a file had a ctime before that, from a time to
// which the clock was set back no more.
func (c *call) lifted(t fs.Time) bool { return c.clock.setBack(t.Sec*1e9+uint64(t.Nsec), c.ended) }

// handle compares handles; gen tells if the server's generation is known.
func (m *match) handle(what string, a, b fs.Handle, gen bool) {
	key := a
	if known, ok := m.handles[key]; ok {
		a = known
	}
	learnt := a
	if standIn(a.Ino) {
		learnt.Ino = b.Ino
	}
	if standIn(a.Gen) && gen {
		learnt.Gen = b.Gen
	}
	if learnt != a {
		if m.handles == nil {
			m.handles = map[fs.Handle]fs.Handle{}
		}
		m.handles[key] = learnt
	}
	if learnt.Ino != b.Ino || gen && learnt.Gen != b.Gen {
		m.fail("%s is %s, not %s", what, handleName(b), handleName(a))
	}
}

// attr compares attributes. Size of a directory is not specified; of Used, which the model forgets where a hole was
// filled with zeros, only that it is not more than the size has.
func (m *match) attr(what string, a, b *fs.Attr) {
	if a == nil || b == nil {
		if a != b {
			m.fail("%s: attributes in one reply only", what)
		}
		return
	}
	m.handle(what, fs.Handle{Ino: a.Ino, Gen: a.Gen}, fs.Handle{Ino: b.Ino}, false)
	x, y := *a, *b
	if y.Used%fs.BlockSize != 0 || y.Used >= y.Size+fs.BlockSize {
		m.fail("%s: used is %d, of %d bytes", what, y.Used, y.Size)
	}
	for _, p := range []*fs.Attr{&x, &y} {
		if p.Type == fs.Directory {
			p.Size = 0
		}
		p.Used, p.Ino, p.Gen = 0, 0, 0
		p.Atime, p.Mtime, p.Ctime = fs.Time{}, fs.Time{}, fs.Time{}
	}
	if x != y {
		m.fail("%s is %s, not %s", what, showAttr(b), showAttr(a))
	}
	m.time(what+": atime", a.Atime, b.Atime)
	m.time(what+": mtime", a.Mtime, b.Mtime)
	m.time(what+": ctime", a.Ctime, b.Ctime)
}

// wcc compares both halves; the server may leave out the attributes before.
func (m *match) wcc(what string, a, b fs.WCC) {
	m.attr(what+" after", a.After, b.After)
	if a.Before == nil || b.Before == nil {
		return
	}
	if a.Before.Type != fs.Directory && a.Before.Size != b.Before.Size {
		m.fail("%s before: size %d, not %d", what, b.Before.Size, a.Before.Size)
	}
	m.time(what+" before: mtime", a.Before.Mtime, b.Before.Mtime)
	m.time(what+" before: ctime", a.Before.Ctime, b.Before.Ctime)
}

// reply compares the model's reply a with the server's reply b.
func (m *match) reply(c *call, a, b *reply) bool {
	if a.err != b.err {
		m.fail("%v, not %v", b.err, a.err)
		return false
	}
	m.attr("attributes", a.attr, b.attr)
	m.wcc("first object", a.wcc, b.wcc)
	m.wcc("second object", a.wcc2, b.wcc2)
	m.wcc("directory", a.node.Dir, b.node.Dir)
	m.attr("directory", a.node.Parent.OrNil(), b.node.Parent.OrNil())
	if a.err != nil {
		return m.why == nil
	}
	if a.node.Attr.Type != 0 || b.node.Attr.Type != 0 {
		m.handle("handle", a.node.Handle, b.node.Handle, true)
		m.attr("the file", &a.node.Attr, &b.node.Attr)
	}
	if a.data != b.data {
		m.fail("data %q, not %q", short(b.data), short(a.data))
	}
	if a.n != b.n {
		m.fail("%d, not %d", b.n, a.n)
	}
	if b.committed < c.stable {
		m.fail("committed %d", b.committed)
	}
	if a.eof != b.eof && !c.page {
		m.fail("eof %v", b.eof)
	}
	m.list(c, a, b)
	return m.why == nil
}

// list compares a listing with the model's, which is always whole, with handles,
// and with the attributes that the caller may see.
func (m *match) list(c *call, a, b *reply) {
	entries := map[string]*fs.Entry{}
	for i := range a.list {
		entries[string(a.list[i].Name)] = &a.list[i]
	}
	last := c.cookie
	for i := range b.list {
		e := &b.list[i]
		if e.Cookie <= last {
			m.fail("entry %q has cookie %d, after %d", e.Name, e.Cookie, last)
		}
		last = e.Cookie
		x := entries[string(e.Name)]
		if x == nil {
			m.fail("entry %q is not there, or comes twice", e.Name)
			return
		}
		delete(entries, string(e.Name))
		if c.h.Ino == m.top.Ino && string(e.Name) == ".." {
			continue // leads out of the model
		}
		what := fmt.Sprintf("entry %q", e.Name)
		m.handle(what, x.Handle, fs.Handle{Ino: e.Ino}, false)
		if !c.plus {
			continue
		}
		m.attr(what, x.Attr, e.Attr)
		if x.Attr != nil {
			m.handle(what, x.Handle, e.Handle, true)
		} else if e.Handle != (fs.Handle{}) {
			m.fail("%s has a handle", what)
		}
	}
	if !c.page || c.cookie == 0 && b.eof {
		for name := range entries {
			m.fail("entry %q is missing", name)
		}
	}
}
