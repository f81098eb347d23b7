// Package peers is the Go behind verified/trusted/peers.s.dfy: what is known of those whose calls have records, and of
// room on the host.
package peers

// Way is the way that a call came by, and its reply goes by.
type Way interface {
	// Connection identifies the connection. It is compared.
	Connection() any
	// Delivered tells that the peer has the reply, and is still there.
	Delivered() bool
}

// Peers are those whose calls have records. They are used under the mutex of the records.
type Peers struct {
	ways    []Way // by place: of the reply of the call whose record is there; nil: not known
	way     Way   // of the call that begins
	room    []bool
	reserve func(chunk uint64) error
}

// New returns the Peers of a volume with so many blocks of records, which have so many places together. reserve makes
// room for a block on the host.
func New(chunks, places uint64, reserve func(chunk uint64) error) *Peers {
	return &Peers{ways: make([]Way, places), room: make([]bool, chunks), reserve: reserve}
}

// Begins tells of the call that begins. way may be nil, which is unknown.
func (p *Peers) Begins(way Way) { p.way = way }

// Sent tells that the reply goes there of the call whose record is in a place.
func (p *Peers) Sent(place uint64, way Way) { p.ways[place] = way }

// Forget tells that the reply of the call whose record is in a place went nobody knows where.
func (p *Peers) Forget(place uint64) { p.ways[place] = nil }

// Arrived tells that the reply has arrived, and that who has it is still there.
func (p *Peers) Arrived(place uint64) bool {
	w := p.ways[place]
	return w != nil && w.Delivered()
}

// Elsewhere tells that it has, over another connection than that of the call that begins.
func (p *Peers) Elsewhere(place uint64) bool {
	w := p.ways[place]
	return w != nil && (p.way == nil || w.Connection() != p.way.Connection()) && w.Delivered()
}

// Room makes room for a block of records on the host, so that the transactions that write it need none. No: it is full.
func (p *Peers) Room(chunk uint64) bool {
	p.room[chunk] = p.room[chunk] || p.reserve(chunk) == nil
	return p.room[chunk]
}
