package fs

import (
	"time"

	"tansy/internal/gen/fs/exec/calls"
	"tansy/internal/gen/fs/exec/recording"
	"tansy/internal/gen/fs/format/volumegeometry"
	"tansy/internal/gen/fs/procedures/conversions"
	"tansy/internal/gen/fs/replies/replycalls"
	"tansy/internal/layout"
	"tansy/internal/lockorder"
	"tansy/internal/runtime/peers"
	"tansy/internal/runtime/stamps"
)

// Calls that must not be done twice leave records in the transactions that do the work
// (verified/fs/procedures/records.dfy). Verified code decides where the record of a call is or is to be, whether it
// counts, and what is known of it when the call is over (verified/fs/exec/recording.dfy). What is here tells it who
// asks, and what time it is; and it has a call wait while the same one is under way.

const chunkPlaces = BlockSize / layout.InodeSize // the records in a block

// replies are the places for records of a volume.
type replies struct {
	clock  Clock
	opened time.Time
	first  uint64 // block
	chunks uint64 // blocks

	mu       lockorder.Mutex[lockorder.Replies]
	calls    *replycalls.Calls // nil if there are no places
	peers    *peers.Peers
	underway map[[32]byte]chan struct{}
}

// place is where the record of a call is to be.
type place struct {
	id     *CallID
	index  uint64
	look   bool   // there may be a record of this very call
	since  uint64 // it counts if it is not older
	record *buf   // with the time, and of no file yet; nil: it leaves none
	ended  chan struct{}
}

// newReplies reads the records of a volume. reserve makes room for a block on the host.
func newReplies(g volumegeometry.Geometry, clock Clock, read func(a uint64) ([]byte, error),
	reserve func(a uint64) error) *replies {
	n := g.Data0() - g.Slot0()
	r := &replies{
		clock: clock, opened: clock(), first: g.Slot0(), chunks: n, underway: map[[32]byte]chan struct{}{},
		peers: peers.New(n, n*chunkPlaces, func(chunk uint64) error { return reserve(g.Slot0() + chunk) }),
	}
	if n == 0 {
		return r
	}
	r.calls = replycalls.New_Calls_()
	r.calls.Ctor__(n, r.peers)
	for i := range n {
		b, err := read(r.first + i)
		if err != nil {
			r.calls.Broke(i)
			continue
		}
		recording.Opened(r.calls, i, bytesOf(b))
	}
	return r
}

// begin says where the record of a call is to be, and whether there may be one. A call that is under way is waited for.
// It returns nil if the call has no record; else end is to be called.
func (r *replies) begin(id *CallID) *place {
	if id == nil || r.calls == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.underway[id.key] != nil {
		c := r.underway[id.key]
		r.mu.Unlock()
		lockorder.Wait[lockorder.Underway]()
		<-c
		r.mu.Lock()
	}
	now := r.clock()
	sec, nsec := stamps.Of(now)
	p := &place{id: id, record: conversions.NewRecord(sec, nsec, bytesOf(id.key[:]), bytesOf(id.client[:]))}
	r.peers.Begins(id.via)
	p.index, p.look, p.since = recording.Begin(r.calls, p.record, uint64(max(0, now.Sub(r.opened))))
	if p.index == r.chunks*chunkPlaces {
		return nil
	}
	p.ended = make(chan struct{})
	r.underway[id.key] = p.ended
	return p
}

// end says that call c is over, which p is of; again: it was answered from the record that is there.
func (r *replies) end(p *place, c *calls.Call, again bool) {
	if p == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if recording.Over(r.calls, c, p.index, p.record, again) {
		r.peers.Sent(p.index, p.id.via)
	}
	delete(r.underway, p.id.key)
	close(p.ended)
}
