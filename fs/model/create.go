package model

import (
	"bytes"

	"tansy/fs"
)

// Lookup implements fs.FileSystem.
func (m *Model) Lookup(c *fs.Cred, dir fs.Handle, name []byte) (fs.Node, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, _, err := m.dir(dir)
	if err == nil {
		err = checkName(name)
	}
	if err == nil && !may(c, d, mayExec) {
		err = fs.ErrAcces
	}
	if d == nil {
		return fs.Node{}, err
	}
	n := fs.Node{Parent: *d.snap()}
	if err != nil {
		return n, err
	}
	found := d
	if isDotDot(name) {
		found = d.parent
	} else if !isDot(name) {
		e := d.names[string(name)]
		if e == nil {
			return n, fs.ErrNoEnt
		}
		found = e.node
	}
	n.Handle, n.Attr = found.handle(), *found.snap()
	return n, nil
}

// node is n as the result of an operation on directory d.
func (n *inode) node(d *inode, before *fs.Attr) fs.Node {
	return fs.Node{Handle: n.handle(), Attr: *n.snap(), Dir: d.wcc(before)}
}

// creation is what the operations that make an entry have in common.
type creation struct {
	typ  fs.Type
	mode uint32 // if s has none
	s    fs.SetAttr
	// bad is an error in the arguments, reported after those of the directory.
	bad error
	// exists decides what happens if the name is taken; nil is EXIST.
	exists func(d, n *inode) error
	// fill completes the new inode.
	fill func(n *inode)
}

func (m *Model) create(c *fs.Cred, dir fs.Handle, name []byte, k creation) (fs.Node, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, before, err := m.dir(dir)
	if err == nil {
		err = checkName(name)
	}
	if err == nil && (isDot(name) || isDotDot(name)) {
		err = fs.ErrExist
	}
	if err == nil {
		err = k.bad
	}
	if err == nil {
		err = m.impossible(&k.s)
	}
	if err == nil && !may(c, d, mayExec) {
		err = fs.ErrAcces
	}
	if err != nil {
		return fs.Node{Dir: d.wcc(before)}, err
	}
	if e := d.names[string(name)]; e != nil {
		err = fs.ErrExist
		if k.exists != nil {
			err = k.exists(d, e.node)
		}
		if err != nil {
			return fs.Node{Dir: d.wcc(before)}, err
		}
		return e.node.node(d, before), nil
	}
	switch {
	case !may(c, d, mayWrite):
		err = fs.ErrAcces
	case k.typ == fs.Directory && d.attr.Nlink >= m.opt.MaxLinks:
		err = fs.ErrMLink
	case uint64(len(m.inodes)) >= m.opt.MaxFiles:
		err = fs.ErrNoSpc
	}
	if err != nil {
		return fs.Node{Dir: d.wcc(before)}, err
	}

	now := m.now()
	n := m.alloc(k.typ, now)
	n.attr.UID, n.attr.GID = c.UID, c.GID
	if d.attr.Mode&setGID != 0 {
		n.attr.GID = d.attr.GID
	}
	if k.s.Mode == nil {
		k.s.Mode = &k.mode
	}
	if c.UID != 0 {
		k.s.UID, k.s.GID = nil, nil
	}
	size := k.s.Size
	k.s.Size = nil // nothing is cut off, so setuid stays
	m.set(c, n, meant(&k.s), now)
	n.inherit(d)
	if size != nil {
		m.resize(n, *size)
	}
	n.attr.Nlink = 1
	if k.typ == fs.Directory {
		n.attr.Nlink = 2
		n.attr.Mode |= d.attr.Mode & setGID
		n.parent = d
		d.attr.Nlink++
	}
	if k.fill != nil {
		k.fill(n)
	}
	d.add(string(name), n)
	m.changed(d, now)
	return n.node(d, before), nil
}

// Create implements fs.FileSystem.
func (m *Model) Create(
	c *fs.Cred, dir fs.Handle, name []byte, how fs.CreateHow, s *fs.SetAttr, verf uint64,
) (fs.Node, error) {
	k := creation{typ: fs.Regular, mode: 0o644}
	switch how {
	case fs.Unchecked:
		k.s = *s
		k.exists = func(d, n *inode) error {
			if n.attr.Type != fs.Regular {
				return fs.ErrExist
			}
			size := &fs.SetAttr{Size: s.Size}
			if err := maySet(c, n, size); err != nil {
				return err
			}
			if !empty(size) {
				m.set(c, n, size, m.stamp(n, m.now()))
			}
			return nil
		}
	case fs.Guarded:
		k.s = *s
	case fs.Exclusive:
		k.mode = 0
		k.fill = func(n *inode) { n.verf = verf }
		k.exists = func(d, n *inode) error {
			if n.attr.Type == fs.Regular && n.verf == verf && verf != 0 {
				return nil
			}
			return fs.ErrExist
		}
	default:
		k.bad = fs.ErrInval
	}
	return m.create(c, dir, name, k)
}

// Mkdir implements fs.FileSystem.
func (m *Model) Mkdir(c *fs.Cred, dir fs.Handle, name []byte, s *fs.SetAttr) (fs.Node, error) {
	k := creation{typ: fs.Directory, mode: 0o755, s: *s}
	k.s.Size = nil
	return m.create(c, dir, name, k)
}

// Symlink implements fs.FileSystem.
func (m *Model) Symlink(c *fs.Cred, dir fs.Handle, name []byte, s *fs.SetAttr, target []byte) (fs.Node, error) {
	k := creation{typ: fs.Symlink, mode: 0o777, s: *s}
	k.s.Mode, k.s.Size = nil, nil
	if len(target) == 0 {
		k.bad = fs.ErrInval
	} else if len(target) > fs.MaxSymlink {
		k.bad = fs.ErrNameTooLong
	} else if bytes.IndexByte(target, 0) >= 0 {
		k.bad = fs.ErrInval
	}
	k.fill = func(n *inode) { n.target = append([]byte(nil), target...) }
	return m.create(c, dir, name, k)
}

// Mknod implements fs.FileSystem.
func (m *Model) Mknod(
	c *fs.Cred, dir fs.Handle, name []byte, t fs.Type, s *fs.SetAttr, major, minor uint32,
) (fs.Node, error) {
	k := creation{typ: t, mode: 0o644, s: *s}
	k.s.Size = nil
	switch t {
	case fs.Block, fs.Char:
		if c.UID != 0 {
			k.bad = fs.ErrPerm
		} else if major >= 1<<12 || minor >= 1<<20 {
			k.bad = fs.ErrInval
		}
		k.fill = func(n *inode) { n.attr.Major, n.attr.Minor = major, minor }
	case fs.Socket, fs.FIFO:
	default:
		k.bad = fs.ErrBadType
	}
	return m.create(c, dir, name, k)
}

// Link implements fs.FileSystem.
func (m *Model) Link(c *fs.Cred, file, dir fs.Handle, name []byte) (*fs.Attr, fs.WCC, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.get(file)
	if err != nil {
		return nil, fs.WCC{}, err
	}
	d, before, err := m.dir(dir)
	if err == nil {
		err = checkName(name)
	}
	switch {
	case err != nil:
	case isDot(name) || isDotDot(name):
		err = fs.ErrExist
	case n.attr.Type == fs.Directory:
		err = fs.ErrInval
	case !may(c, d, mayExec):
		err = fs.ErrAcces
	case d.names[string(name)] != nil:
		err = fs.ErrExist
	case !may(c, d, mayWrite):
		err = fs.ErrAcces
	case n.attr.Nlink >= m.opt.MaxLinks:
		err = fs.ErrMLink
	default:
		now := m.now()
		d.add(string(name), n)
		m.changed(d, now)
		n.attr.Nlink++
		n.attr.Ctime = m.stamp(n, now)
	}
	return n.snap(), d.wcc(before), err
}
