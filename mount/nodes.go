//go:build linux

package mount

import (
	"tansy/fs"
	"tansy/internal/lockorder"
)

// A node is a file that the kernel knows. The kernel names it by its inode number; the generation stays here.
type node struct {
	gen     uint64
	lookups uint64 // times that the kernel was told of it and has not forgotten
	opens   int
	hidden  string   // the name that it lives by while it is open without one of its own; see hidden.go
	gone    *fs.Attr // what it was when it was removed, which the kernel may still ask for
}

// nodes are those that the kernel knows, by inode number.
type nodes struct {
	shards [64]struct {
		lockorder.Mutex[lockorder.Nodes]
		known map[uint64]*node
	}
	// A file's name is taken away, given, and looked at together with whether it is open, with one of these held.
	// One holds no two of them.
	naming [256]lockorder.Mutex[lockorder.Naming]
}

func newNodes(root fs.Handle) *nodes {
	n := &nodes{}
	for i := range n.shards {
		n.shards[i].known = map[uint64]*node{}
	}
	n.learn(root)
	return n
}

// with calls f with the node, under the lock of its shard. It is false if the kernel does not know the file.
func (n *nodes) with(ino uint64, f func(x *node)) bool {
	s := &n.shards[ino%uint64(len(n.shards))]
	s.Lock()
	defer s.Unlock()
	x := s.known[ino]
	if x != nil {
		f(x)
	}
	return x != nil
}

// lockNames keeps the names of a file as they are, until the result is called.
func (n *nodes) lockNames(ino uint64) (unlock func()) {
	l := &n.naming[ino%uint64(len(n.naming))]
	l.Lock()
	return l.Unlock
}

// learn notes that the kernel is being told of a file. When an inode number was used again, what it was before is
// forgotten with it: the kernel tells the two apart by the generation, but counts them together.
func (n *nodes) learn(h fs.Handle) {
	s := &n.shards[h.Ino%uint64(len(n.shards))]
	s.Lock()
	defer s.Unlock()
	x := s.known[h.Ino]
	if x == nil {
		x = &node{gen: h.Gen}
		s.known[h.Ino] = x
	}
	if x.gen < h.Gen {
		*x = node{gen: h.Gen, lookups: x.lookups}
	}
	x.lookups++
}

// forget notes that the kernel has forgotten a file, so many times.
func (n *nodes) forget(ino, times uint64) {
	s := &n.shards[ino%uint64(len(n.shards))]
	s.Lock()
	defer s.Unlock()
	if x := s.known[ino]; x != nil {
		if x.lookups -= min(times, x.lookups); x.lookups == 0 {
			delete(s.known, ino)
		}
	}
}

// handle is the file that the kernel means by an inode number.
func (n *nodes) handle(ino uint64) (h fs.Handle, err error) {
	if !n.with(ino, func(x *node) { h = fs.Handle{Ino: ino, Gen: x.gen} }) {
		return h, fs.ErrStale
	}
	return h, nil
}

// open notes that a file is opened. One that is gone is not: the kernel then looks its name up once more.
func (n *nodes) open(ino uint64) (err error) {
	defer n.lockNames(ino)()
	err = fs.ErrStale
	n.with(ino, func(x *node) {
		if x.gone == nil {
			x.opens++
			err = nil
		}
	})
	return err
}

// isOpen tells whether somebody has the file open, and the name that it is hidden by.
func (n *nodes) isOpen(ino uint64) (open bool, hidden string) {
	n.with(ino, func(x *node) { open, hidden = x.opens > 0, x.hidden })
	return open, hidden
}

// gone is what a removed file was, or nil.
func (n *nodes) gone(ino uint64) (a *fs.Attr) {
	n.with(ino, func(x *node) { a = x.gone })
	return a
}

// setGone notes that a file was removed, which had these attributes.
func (n *nodes) setGone(a fs.Attr) {
	a.Nlink = 0
	n.with(a.Ino, func(x *node) { x.gone, x.hidden = &a, "" })
}
