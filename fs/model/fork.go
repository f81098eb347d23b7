package model

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"

	"tansy/fs"
)

// What a checker of histories needs: a Model as a value. It tries an operation on a
// Fork, asks if two models are the same by their Sum, and fills in what an
// implementation is free to choose (time stamps, the handles of new files) when a
// reply tells it: by Fork's arguments before the operation, or, where no reply
// did, by a stand-in that Rehandle and Restamp replace later.

// Fork returns a copy that changes on its own. Its operations take from o the clock,
// the handles of new files, and the stamps of changes; nil stands for those of m.
func (m *Model) Fork(o Options) *Model {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := &Model{
		opt: m.opt, inodes: make(map[uint64]*inode, len(m.inodes)+1), free: slices.Clone(m.free),
		nextIno: m.nextIno, nextGen: m.nextGen, pages: m.pages,
	}
	if o.Clock != nil {
		c.opt.Clock = o.Clock
	}
	if o.NewHandle != nil {
		c.opt.NewHandle = o.NewHandle
	}
	if o.Stamp != nil {
		c.opt.Stamp = o.Stamp
	}
	for ino, n := range m.inodes {
		x := *n
		x.pages = maps.Clone(n.pages)
		c.inodes[ino] = &x
	}
	for _, x := range c.inodes {
		if x.names == nil {
			continue
		}
		x.parent = c.inodes[x.parent.attr.Ino]
		x.names = make(map[string]*entry, len(x.names)+1)
		list := make([]*entry, len(x.list), len(x.list)+1)
		for i, e := range x.list {
			list[i] = &entry{e.name, c.inodes[e.node.attr.Ino], e.cookie}
			x.names[e.name] = list[i]
		}
		x.list = list
	}
	c.root = c.inodes[m.root.attr.Ino]
	return c
}

// Rehandle gives the file with handle old another handle. It tells if there is
// such a file and no other file with the inode number of the new handle.
func (m *Model) Rehandle(old, h fs.Handle) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.get(old)
	if other := m.inodes[h.Ino]; err != nil || other != nil && other != n {
		return false
	}
	delete(m.inodes, old.Ino)
	n.attr.Ino, n.attr.Gen = h.Ino, h.Gen
	m.inodes[h.Ino] = n
	return true
}

// Restamp replaces one time stamp by another in the attributes of all files.
func (m *Model) Restamp(old, t fs.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, n := range m.inodes {
		for _, p := range []*fs.Time{&n.attr.Atime, &n.attr.Mtime, &n.attr.Ctime} {
			if *p == old {
				*p = t
			}
		}
	}
}

// Live tells if inode number ino is in use.
func (m *Model) Live(ino uint64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.inodes[ino] != nil
}

// Named returns the handle of the file that has inode number ino now, if one has.
func (m *Model) Named(ino uint64) (h fs.Handle, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := m.inodes[ino]; n != nil {
		return n.handle(), true
	}
	return fs.Handle{}, false
}

// Sum is a hash of all that can be observed, and of the verifiers of exclusive
// creates. Models with the same content have the same sum, whatever the order
// of the operations that made it; others have different ones, but for chance.
func (m *Model) Sum(seed maphash.Seed) uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	var h maphash.Hash
	h.SetSeed(seed)
	var b [8]byte
	put := func(values ...uint64) {
		for _, v := range values {
			binary.LittleEndian.PutUint64(b[:], v)
			h.Write(b[:])
		}
	}
	str := func(s string) {
		put(uint64(len(s)))
		h.WriteString(s)
	}
	for _, ino := range slices.Sorted(maps.Keys(m.inodes)) {
		n := m.inodes[ino]
		a := &n.attr
		put(ino, a.Gen, uint64(a.Type), uint64(a.Mode), uint64(a.Nlink), uint64(a.UID), uint64(a.GID))
		put(a.Size, uint64(a.Major), uint64(a.Minor), n.verf)
		for _, t := range []fs.Time{a.Atime, a.Mtime, a.Ctime} {
			put(t.Sec, uint64(t.Nsec))
		}
		str(string(n.target))
		for _, l := range []*fs.AccessList{n.access, n.dflt} {
			if l == nil {
				put(0)
				continue
			}
			put(1, uint64(l.Group), uint64(len(l.Named)))
			for _, e := range l.Named {
				str(fmt.Sprint(e))
			}
		}
		if n.dflt != nil { // the rest of an access list is the mode's
			put(uint64(rightsOf(n.dflt)), uint64(n.dflt.Mask))
			str(fmt.Sprint(n.dflt.Masked))
		}
		var zero page
		for _, i := range slices.Sorted(maps.Keys(n.pages)) {
			if p := n.pages[i]; *p != zero { // a hole reads the same
				put(i)
				h.Write(p[:])
			}
		}
		if n.names != nil {
			put(n.parent.attr.Ino, uint64(len(n.names)))
			for _, name := range slices.Sorted(maps.Keys(n.names)) {
				str(name)
				put(n.names[name].node.attr.Ino)
			}
		}
	}
	return h.Sum64()
}
