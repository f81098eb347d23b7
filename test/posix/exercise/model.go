//go:build linux

package main

import (
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// The model of a tree that only one process changes.

// node is a file of any kind.
type node struct {
	kind     uint32 // S_IFREG, ...
	mode     uint32 // without the kind
	uid, gid int
	data     []byte         // of a regular file
	target   string         // of a symbolic link
	links    int            // names, of anything but a directory
	replaced bool           // one of its names, by a rename, and lstat was not checked since
	ino      uint64         // once it was seen
	mtime    *unix.Timespec // if it was set and nothing has moved it since

	// of directories
	names    []string // in the order they were made, so that choices can be repeated
	children map[string]*node
	parent   *node // nil for the top
	name     string
}

func newDir() *node { return &node{kind: unix.S_IFDIR, mode: 0o755, children: map[string]*node{}} }

func (n *node) isDir() bool { return n.kind == unix.S_IFDIR }

// path is where a directory is, below the directory top is at.
func (n *node) path(top string) string {
	if n.parent == nil {
		return top
	}
	return filepath.Join(n.parent.path(top), n.name)
}

func (n *node) depth() int {
	d := 0
	for ; n.parent != nil; n = n.parent {
		d++
	}
	return d
}

// nlink is what stat should say.
func (n *node) nlink() int {
	if !n.isDir() {
		return n.links
	}
	c := 2
	for _, child := range n.children {
		if child.isDir() {
			c++
		}
	}
	return c
}

// put adds a name to a directory.
func (n *node) put(name string, child *node) {
	n.names = append(n.names, name)
	n.children[name] = child
	n.mtime = nil
	if child.isDir() {
		child.parent, child.name = n, name
	} else {
		child.links++
	}
}

// take removes a name from a directory.
func (n *node) take(name string) *node {
	child := n.children[name]
	delete(n.children, name)
	i := slices.Index(n.names, name)
	n.names = slices.Delete(n.names, i, i+1)
	n.mtime = nil
	if !child.isDir() {
		child.links--
	}
	return child
}

// within tells if n is top or below it.
func (n *node) within(top *node) bool {
	for ; n != nil; n = n.parent {
		if n == top {
			return true
		}
	}
	return false
}

// inherit gives a new node in directory d its owner and group: those of
// process, which is root, unless the directory hands its group down.
func (n *node) inherit(d *node) {
	if d.mode&unix.S_ISGID != 0 {
		n.gid = d.gid
		if n.isDir() {
			n.mode |= unix.S_ISGID
		}
	}
}

// The predictions: the errno of an operation on name in directory d, 0 if it
// succeeds. They are those of a Linux kernel for root.

func (n *node) mayMake(name string) unix.Errno {
	if n.children[name] != nil {
		return unix.EEXIST
	}
	return 0
}

func (n *node) mayUnlink(name string) unix.Errno {
	c := n.children[name]
	switch {
	case c == nil:
		return unix.ENOENT
	case c.isDir():
		return unix.EISDIR
	}
	return 0
}

func (n *node) mayRmdir(name string) unix.Errno {
	c := n.children[name]
	switch {
	case c == nil:
		return unix.ENOENT
	case !c.isDir():
		return unix.ENOTDIR
	case len(c.names) > 0:
		return unix.ENOTEMPTY
	}
	return 0
}

// mayLink is for a name that is no directory.
func (n *node) mayLink(name string, to *node, toName string) unix.Errno {
	c := n.children[name]
	switch {
	case c == nil:
		return unix.ENOENT
	case to.children[toName] != nil:
		return unix.EEXIST
	}
	return 0
}

func (n *node) mayRename(name string, to *node, toName string) unix.Errno {
	c, old := n.children[name], to.children[toName]
	switch {
	case c == nil:
		return unix.ENOENT
	case c.isDir() && to.within(c):
		return unix.EINVAL
	case old != nil && old.isDir() && old != c && n.within(old):
		return unix.ENOTEMPTY
	case old == nil || old == c:
		return 0
	case c.isDir() && !old.isDir():
		return unix.ENOTDIR
	case !c.isDir() && old.isDir():
		return unix.EISDIR
	case old.isDir() && len(old.names) > 0:
		return unix.ENOTEMPTY
	}
	return 0
}

// rename does a rename that was predicted to succeed.
func (n *node) rename(name string, to *node, toName string) {
	c, old := n.children[name], to.children[toName]
	if old == c {
		return // two names of one file: nothing happens
	}
	if old != nil {
		to.take(toName).replaced = true
	}
	n.take(name)
	to.put(toName, c)
}
