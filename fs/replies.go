package fs

import (
	"encoding/binary"
	"time"

	"tansy/internal/gen/fs/format/volumegeometry"
	"tansy/internal/gen/fs/procedures/conversions"
	"tansy/internal/gen/fs/replies/replycalls"
	"tansy/internal/layout"
	"tansy/internal/lockorder"
	"tansy/internal/runtime/peers"
	"tansy/internal/runtime/stamps"
)

// Calls that must not be done twice leave records in the transactions that do the work
// (verified/fs/procedures/records.dfy). Verified code decides where the record of a call is or is to be, and whether it
// counts (verified/fs/replies/calls.dfy). What is here tells it who asks, and what time it is; and it has a call wait
// while the same one is under way.

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
	id    *CallID
	index uint64
	look  bool   // there may be a record of this very call
	since uint64 // it counts if it is not older
	sec   uint64 // now
	nsec  uint32
	ended chan struct{}
}

// record is what the verified code makes the record of: a new one each time, as it may be taken over. Nil: of none.
func (p *place) record() *buf {
	if p.id == nil {
		return nil
	}
	return conversions.NewRecord(p.sec, p.nsec, bytesOf(p.id.key[:]), bytesOf(p.id.client[:]))
}

// word is number i of those that a key or a client has.
func word(b []byte, i int) uint64 { return binary.LittleEndian.Uint64(b[8*i:]) }

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
		for k := range uint64(chunkPlaces) {
			r.found(i*chunkPlaces+k, b[k*layout.InodeSize:][:layout.InodeSize])
		}
	}
	return r
}

// found notes a record that is on the volume when it is opened.
func (r *replies) found(place uint64, b []byte) {
	full, sec, nsec, key, client := conversions.OfRecord(bytesOf(b))
	if !full {
		return
	}
	k, c := key.Data, client.Data
	r.calls.Found(place, word(c, 0), word(c, 1), word(k, 0), word(k, 1), word(k, 2), word(k, 3), sec, nsec)
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
	p := &place{id: id}
	p.sec, p.nsec = stamps.Of(now)
	r.peers.Begins(id.via)
	c, k := id.client[:], id.key[:]
	p.index, p.look, p.since = r.calls.Begin(word(c, 0), word(c, 1), word(k, 0), word(k, 1), word(k, 2), word(k, 3),
		p.sec, p.nsec, uint64(max(0, now.Sub(r.opened))))
	if p.index == r.chunks*chunkPlaces {
		return nil
	}
	p.ended = make(chan struct{})
	r.underway[id.key] = p.ended
	return p
}

// end says what became of the call that p is of: its record is in place (kept), it had been done before (again), or
// neither.
func (r *replies) end(p *place, kept, again bool) {
	if p == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	k := p.id.key[:]
	r.calls.End(p.index, word(k, 0), word(k, 1), word(k, 2), word(k, 3), p.sec, p.nsec, kept)
	if kept || again {
		r.peers.Sent(p.index, p.id.via)
	}
	delete(r.underway, p.id.key)
	close(p.ended)
}

// broke says that the block that p is in cannot be used.
func (r *replies) broke(p *place) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls.Broke(p.index / chunkPlaces)
}
