package model

import "tansy/fs"

// Remove implements fs.FileSystem.
func (m *Model) Remove(c *fs.Cred, dir fs.Handle, name []byte) (fs.WCC, error) {
	return m.unlink(c, dir, name, false)
}

// Rmdir implements fs.FileSystem.
func (m *Model) Rmdir(c *fs.Cred, dir fs.Handle, name []byte) (fs.WCC, error) {
	return m.unlink(c, dir, name, true)
}

func (m *Model) unlink(c *fs.Cred, dir fs.Handle, name []byte, rmdir bool) (fs.WCC, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, before, err := m.dir(dir)
	if err == nil {
		err = checkName(name)
	}
	switch {
	case err != nil:
	case isDotDot(name) && rmdir:
		err = fs.ErrExist
	case isDot(name) || isDotDot(name):
		err = fs.ErrInval
	case !may(c, d, mayWrite|mayExec):
		err = fs.ErrAcces
	}
	if err != nil {
		return d.wcc(before), err
	}
	e := d.names[string(name)]
	switch {
	case e == nil:
		err = fs.ErrNoEnt
	case !mayUnlink(c, d, e.node):
		err = fs.ErrAcces
	case rmdir && e.node.attr.Type != fs.Directory:
		err = fs.ErrNotDir
	case !rmdir && e.node.attr.Type == fs.Directory:
		err = fs.ErrIsDir
	case rmdir && len(e.node.names) > 0:
		err = fs.ErrNotEmpty
	}
	if err != nil {
		return d.wcc(before), err
	}
	now := m.now()
	m.lose(d, e.node, now)
	d.remove(e.name)
	m.changed(d, now)
	return d.wcc(before), nil
}

// lose takes one link from n, which directory d held.
func (m *Model) lose(d, n *inode, now fs.Time) {
	if n.attr.Type == fs.Directory {
		d.attr.Nlink--
		m.drop(n)
	} else if n.attr.Nlink--; n.attr.Nlink == 0 {
		m.drop(n)
	} else {
		n.attr.Ctime = m.stamp(n, now)
	}
}

// Rename implements fs.FileSystem.
func (m *Model) Rename(
	c *fs.Cred, from fs.Handle, fromName []byte, to fs.Handle, toName []byte,
) (fs.WCC, fs.WCC, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f, fbefore, err := m.dir(from)
	t, tbefore, terr := m.dir(to)
	if err == nil {
		err = terr
	}
	if err == nil {
		err = checkName(fromName)
	}
	if err == nil {
		err = checkName(toName)
	}
	if err == nil {
		err = m.rename(c, f, string(fromName), t, string(toName))
	}
	return f.wcc(fbefore), t.wcc(tbefore), err
}

func (m *Model) rename(c *fs.Cred, f *inode, fromName string, t *inode, toName string) error {
	for _, s := range []string{fromName, toName} {
		if s == "." || s == ".." {
			return fs.ErrInval
		}
	}
	if !may(c, f, mayWrite|mayExec) || !may(c, t, mayWrite|mayExec) {
		return fs.ErrAcces
	}
	src := f.names[fromName]
	if src == nil {
		return fs.ErrNoEnt
	}
	n := src.node
	dst := t.names[toName]
	isDir := n.attr.Type == fs.Directory
	if dst != nil && dst.node == n {
		return nil
	}
	if !mayUnlink(c, f, n) {
		return fs.ErrAcces
	}
	if isDir && m.within(t, n) {
		return fs.ErrInval
	}
	if isDir && f != t && !may(c, n, mayWrite) {
		return fs.ErrAcces
	}
	if dst != nil {
		dstDir := dst.node.attr.Type == fs.Directory
		switch {
		case !mayUnlink(c, t, dst.node):
			return fs.ErrAcces
		case isDir && !dstDir:
			return fs.ErrNotDir
		case !isDir && dstDir:
			return fs.ErrIsDir
		case dstDir && len(dst.node.names) > 0:
			return fs.ErrNotEmpty
		}
	} else if isDir && f != t && t.attr.Nlink >= m.opt.MaxLinks {
		return fs.ErrMLink
	}

	now := m.now()
	f.remove(fromName)
	if dst != nil {
		m.lose(t, dst.node, now)
		dst.node = n
	} else {
		t.add(toName, n)
	}
	if isDir {
		n.parent = t
		f.attr.Nlink--
		t.attr.Nlink++
	}
	n.attr.Ctime = m.stamp(n, now)
	m.changed(f, now)
	if f != t {
		m.changed(t, now)
	}
	return nil
}

// within tells if directory d is n or below it.
func (m *Model) within(d, n *inode) bool {
	for ; d != n; d = d.parent {
		if d == m.root {
			return false
		}
	}
	return true
}
