package fs

import (
	"maps"
	"time"

	"tansy/internal/gen/fs/format/volumegeometry"
	"tansy/internal/gen/fs/procedures/conversions"
	"tansy/internal/gen/fs/replies/replyplaces"
	"tansy/internal/layout"
	"tansy/internal/lockorder"
)

// Calls that must not be done twice leave records in the transactions that do the work
// (verified/fs/procedures/records.dfy). Which place a record gets is decided by verified code, too
// (verified/fs/replies/places.dfy). What is here tells it who asks, what time it is, and of which records the reply has
// arrived; and knows where the record of a call is, and which calls are under way.

// recordWindow is how long a client may take to send a call again: since it was done, or since the volume was opened if
// it was done that long before what was done last. Clients wait up to five minutes until they try to connect again.
const recordWindow = 6 * time.Minute

const chunkPlaces = BlockSize / layout.InodeSize // the records in a block

// replies are the places for records of a volume.
type replies struct {
	clock   Clock
	opened  time.Time
	first   uint64               // block
	reserve func(a uint64) error // makes room for a block on the host

	mu       lockorder.Mutex[lockorder.Replies]
	done     map[[32]byte]*record // by key
	places   []*record            // nil: none, or nobody's that counts
	table    *replyplaces.Table   // of chunks, the blocks of records: whose they are
	room     []bool               // for a chunk: the host has given it
	underway map[[32]byte]chan struct{}
	numbers  map[[16]byte]uint64 // of clients, in table
	lastOld  uint64              // seconds: what was done last before the volume was opened
}

// record is what is known of a record on the volume.
type record struct {
	key   [32]byte
	place uint64
	at    uint64 // seconds
	old   bool   // from before the volume was opened
	via   Via    // the reply was sent there
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

// newReplies reads the records of a volume.
func newReplies(g volumegeometry.Geometry, clock Clock, read func(a uint64) ([]byte, error),
	reserve func(a uint64) error) *replies {
	n := g.Data0() - g.Slot0()
	r := &replies{
		clock: clock, opened: clock(), first: g.Slot0(), reserve: reserve,
		done: map[[32]byte]*record{}, places: make([]*record, n*chunkPlaces), table: replyplaces.New_Table_(), room: make([]bool, n),
		underway: map[[32]byte]chan struct{}{}, numbers: map[[16]byte]uint64{},
	}
	r.table.Ctor__(n, uint64(recordWindow))
	for i := range n {
		b, err := read(r.first + i)
		if err != nil {
			r.table.Broke(i)
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
	rec := &record{key: [32]byte(key.Data), place: place, at: sec, old: true}
	if other := r.done[rec.key]; !full || other != nil && other.at > sec {
		return
	}
	r.note(rec)
	r.lastOld = max(r.lastOld, sec)
	r.table.Found(place, r.client([16]byte(client.Data)), nanoseconds(sec, nsec))
}

// note knows a record from now on, and none that was in its place, or of the same call.
func (r *replies) note(rec *record) {
	r.forget(rec.place)
	if other := r.done[rec.key]; other != nil { // which another's call was about to replace, but did not
		r.forget(other.place)
	}
	r.done[rec.key], r.places[rec.place] = rec, rec
}

func (r *replies) forget(place uint64) {
	if rec := r.places[place]; rec != nil {
		delete(r.done, rec.key)
		r.places[place] = nil
	}
}

// nanoseconds are how the table of chunks has a time.
func nanoseconds(sec uint64, nsec uint32) uint64 {
	return min(sec, 1<<34)*uint64(time.Second) + uint64(nsec)
}

// client is the number of a client: its own as long as it has chunks.
func (r *replies) client(id [16]byte) uint64 {
	c := r.numbers[id]
	if c == 0 {
		c = r.table.Fresh()
		maps.DeleteFunc(r.numbers, func(_ [16]byte, of uint64) bool { return of == c })
		r.numbers[id] = c
	}
	return c
}

// begin says where the record of a call is to be, and whether there may be one. A call that is under way is waited for.
// It returns nil if the call has no record; else end is to be called.
func (r *replies) begin(id *CallID) *place {
	if id == nil || r.table.N == 0 {
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
	sec, nsec := stamp(r.clock())
	p := &place{id: id, sec: sec, nsec: nsec}
	if rec := r.done[id.key]; rec != nil && r.table.Hold(rec.place) { // else another's is about to replace it
		since, counts := r.since(rec)
		p.index, p.since, p.look = rec.place, since, counts && !r.got(rec, id)
	} else if i, ok := r.pick(id.client, nanoseconds(sec, nsec)); ok {
		p.index = i
	} else {
		return nil
	}
	p.ended = make(chan struct{})
	r.underway[id.key] = p.ended
	return p
}

// got tells that a client does not ask again for what a record is of, so that the call must be a new one with the same
// number: the reply went over another connection, which stands, and has arrived.
func (r *replies) got(rec *record, id *CallID) bool {
	return rec.via != nil && (id.via == nil || rec.via.Connection() != id.via.Connection()) && rec.via.Delivered()
}

// since is from when on records count that are like this one.
func (r *replies) since(rec *record) (sec uint64, ok bool) {
	now, window := r.clock(), uint64(recordWindow/time.Second)
	from, _ := stamp(now)
	if rec.old {
		from = r.lastOld
	}
	from -= min(from, window)
	return from, rec.at >= from && (!rec.old || now.Before(r.opened.Add(recordWindow)))
}

// awaited tells that the client of a record may yet ask again.
func (r *replies) awaited(rec *record) bool {
	_, counts := r.since(rec)
	return counts && (rec.via == nil || !rec.via.Delivered())
}

// spare is the first place of chunk i, from one on, whose record nobody waits for; or none.
func (r *replies) spare(i, from uint64) uint64 {
	for k := from; k < chunkPlaces; k++ {
		at := i*chunkPlaces + k
		if rec := r.places[at]; !r.table.Busy(at) && (rec == nil || !r.awaited(rec)) {
			return k
		}
	}
	return chunkPlaces
}

// pick chooses a place for a record of a client: one whose record nobody waits for, if there is one. So a client whose
// reply was lost finds its record even if others of the same address have gone on meanwhile with more calls than there
// are places.
func (r *replies) pick(id [16]byte, now uint64) (place uint64, ok bool) {
	c, none := r.client(id), r.table.N
	for range r.table.Count(c) + 2 {
		if ok, place = r.table.Next(c, r.spare(r.table.InUse(c))); ok {
			return place, true
		}
		i, own := r.table.More(c, now)
		if i == none || !r.backed(i) { // on a full host: one that has room, or none
			if i = r.again(c, own); i == none {
				break
			}
			r.backed(i) // if it can be; it is the client's all the same
		}
		r.table.Take(c, now, i, r.spare(i, 0))
	}
	return 0, false
}

// again is the oldest chunk of a client that has a spare place; or else the oldest one, if it has any.
func (r *replies) again(client, oldest uint64) uint64 {
	best, none := r.table.N, r.table.N
	for i := r.table.Older(client, 0, none); i != none; i = r.table.Older(client, i+1, best) {
		if r.spare(i, 0) < chunkPlaces {
			best = i
		}
	}
	if best == none {
		return oldest
	}
	return best
}

// backed makes room for chunk i, so that the transactions that write it need none.
func (r *replies) backed(i uint64) bool {
	r.room[i] = r.room[i] || r.reserve(r.first+i) == nil
	return r.room[i]
}

// end says what became of the call that p is of: its record is in place (kept), it had been done before (again), or
// neither.
func (r *replies) end(p *place, kept, again bool) {
	if p == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.table.Release(p.index)
	delete(r.underway, p.id.key)
	close(p.ended)
	if rec := r.places[p.index]; again && rec != nil {
		rec.via = p.id.via
	} else if kept {
		r.note(&record{key: p.id.key, place: p.index, at: p.sec, via: p.id.via})
		r.table.Kept(p.index, nanoseconds(p.sec, p.nsec))
	}
}

// broke says that the block that p is in cannot be used.
func (r *replies) broke(p *place) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := p.index / chunkPlaces
	r.table.Broke(i)
	for at := i * chunkPlaces; at < (i+1)*chunkPlaces; at++ {
		r.forget(at)
	}
}
