// Package notes is the Go behind verified/trusted/notes.s.dfy: notes by which the journal's threads tell each other what
// they wish.
package notes

import (
	"maps"
	"slices"
	"time"

	"tansy/internal/lockorder"
)

// Notes are fifteen numbers, which belong to the holder of the journal's mutex, and a list
// of wishes, which anybody may add to. Two of the numbers grow by themselves.
type Notes struct {
	x   [15]uint64
	set [2]time.Time // of numbers age and since

	mu      lockorder.Mutex[lockorder.Notes]
	bulk    map[uint64]struct{}
	damaged map[uint64]struct{}
	tell    func(a uint64)
}

// maxWishes bounds the list of wishes. Most are granted or refused soon. Those for blocks
// that are not written after all (an aborted transaction's) stay, until there are so many
// that all are forgotten.
const maxWishes = 1 << 16

// New returns notes that are all 0, and no wishes.
func New() *Notes {
	return &Notes{bulk: map[uint64]struct{}{}, damaged: map[uint64]struct{}{}}
}

// age and since are the numbers that grow: the milliseconds since they were set, whatever to.
const age, since = 10, 11

// Get returns number i.
func (n *Notes) Get(i uint32) uint64 {
	if i == age || i == since {
		now, set := time.Now(), n.set[i-age] // the clock that never goes back may have stood still while the machine did
		return uint64(max(now.Sub(set), now.Round(0).Sub(set.Round(0)).Abs()).Milliseconds())
	}
	return n.x[i]
}

// Set changes number i.
func (n *Notes) Set(i uint32, x uint64) {
	if i == age || i == since {
		n.set[i-age] = time.Now()
		return
	}
	n.x[i] = x
}

// Wish asks that the next contents of block a go straight home and not through the log.
func (n *Notes) Wish(a uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.bulk) == maxWishes {
		clear(n.bulk)
	}
	n.bulk[a] = struct{}{}
}

// Bulk tells whether there is a wish for block a, and strikes it out.
func (n *Notes) Bulk(a uint64) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	_, ok := n.bulk[a]
	delete(n.bulk, a)
	return ok
}

// maxDamaged bounds the list of damaged blocks.
const maxDamaged = 1 << 16

// Damaged notes that block a was found damaged.
func (n *Notes) Damaged(a uint64) {
	n.mu.Lock()
	_, known := n.damaged[a]
	if !known && len(n.damaged) < maxDamaged {
		n.damaged[a] = struct{}{}
	}
	tell := n.tell
	n.mu.Unlock()
	if !known && tell != nil {
		tell(a)
	}
}

// IsDamaged tells whether block a was found damaged.
func (n *Notes) IsDamaged(a uint64) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	_, known := n.damaged[a]
	return known
}

// OnDamage has tell called for every block that is found damaged, for most of them once. The journal's mutex may
// be held then.
func (n *Notes) OnDamage(tell func(a uint64)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.tell = tell
}

// DamagedBlocks lists, in order, the blocks that were found damaged, as far as there was room to note them.
func (n *Notes) DamagedBlocks() []uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Sorted(maps.Keys(n.damaged))
}
