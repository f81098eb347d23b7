package crash

import (
	"sync"

	"tansy/disk"
)

// A recovery does what it does because of what it reads. Another image that has the same in all blocks that one
// recovery has read of what the crash left is recovered in the same way, so that what comes of it is known without
// doing it: where that recovery wrote, what it wrote, and everywhere else what the image has. Where that is what was
// seen and found right before, it is right again.

// traced is a device that notes which of some blocks are read as they were at first, and which are written.
type traced struct {
	*disk.Sim
	mu     sync.Mutex
	blocks map[uint64]*touched
}

// touched is what was done to a block first.
type touched struct {
	first         *disk.Content // what was there before
	read, written bool          // at most one of them
}

// newTraced notes what is done to these blocks.
func newTraced(d *disk.Sim, blocks []uint64) *traced {
	t := &traced{Sim: d, blocks: make(map[uint64]*touched, len(blocks))}
	for _, a := range blocks {
		t.blocks[a] = &touched{first: d.Content(a)}
	}
	return t
}

// note notes that some blocks are read or written now. The caller holds mu, until it is done.
func (t *traced) note(a uint64, n int, writing bool) {
	for b := a; b < a+uint64(n); b++ {
		if x := t.blocks[b]; x != nil && !x.read && !x.written {
			x.read, x.written = !writing, writing
		}
	}
}

// ReadAt implements disk.Disk.
func (t *traced) ReadAt(a uint64, bufs [][]byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.note(a, len(bufs), false)
	return t.Sim.ReadAt(a, bufs)
}

// WriteAt implements disk.Disk.
func (t *traced) WriteAt(a uint64, bufs [][]byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.note(a, len(bufs), true)
	return t.Sim.WriteAt(a, bufs)
}

// precedent is what one recovery tells of others.
type precedent struct {
	read []known // another image that has these
	left []known // and others here becomes the same but for these,
	sum  uint64  // which is this with them
}

// known is a block, and a hash of what it was.
type known struct{ a, sum uint64 }

// learn keeps what the recovery of an image tells of others, and returns the sum of what was recovered.
func (e *equals) learn(t *traced) uint64 {
	t.mu.Lock() // what runs in the background waits
	defer t.mu.Unlock()
	p := precedent{sum: e.log.sum(t.Sim)}
	for a, x := range t.blocks {
		switch {
		case x.read:
			p.read = append(p.read, known{a, x.first.Sum()})
		case !x.written:
			p.left = append(p.left, known{a, e.log.part(a, x.first)})
		}
	}
	e.before = append(e.before, p)
	return p.sum
}

// foresee is what can be seen of an image once it is recovered, if that is known, and found right before.
func (e *equals) foresee(image *disk.Sim) (tree string, ok bool) {
precedents:
	for _, p := range e.before {
		for _, b := range p.read {
			if image.Content(b.a).Sum() != b.sum {
				continue precedents
			}
		}
		sum := p.sum
		for _, b := range p.left {
			sum += e.log.part(b.a, image.Content(b.a)) - b.sum
		}
		if e.clean[sum] {
			tree, ok = e.trees[sum]
			return tree, ok
		}
	}
	return "", false
}
