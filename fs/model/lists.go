package model

import "tansy/fs"

// Access lists (verified/fs/spec/nfs3.s.dfy, part 2). Of an access list, the rights of owner, mask, and others are
// those of the mode.

// SetLists is that of fs.Lister.
func (m *Model) SetLists(c *fs.Cred, h fs.Handle, l fs.Lists, access, dflt bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.get(h)
	switch {
	case err != nil:
		return err
	case access && l.Access != nil && !l.Access.Valid() || dflt && l.Default != nil && !l.Default.Valid(),
		n.attr.Type == fs.Symlink:
		return fs.ErrInval
	case !isOwner(c, n):
		return fs.ErrPerm
	case dflt && l.Default != nil && n.attr.Type != fs.Directory:
		return fs.ErrAcces
	}
	now := m.now()
	if access {
		m.setAccess(c, n, l.Access)
		n.attr.Ctime = m.stamp(n, now)
	}
	if dflt {
		n.dflt = l.Default
		n.attr.Ctime = m.stamp(n, now)
	}
	return nil
}

// setAccess gives a file an access list, and the mode that goes with it.
func (m *Model) setAccess(c *fs.Cred, n *inode, l *fs.AccessList) {
	n.access = l
	if l == nil {
		return
	}
	n.attr.Mode = n.attr.Mode&^0o777 | rightsOf(l)
	if c.UID != 0 && !inGroup(c, n.attr.GID) {
		n.attr.Mode &^= setGID
	}
	if !l.Masked { // the mode says all
		n.access = nil
	}
}

// rightsOf is what an access list makes of the rights of a mode.
func rightsOf(l *fs.AccessList) uint32 {
	group := l.Group
	if l.Masked {
		group = l.Mask
	}
	return l.Owner<<6 | group<<3 | l.Other
}

// inherit gives the new inode n what it has from its directory's default list.
func (n *inode) inherit(d *inode) {
	if d.dflt == nil || n.attr.Type == fs.Symlink {
		return
	}
	n.attr.Mode &= 0o7000 | rightsOf(d.dflt)
	if d.dflt.Masked {
		n.access = d.dflt
	}
	if n.attr.Type == fs.Directory {
		n.dflt = d.dflt
	}
}

// listAllows tells if the access list of n gives c, who is neither root nor the owner, all the rights in want. The
// entry of the user decides; else those of the groups that c is in, of which one must give all; else the rights of
// others.
func listAllows(c *fs.Cred, n *inode, want uint32) bool {
	mask := n.attr.Mode >> 3
	in := inGroup(c, n.attr.GID)
	may := in && n.access.Group&want == want
	for _, e := range n.access.Named {
		switch {
		case !e.Group && e.ID == c.UID:
			return e.Rights&mask&want == want
		case e.Group && inGroup(c, e.ID):
			in, may = true, may || e.Rights&want == want
		}
	}
	if in {
		return may && mask&want == want
	}
	return n.attr.Mode&want == want
}

// GetAccess is that of fs.FS.
func (m *Model) GetAccess(h fs.Handle) (*fs.AccessList, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.get(h)
	if err != nil || n.access == nil {
		return nil, err
	}
	l, mode := *n.access, n.attr.Mode
	l.Owner, l.Mask, l.Other = mode>>6&7, mode>>3&7, mode&7
	return &l, nil
}

// GetDefault is that of fs.FS.
func (m *Model) GetDefault(h fs.Handle) (*fs.AccessList, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.get(h)
	if err != nil {
		return nil, err
	}
	return n.dflt, nil
}
