package model

import "tansy/fs"

// impossible checks what can be said of s without knowing the file.
func (m *Model) impossible(s *fs.SetAttr) error {
	if s.AtimeHow == fs.ClientTime && s.Atime.Nsec >= 1e9 || s.MtimeHow == fs.ClientTime && s.Mtime.Nsec >= 1e9 {
		return fs.ErrInval
	}
	if s.Size != nil && *s.Size > m.opt.MaxSize {
		return fs.ErrFBig
	}
	return nil
}

// meant is s without an owner or group that is nobody's: they set nothing.
func meant(s *fs.SetAttr) *fs.SetAttr {
	t := *s
	if t.UID != nil && *t.UID == fs.NoID {
		t.UID = nil
	}
	if t.GID != nil && *t.GID == fs.NoID {
		t.GID = nil
	}
	return &t
}

// maySet tells if c may set all of s on n.
func maySet(c *fs.Cred, n *inode, s *fs.SetAttr) error {
	own := isOwner(c, n)
	if s.Mode != nil && !own {
		return fs.ErrPerm
	}
	if s.UID != nil && c.UID != 0 && !(own && *s.UID == n.attr.UID) {
		return fs.ErrPerm
	}
	if s.GID != nil && c.UID != 0 && !(own && (*s.GID == n.attr.GID || inGroup(c, *s.GID))) {
		return fs.ErrPerm
	}
	if s.AtimeHow == fs.ClientTime && !own || s.MtimeHow == fs.ClientTime && !own {
		return fs.ErrPerm
	}
	if (s.Size != nil || s.AtimeHow == fs.ServerTime || s.MtimeHow == fs.ServerTime) && !mayWriteData(c, n) {
		return fs.ErrAcces
	}
	return nil
}

// empty tells if s sets nothing.
func empty(s *fs.SetAttr) bool {
	times := s.AtimeHow != fs.DontChange || s.MtimeHow != fs.DontChange
	return s.Mode == nil && s.UID == nil && s.GID == nil && s.Size == nil && !times
}

// set does what maySet allowed; now is the stamp of the change.
func (m *Model) set(c *fs.Cred, n *inode, s *fs.SetAttr, now fs.Time) {
	a := &n.attr
	if s.UID != nil {
		a.UID = *s.UID
	}
	if s.GID != nil {
		a.GID = *s.GID
	}
	if s.Mode != nil {
		a.Mode = *s.Mode & 0o7777
		if c.UID != 0 && !inGroup(c, a.GID) {
			a.Mode &^= setGID
		}
	}
	if (s.UID != nil || s.GID != nil) && a.Type != fs.Directory {
		n.dropSetID()
	}
	if s.Size != nil {
		m.resize(n, *s.Size)
		a.Mtime = now
		if c.UID != 0 {
			n.dropSetID()
		}
	}
	switch s.AtimeHow {
	case fs.ServerTime:
		a.Atime = now
	case fs.ClientTime:
		a.Atime = s.Atime
	}
	switch s.MtimeHow {
	case fs.ServerTime:
		a.Mtime = now
	case fs.ClientTime:
		a.Mtime = s.Mtime
	}
	a.Ctime = now
	n.verf = 0 // who made it EXCLUSIVE has the answer
}

// dropSetID takes away the rights that a change of content or owner ends.
func (n *inode) dropSetID() {
	if n.attr.Mode&0o010 != 0 {
		n.attr.Mode &^= setGID
	}
	n.attr.Mode &^= setUID
}

// resize sets the size of a regular file; what is cut off reads as zeros if the
// file grows again.
func (m *Model) resize(n *inode, size uint64) {
	for i, p := range n.pages {
		start := i * fs.BlockSize
		if start >= size {
			delete(n.pages, i)
			m.pages--
			n.gone++
		} else if start+fs.BlockSize > size {
			cut := *p
			clear(cut[size-start:])
			n.pages[i] = &cut
		}
	}
	n.attr.Size = size
}

// Setattr implements fs.FileSystem.
func (m *Model) Setattr(c *fs.Cred, h fs.Handle, s *fs.SetAttr, guard *fs.Time) (fs.WCC, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.get(h)
	if err != nil {
		return fs.WCC{}, err
	}
	before := n.snap()
	s = meant(s)
	switch {
	case guard != nil && *guard != n.attr.Ctime:
		err = fs.ErrNotSync
	case s.Size != nil && n.attr.Type != fs.Regular:
		err = fs.ErrInval
	default:
		if err = m.impossible(s); err == nil {
			err = maySet(c, n, s)
		}
	}
	if err != nil {
		return n.wcc(before), err
	}
	if !empty(s) {
		m.set(c, n, s, m.stamp(n, m.now()))
	}
	return n.wcc(before), nil
}

// Readlink implements fs.FileSystem.
func (m *Model) Readlink(c *fs.Cred, h fs.Handle) ([]byte, *fs.Attr, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.get(h)
	if err != nil {
		return nil, nil, err
	}
	if n.attr.Type != fs.Symlink {
		return nil, n.snap(), fs.ErrInval
	}
	return append([]byte(nil), n.target...), n.snap(), nil
}

// Read implements fs.FileSystem.
func (m *Model) Read(c *fs.Cred, h fs.Handle, off uint64, count uint32) ([]byte, bool, *fs.Attr, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.get(h)
	if err != nil {
		return nil, false, nil, err
	}
	if n.attr.Type != fs.Regular {
		return nil, false, n.snap(), fs.ErrInval
	}
	if !mayReadData(c, n) {
		return nil, false, n.snap(), fs.ErrAcces
	}
	if off >= n.attr.Size {
		return nil, true, n.snap(), nil
	}
	data := make([]byte, min(uint64(count), n.attr.Size-off))
	for done := 0; done < len(data); {
		at := off + uint64(done)
		in := at % fs.BlockSize
		k := min(len(data)-done, int(fs.BlockSize-in))
		if p := n.pages[at/fs.BlockSize]; p != nil {
			copy(data[done:done+k], p[in:])
		}
		done += k
	}
	return data, off+uint64(len(data)) == n.attr.Size, n.snap(), nil
}

func mayReadData(c *fs.Cred, n *inode) bool {
	return isOwner(c, n) || may(c, n, mayRead) || may(c, n, mayExec)
}

// Write implements fs.FileSystem. It stores all of data or nothing.
func (m *Model) Write(
	c *fs.Cred, h fs.Handle, off uint64, data []byte, how fs.Stability,
) (uint32, fs.Stability, fs.WCC, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.get(h)
	if err != nil {
		return 0, how, fs.WCC{}, err
	}
	before := n.snap()
	size := uint64(len(data))
	switch {
	case n.attr.Type != fs.Regular:
		err = fs.ErrInval
	case off > m.opt.MaxSize || size > m.opt.MaxSize-off:
		err = fs.ErrFBig
	case !mayWriteData(c, n):
		err = fs.ErrAcces
	case size == 0:
		return 0, how, n.wcc(before), nil
	case m.newPages(n, off, size) > m.opt.Capacity/fs.BlockSize-m.pages:
		err = fs.ErrNoSpc
	}
	if err != nil {
		return 0, how, n.wcc(before), err
	}
	for done := 0; done < len(data); {
		at := off + uint64(done)
		in := at % fs.BlockSize
		p := new(page)
		if old := n.pages[at/fs.BlockSize]; old != nil {
			*p = *old
		} else {
			m.pages++
		}
		n.pages[at/fs.BlockSize] = p
		done += copy(p[in:], data[done:])
	}
	n.attr.Size = max(n.attr.Size, off+size)
	if c.UID != 0 {
		n.dropSetID()
	}
	m.changed(n, m.now())
	return uint32(size), how, n.wcc(before), nil
}

// newPages counts the holes that a write would fill.
func (m *Model) newPages(n *inode, off, size uint64) (missing uint64) {
	for i := off / fs.BlockSize; i <= (off+size-1)/fs.BlockSize; i++ {
		if n.pages[i] == nil {
			missing++
		}
	}
	return missing
}
