//go:build linux || darwin

package mount

import (
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"tansy/fs"
	"tansy/internal/lockorder"
)

// A node is a file that the kernel knows.
type node struct {
	handle  fs.Handle
	lookups uint64    // times that the kernel was told of it and has not forgotten
	opens   int       // of what nodes.tracked is true for
	kept    bool      // by the volume, while it may be open: see kept.go
	cut     time.Time // when much of it was cut off, or fewer blocks were seen since; zero: long ago
	used    uint64    // then, in bytes
	gone    *fs.Attr  // what it was when it was removed, which the kernel may still ask for
}

// nodeID is what the kernel knows a file by. An inode number alone would not do: it is used again, and replies about
// the file that had it and about the one that has it may reach the kernel in any order; one that knows it by another
// generation takes the file for a bad one.
func nodeID(h fs.Handle) uint64 {
	if h.Ino == fuse.FUSE_ROOT_ID { // that of the root is given
		return h.Ino
	}
	return h.Gen<<inoBits | h.Ino&(1<<inoBits-1)
}

// inoBits is how many bits of a node's number are those of the inode number: a volume of 2 PiB has 2^37 inodes.
const inoBits = 40

// nodes are those that the kernel knows, by their numbers.
type nodes struct {
	// Whether the kernel tells of each file that is opened, and closed. If not, any file that it knows may be open.
	tracked bool

	kept keepsake // those that the volume keeps

	shards [64]struct {
		lockorder.Mutex[lockorder.Nodes]
		known map[uint64]*node
	}
	// A file's name is taken away, given, and looked at together with whether it is open, with one of these held.
	// One holds no two of them.
	naming [256]lockorder.Mutex[lockorder.Naming]
}

func newNodes(root fs.Handle, tracked bool) *nodes {
	n := &nodes{tracked: tracked}
	if !tracked { // else what is let go was closed before
		n.kept.patience = forgetting
	}
	for i := range n.shards {
		n.shards[i].known = map[uint64]*node{}
	}
	n.learn(root)
	return n
}

// with calls f with the node, under the lock of its shard. It is false if the kernel does not know the file.
func (n *nodes) with(id uint64, f func(x *node)) bool {
	s := &n.shards[id%uint64(len(n.shards))]
	s.Lock()
	defer s.Unlock()
	x := s.known[id]
	if x != nil {
		f(x)
	}
	return x != nil
}

// lockNames keeps the names of a file as they are, until the result is called.
func (n *nodes) lockNames(id uint64) (unlock func()) {
	l := &n.naming[id%uint64(len(n.naming))]
	l.Lock()
	return l.Unlock
}

// learn notes that the kernel is being told of a file.
func (n *nodes) learn(h fs.Handle) {
	id := nodeID(h)
	s := &n.shards[id%uint64(len(n.shards))]
	s.Lock()
	defer s.Unlock()
	x := s.known[id]
	if x == nil {
		x = &node{handle: h}
		s.known[id] = x
	}
	x.lookups++
}

// forget notes that the kernel has forgotten a file, so many times.
func (n *nodes) forget(id, times uint64) {
	s := &n.shards[id%uint64(len(n.shards))]
	s.Lock()
	defer s.Unlock()
	if x := s.known[id]; x != nil {
		if x.lookups -= min(times, x.lookups); x.lookups == 0 {
			n.mark(x, false)
			delete(s.known, id)
		}
	}
}

// handle is the file that the kernel means by a number.
func (n *nodes) handle(id uint64) (h fs.Handle, err error) {
	if !n.with(id, func(x *node) { h = x.handle }) {
		return h, fs.ErrStale
	}
	return h, nil
}

// open notes that a file is opened. One that is gone is not: the kernel then looks its name up once more.
func (n *nodes) open(id uint64) (err error) {
	defer n.lockNames(id)()
	err = fs.ErrStale
	n.with(id, func(x *node) {
		if x.gone == nil {
			x.opens++
			err = nil
		}
	})
	return err
}

// isOpen tells whether somebody has the file open, as far as is known, and whether the volume keeps it.
func (n *nodes) isOpen(id uint64) (open, kept bool) {
	n.with(id, func(x *node) { open, kept = x.opens > 0 || !n.tracked, x.kept })
	return open, kept
}

// keptUntil tells whether the volume keeps a file that the kernel knows, and does not know any more when it has
// forgotten it so many times.
func (n *nodes) keptUntil(id, times uint64) (last bool) {
	n.with(id, func(x *node) { last = x.kept && x.lookups <= times })
	return last
}

// setKept notes that the volume keeps a file that the kernel knows, or does so no longer.
func (n *nodes) setKept(id uint64, kept bool) {
	n.with(id, func(x *node) { n.mark(x, kept) })
}

// mark is setKept, under the lock of the node's shard.
func (n *nodes) mark(x *node, kept bool) {
	switch {
	case kept && !x.kept:
		n.kept.add()
	case !kept && x.kept:
		n.kept.remove(true)
	}
	x.kept = kept
}

// neverKept takes setKept back, when the volume keeps the file no more than before.
func (n *nodes) neverKept(id uint64) {
	n.with(id, func(x *node) {
		if x.kept {
			n.kept.remove(false)
		}
		x.kept = false
	})
}

// allKept are the files that the volume keeps.
func (n *nodes) allKept() (ids []uint64) {
	for i := range n.shards {
		s := &n.shards[i]
		s.Lock()
		for id, x := range s.known {
			if x.kept {
				ids = append(ids, id)
			}
		}
		s.Unlock()
	}
	return ids
}

// gone is what a removed file was, or nil.
func (n *nodes) gone(id uint64) (a *fs.Attr) {
	n.with(id, func(x *node) { a = x.gone })
	return a
}

// setGone notes that a file was removed, which had these attributes.
func (n *nodes) setGone(a fs.Attr) {
	a.Nlink = 0
	n.with(nodeID(fs.Handle{Ino: a.Ino, Gen: a.Gen}), func(x *node) {
		x.gone = &a
		n.mark(x, false)
	})
}
