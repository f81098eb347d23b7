package model

import (
	"bytes"

	"tansy/fs"
)

// The rwx bits of one class.
const (
	mayExec  = 1
	mayWrite = 2
	mayRead  = 4
)

const (
	setUID = 0o4000
	setGID = 0o2000
	sticky = 0o1000
)

func inGroup(c *fs.Cred, gid uint32) bool {
	if c.GID == gid {
		return true
	}
	for _, g := range c.GIDs {
		if g == gid {
			return true
		}
	}
	return false
}

// may tells if the mode bits, or the access list, give c all the rights in want.
func may(c *fs.Cred, n *inode, want uint32) bool {
	if n.access != nil && !isOwner(c, n) {
		return listAllows(c, n, want)
	}
	mode := n.attr.Mode
	switch {
	case c.UID == 0:
		return want&mayExec == 0 || n.attr.Type == fs.Directory || mode&0o111 != 0
	case c.UID == n.attr.UID:
		mode >>= 6
	case inGroup(c, n.attr.GID):
		mode >>= 3
	}
	return mode&want == want
}

func isOwner(c *fs.Cred, n *inode) bool { return c.UID == 0 || c.UID == n.attr.UID }

// mayWriteData is the rule for WRITE and for setting the size.
func mayWriteData(c *fs.Cred, n *inode) bool { return isOwner(c, n) || may(c, n, mayWrite) }

// mayUnlink is the rule of the sticky bit for entry n of directory d.
func mayUnlink(c *fs.Cred, d, n *inode) bool {
	return d.attr.Mode&sticky == 0 || isOwner(c, d) || isOwner(c, n)
}

// checkName refuses what cannot be the name of an entry.
func checkName(name []byte) error {
	switch {
	case len(name) == 0 || bytes.IndexByte(name, '/') >= 0 || bytes.IndexByte(name, 0) >= 0:
		return fs.ErrAcces
	case len(name) > fs.MaxName:
		return fs.ErrNameTooLong
	}
	return nil
}

func isDot(name []byte) bool    { return string(name) == "." }
func isDotDot(name []byte) bool { return string(name) == ".." }

// The bits of ACCESS (RFC 1813, section 3.3.4).
const (
	accessRead    = 0x01
	accessLookup  = 0x02
	accessModify  = 0x04
	accessExtend  = 0x08
	accessDelete  = 0x10
	accessExecute = 0x20
)

// Access implements fs.FileSystem.
func (m *Model) Access(c *fs.Cred, h fs.Handle, want uint32) (uint32, fs.Attr, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.get(h)
	if err != nil {
		return 0, fs.Attr{}, err
	}
	var granted uint32
	if may(c, n, mayRead) {
		granted |= accessRead
	}
	if n.attr.Type == fs.Directory {
		if may(c, n, mayWrite|mayExec) {
			granted |= accessModify | accessExtend | accessDelete
		}
		if may(c, n, mayExec) {
			granted |= accessLookup
		}
	} else {
		if may(c, n, mayWrite) {
			granted |= accessModify | accessExtend
		}
		if may(c, n, mayExec) {
			granted |= accessExecute
		}
	}
	return granted & want, *n.snap(), nil
}
