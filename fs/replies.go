package fs

import (
	"cmp"
	"slices"
	"time"

	"tansy/internal/gen/volumegeometry"
	"tansy/internal/lockorder"
)

// Calls that must not be done twice leave records in the transactions that do the work (verified/fs/procedures/records.dfy). Which place a
// record has, and which calls may have one at all, is decided here. Nothing depends on it but which calls are forgotten: what counts as a
// call that came again is checked by the verified code.

// recordWindow is how long a client may take to send a call again: since it was done, or since the volume was
// opened if it was done that long before what was done last. Clients wait up to five minutes until they try to connect again.
const recordWindow = 6 * time.Minute

const (
	chunkPlaces  = 16          // the records in a block, which are one client's
	clientChunks = 32          // blocks a client has at most
	keepFor      = time.Minute // what one client has is not another's earlier
)

// replies are the places for records of a volume.
type replies struct {
	clock   Clock
	opened  time.Time
	first   uint64               // block
	reserve func(a uint64) error // makes room for a block on the host

	mu       lockorder.Mutex[lockorder.Replies]
	done     map[[32]byte]*record // by key
	places   []*record            // nil: none, or nobody's that counts
	busy     []bool               // places that calls under way are to have
	underway map[[32]byte]chan struct{}
	chunks   []chunk
	clients  map[[16]byte]*holder
	gifts    uint64
	lastOld  uint64 // seconds: what was done last before the volume was opened
}

// record is what is known of a record on the volume.
type record struct {
	key   [32]byte
	place uint64
	at    uint64 // seconds
	old   bool   // from before the volume was opened
	via   Via    // the reply was sent there
}

// moment is a time in seconds and nanoseconds.
type moment struct {
	sec  uint64
	nsec uint32
}

func (m moment) compare(o moment) int {
	return cmp.Or(cmp.Compare(m.sec, o.sec), cmp.Compare(m.nsec, o.nsec))
}

// chunk is a block of records.
type chunk struct {
	holder *holder
	used   int  // places, in this round
	force  bool // in this round, places of awaited records are used, too
	newest moment
	room   bool   // the host has given it
	given  uint64 // when its holder got it, in gifts
	broken bool
}

// holder is a client that has chunks, the one in use last.
type holder struct {
	id     [16]byte
	chunks []int
}

// place is where the record of a call is to be.
type place struct {
	id    *CallID
	index uint64
	look  bool   // there may be a record of this very call
	since uint64 // it counts if it is not older
	at    moment // now
	ended chan struct{}
}

// record is what the verified code makes the record of: a new one each time, as it may be taken over. Nil: of none.
func (p *place) record() *buf {
	if p.id == nil {
		return nil
	}
	return converted.NewRecord(p.at.sec, p.at.nsec, bytesOf(p.id.key[:]), bytesOf(p.id.client[:]))
}

// newReplies reads the records of a volume.
func newReplies(g volumegeometry.Geo, clock Clock, read func(a uint64) ([]byte, error), reserve func(a uint64) error) *replies {
	n := g.Dtor_data0() - g.Dtor_slot0()
	r := &replies{
		clock: clock, opened: clock(), first: g.Dtor_slot0(), reserve: reserve,
		done: map[[32]byte]*record{}, places: make([]*record, n*chunkPlaces), busy: make([]bool, n*chunkPlaces),
		underway: map[[32]byte]chan struct{}{}, chunks: make([]chunk, n), clients: map[[16]byte]*holder{},
	}
	for i := range r.chunks {
		b, err := read(r.first + uint64(i))
		if err != nil {
			r.chunks[i].broken = true
			continue
		}
		for k := range uint64(chunkPlaces) {
			r.found(uint64(i)*chunkPlaces+k, b[k*inodeSize:][:inodeSize])
		}
	}
	for _, h := range r.clients { // what is oldest is replaced first, as if nothing had happened
		slices.SortFunc(h.chunks, func(a, b int) int { return r.chunks[a].newest.compare(r.chunks[b].newest) })
	}
	return r
}

// found notes a record that is on the volume when it is opened.
func (r *replies) found(place uint64, b []byte) {
	full, sec, nsec, key, client := converted.OfRecord(bytesOf(b))
	if !full {
		return
	}
	rec := &record{key: [32]byte(key.Data), place: place, at: sec, old: true}
	if other := r.done[rec.key]; other != nil {
		if other.at > rec.at {
			return
		}
		r.places[other.place] = nil
	}
	r.done[rec.key], r.places[place] = rec, rec
	r.lastOld = max(r.lastOld, rec.at)
	c := &r.chunks[place/chunkPlaces]
	if c.holder == nil {
		r.give(r.holder([16]byte(client.Data)), int(place/chunkPlaces))
	}
	if at := (moment{sec, nsec}); c.newest.compare(at) <= 0 {
		c.newest, c.used = at, int(place%chunkPlaces)+1
	}
}

func (r *replies) holder(id [16]byte) *holder {
	h := r.clients[id]
	if h == nil {
		h = &holder{id: id}
		r.clients[id] = h
	}
	return h
}

// give makes chunk i one of h's, and the one in use.
func (r *replies) give(h *holder, i int) {
	c := &r.chunks[i]
	if c.holder != nil {
		c.holder.lose(i)
		if len(c.holder.chunks) == 0 {
			delete(r.clients, c.holder.id)
		}
	}
	r.gifts++
	c.holder, c.used, c.force, c.given = h, 0, false, r.gifts
	h.chunks = append(h.chunks, i)
	r.clients[h.id] = h
}

func (h *holder) lose(i int) {
	for k, c := range h.chunks {
		if c == i {
			h.chunks = append(h.chunks[:k], h.chunks[k+1:]...)
			return
		}
	}
}

// begin says where the record of a call is to be, and whether there may be one. A call that is under way is waited for. It returns nil if
// the call has no record; else end is to be called.
func (r *replies) begin(id *CallID) *place {
	if id == nil || len(r.chunks) == 0 {
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
	p := &place{id: id, at: moment{sec, nsec}}
	if rec := r.done[id.key]; rec != nil && !r.busy[rec.place] { // else another's is about to replace it
		since, counts := r.since(rec)
		p.index, p.since, p.look = rec.place, since, counts && !r.got(rec, id)
	} else if i, ok := r.pick(id.client, sec); ok {
		p.index = i
	} else {
		return nil
	}
	r.busy[p.index] = true
	p.ended = make(chan struct{})
	r.underway[id.key] = p.ended
	return p
}

// got tells that a client does not ask again for what a record is of, so that the call must be a new one with the same number: the reply went
// over another connection, which stands, and has arrived.
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

// spare tells that chunk i has a place whose record nobody waits for.
func (r *replies) spare(i int) bool {
	for at := i * chunkPlaces; at < (i+1)*chunkPlaces; at++ {
		if rec := r.places[at]; !r.busy[at] && (rec == nil || !r.awaited(rec)) {
			return true
		}
	}
	return false
}

// oldest is the oldest chunk of a client, which has some, that has a spare place; or else the oldest one.
func (r *replies) oldest(h *holder) int {
	if k := slices.IndexFunc(h.chunks, r.spare); k >= 0 {
		return h.chunks[k]
	}
	return h.chunks[0]
}

// pick chooses a place for a record of a client: one whose record nobody waits for, if there is one. So a client whose reply was lost finds its
// record even if others of the same address have gone on meanwhile with more calls than there are places.
func (r *replies) pick(id [16]byte, now uint64) (place uint64, ok bool) {
	h := r.holder(id)
	for range len(h.chunks) + 2 {
		if n := len(h.chunks); n > 0 {
			i := h.chunks[n-1]
			for c := &r.chunks[i]; c.used < chunkPlaces; {
				at := uint64(i*chunkPlaces + c.used)
				c.used++
				if rec := r.places[at]; !r.busy[at] && (rec == nil || c.force || !r.awaited(rec)) {
					return at, true
				}
			}
		}
		i, ok := r.another(h, now)
		if ok && !r.backed(i) { // on a full host: one that has room, or none
			i, ok = 0, len(h.chunks) > 0
			if ok {
				i = r.oldest(h)
			}
		}
		if !ok {
			break
		}
		force := r.chunks[i].holder != h || !r.spare(i)
		r.give(h, i)
		r.chunks[i].force = force
	}
	if len(h.chunks) == 0 {
		delete(r.clients, id)
	}
	return 0, false
}

// backed makes room for chunk i, so that the transactions that write it need none.
func (r *replies) backed(i int) bool {
	c := &r.chunks[i]
	c.room = c.room || r.reserve(r.first+uint64(i)) == nil
	return c.room
}

// another is the chunk that a client goes on with: its oldest one, if that is old or it has many; one that is nobody's; what others
// have not used for a while; its oldest one; the first one of who has most. So no client pushes out records of others who have no more than it.
func (r *replies) another(h *holder, now uint64) (i int, ok bool) {
	if n := len(h.chunks); n >= clientChunks || n > 0 && now > r.chunks[h.chunks[0]].newest.sec+uint64(recordWindow/time.Second) {
		return r.oldest(h), true
	}
	oldest, most := -1, -1
	for i := range r.chunks {
		switch c := &r.chunks[i]; {
		case c.broken:
		case c.holder == nil:
			return i, true
		case c.holder != h:
			if oldest < 0 || c.newest.compare(r.chunks[oldest].newest) < 0 {
				oldest = i
			}
			first := c.holder.chunks[0]
			if most < 0 || len(c.holder.chunks) > len(r.chunks[most].holder.chunks) ||
				len(c.holder.chunks) == len(r.chunks[most].holder.chunks) && r.chunks[first].given < r.chunks[most].given {
				most = first
			}
		}
	}
	switch {
	case oldest >= 0 && now > r.chunks[oldest].newest.sec+uint64(keepFor/time.Second):
		return oldest, true
	case len(h.chunks) > 0:
		return r.oldest(h), true
	}
	return most, most >= 0
}

// end says what became of the call that p is of: its record is in place (kept), it had been done before (again), or neither.
func (r *replies) end(p *place, kept, again bool) {
	if p == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.busy[p.index] = false
	delete(r.underway, p.id.key)
	close(p.ended)
	rec := r.places[p.index]
	switch {
	case again && rec != nil:
		rec.via = p.id.via
	case kept:
		if rec != nil {
			delete(r.done, rec.key)
		}
		if other := r.done[p.id.key]; other != nil { // which another's call was about to replace, but did not
			r.places[other.place] = nil
		}
		rec = &record{key: p.id.key, place: p.index, at: p.at.sec, via: p.id.via}
		r.done[rec.key], r.places[p.index] = rec, rec
		c := &r.chunks[p.index/chunkPlaces]
		if c.newest.compare(p.at) < 0 {
			c.newest = p.at
		}
	}
}

// broke says that the block that p is in cannot be used.
func (r *replies) broke(p *place) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := int(p.index / chunkPlaces)
	c := &r.chunks[i]
	if c.holder != nil {
		c.holder.lose(i)
	}
	c.holder, c.broken = nil, true
	for k := range uint64(chunkPlaces) {
		at := uint64(i)*chunkPlaces + k
		if rec := r.places[at]; rec != nil {
			delete(r.done, rec.key)
			r.places[at] = nil
		}
	}
}

// renew writes block a anew if it is one of records, as renew in renew.go does.
func (r *replies) renew(t *txn, a uint64) bool {
	if a < r.first || a-r.first >= uint64(len(r.chunks)) {
		return false
	}
	i := (a - r.first) * chunkPlaces
	t.WriteSlot(i, t.ReadSlot(i))
	return true
}
