// Package notes is the Go behind verified/trusted/notes.s.dfy: notes by which the journal's threads tell each other
// what they wish.
package notes

import (
	"maps"
	"slices"
	"time"

	"tansy/internal/lockorder"
)

// Notes steer when the journal does things. They belong to the holder of its mutex, but for two lists, which anybody
// may add to: of wishes, and of damaged blocks.
type Notes struct {
	writeUpTo          uint64 // a commit, as the two that follow
	durableUpTo        uint64
	runningDurableUpTo uint64
	waiters            uint64
	roomyGroups        uint64
	oddGroup           bool
	installNow         bool
	stopping           bool

	look, barrier time.Time // the last of each

	barrierBlocks uint64
	streamBlocks  uint64
	streamBound   uint64

	groups, installations uint64

	mu      lockorder.Mutex[lockorder.Notes] // for what follows
	bulk    map[uint64]struct{}
	damaged map[uint64]struct{}
	tell    func(a uint64)
}

// maxWishes bounds the list of wishes. Most are granted or refused soon. Those for blocks
// that are not written after all (an aborted transaction's) stay, until there are so many
// that all are forgotten.
const maxWishes = 1 << 16

// New returns notes of nothing, and no wishes.
func New() *Notes {
	return &Notes{bulk: map[uint64]struct{}{}, damaged: map[uint64]struct{}{}}
}

// WriteUpTo is the last commit that is wanted written now.
func (n *Notes) WriteUpTo() uint64 { return n.writeUpTo }

// SetWriteUpTo changes it.
func (n *Notes) SetWriteUpTo(commit uint64) { n.writeUpTo = commit }

// RaiseWriteUpTo makes it a commit, or a later one.
func (n *Notes) RaiseWriteUpTo(commit uint64) { n.writeUpTo = max(n.writeUpTo, commit) }

// DurableUpTo is the last commit that is wanted durable now, of those that are not in the running group.
func (n *Notes) DurableUpTo() uint64 { return n.durableUpTo }

// RaiseDurableUpTo makes it a commit, or a later one.
func (n *Notes) RaiseDurableUpTo(commit uint64) { n.durableUpTo = max(n.durableUpTo, commit) }

// RunningDurableUpTo is the last commit that is wanted durable now, of those that are in the running group.
func (n *Notes) RunningDurableUpTo() uint64 { return n.runningDurableUpTo }

// RaiseRunningDurableUpTo makes it a commit, or a later one.
func (n *Notes) RaiseRunningDurableUpTo(commit uint64) {
	n.runningDurableUpTo = max(n.runningDurableUpTo, commit)
}

// Waiters is how many threads, at least, wait for the running group.
func (n *Notes) Waiters() uint64 { return n.waiters }

// SetWaiters changes it.
func (n *Notes) SetWaiters(waiters uint64) { n.waiters = waiters }

// OddGroup says whether the running group is an odd one, of which another condition variable tells than of even ones.
func (n *Notes) OddGroup() bool { return n.oddGroup }

// SetOddGroup changes it.
func (n *Notes) SetOddGroup(odd bool) { n.oddGroup = odd }

// RoomyGroups is how many groups more leave room for commits that somebody waits for.
func (n *Notes) RoomyGroups() uint64 { return n.roomyGroups }

// SetRoomyGroups changes it.
func (n *Notes) SetRoomyGroups(groups uint64) { n.roomyGroups = groups }

// InstallNow says whether the logged groups are to be installed now.
func (n *Notes) InstallNow() bool { return n.installNow }

// SetInstallNow changes it.
func (n *Notes) SetInstallNow(now bool) { n.installNow = now }

// Stopping says whether the threads of the background should end.
func (n *Notes) Stopping() bool { return n.stopping }

// Stop says that they should.
func (n *Notes) Stop() { n.stopping = true }

// SinceLook is how many milliseconds ago LookNow was called; many if it never was.
func (n *Notes) SinceLook() uint64 { return since(n.look) }

// LookNow says that the header is being looked at.
func (n *Notes) LookNow() { n.look = time.Now() }

// SinceBarrier is how many milliseconds ago BarrierNow was called; many if it never was.
func (n *Notes) SinceBarrier() uint64 { return since(n.barrier) }

// BarrierNow says that a barrier of the log begins.
func (n *Notes) BarrierNow() { n.barrier = time.Now() }

// since is how many milliseconds ago that was. The clock that never goes back may have stood still while the machine
// did.
func since(t time.Time) uint64 {
	now := time.Now()
	return uint64(max(now.Sub(t), now.Round(0).Sub(t.Round(0)).Abs()).Milliseconds())
}

// BarrierBlocks is for how many direct blocks the last barrier of the log was.
func (n *Notes) BarrierBlocks() uint64 { return n.barrierBlocks }

// SetBarrierBlocks changes it.
func (n *Notes) SetBarrierBlocks(blocks uint64) { n.barrierBlocks = blocks }

// StreamBlocks is for how many direct blocks all barriers since the last pause were.
func (n *Notes) StreamBlocks() uint64 { return n.streamBlocks }

// SetStreamBlocks changes it.
func (n *Notes) SetStreamBlocks(blocks uint64) { n.streamBlocks = blocks }

// StreamBound is how many direct blocks of a stream want the next barrier.
func (n *Notes) StreamBound() uint64 { return n.streamBound }

// SetStreamBound changes it.
func (n *Notes) SetStreamBound(blocks uint64) { n.streamBound = blocks }

// CountGroup counts a group that was committed.
func (n *Notes) CountGroup() { n.groups++ }

// Groups is how many there were.
func (n *Notes) Groups() uint64 { return n.groups }

// CountInstallation counts an installation that is over.
func (n *Notes) CountInstallation() { n.installations++ }

// Installations is how many there were.
func (n *Notes) Installations() uint64 { return n.installations }

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
