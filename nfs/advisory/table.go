// Package advisory is the table of advisory locks: who holds which bytes of which file, and who waits for them. What a
// call does to the locks of one file is proved (verified/advisory). This package has what is around that: files and
// owners by their names, limits for each client and in all, and who is told that it may have what it waited for.
//
// It knows nothing of a protocol. A lock is lost with the process; what outlives that is in package reclaim.
package advisory

import (
	"net/netip"
	"sync"

	"tansy/internal/gen/advisory/advisory"
	"tansy/internal/gen/advisory/locktable"
)

// File is a file, for as long as its locks are looked at.
type File struct {
	Volume   [8]byte
	Ino, Gen uint64
}

// Host is a client machine: the address it calls from, and the name that it gives itself. Several behind one address
// translator have one address and different names.
type Host struct {
	Addr netip.Addr
	Name string
}

// Owner is who owns a lock or a reservation: a process of a host. ID is the host's name for it, at most some hundred
// bytes. Locks and reservations have owners of their own.
type Owner struct {
	Host
	ID string
}

// Range is the bytes First to Last of a file, both included; First <= Last.
type Range struct{ First, Last uint64 }

// Answer is what becomes of a call.
type Answer int

// Answers.
const (
	Granted Answer = iota
	Denied         // somebody else has it
	Blocked        // likewise; the caller is told when it may have it
	NoRoom         // a limit is reached
)

// Conflict is a lock that is in the way of another.
type Conflict struct {
	Owner     Owner
	Range     Range
	Exclusive bool
}

// Share is a reservation of a file: what the owner does, and what it denies to others.
type Share struct{ Read, Write, DenyRead, DenyWrite bool }

// Limits bound what is kept. A lock and a reservation count one, a wait two. All are required. ThisMachine has half of
// all, whatever those of a client are, and waits as FileWaits says.
type Limits struct {
	All, Client, File int // in all, of one address (IPv6: of one /64 network), and on one file
	Waits             int // of one address
	FileWaits         int // on one file
	Hosts             int // with locks, waits, or reservations
}

// Offer is a lock that somebody waited for and may have now. Nobody else gets it before the offer is accepted or
// refused.
type Offer struct {
	ticket uint64
	Data   any // what the call that waits gave
}

// Table is the table of all locks. It may be used concurrently.
type Table struct {
	limits Limits
	offer  func(Offer)

	mu     sync.Mutex
	files  map[File]*file
	owners map[Owner]*owner
	byID   map[uint64]*owner
	size   int // what counts against Limits.All
	sizes  map[netip.Addr]*client
	hosts  map[Host]int // owners of each
	waits  map[uint64]*wait
	lastID uint64 // of owners and tickets
}

// file is a file with locks, waits, or reservations.
type file struct {
	key   File
	state advisory.File
}

// client is what an address has.
type client struct{ size, waits, owners int }

type owner struct {
	Owner
	id    uint64
	size  int // of what it has, in all files
	waits int // of these, waits
	files map[*file]int
}

// wait is a lock that is waited for.
type wait struct {
	file  *file
	owner *owner
	data  any
	told  bool // it was offered
}

// New makes a Table without locks. offer is called for each lock that was waited for and may be had now, in the
// goroutine of the call that made it free; it must not wait, and may call the Table.
func New(limits Limits, offer func(Offer)) *Table {
	return &Table{
		limits: limits, offer: offer,
		files: map[File]*file{}, owners: map[Owner]*owner{}, byID: map[uint64]*owner{},
		sizes: map[netip.Addr]*client{}, hosts: map[Host]int{}, waits: map[uint64]*wait{},
	}
}

// Test tells whether o could have a lock now, and if not what is in the way.
func (t *Table) Test(f File, o Owner, r Range, exclusive bool) (Answer, Conflict) {
	t.mu.Lock()
	defer t.mu.Unlock()
	x := t.files[f]
	if x == nil {
		return Granted, Conflict{}
	}
	id, patient := uint64(0), true // nobody's
	if who := t.owners[o]; who != nil {
		id, patient = who.id, who.patient()
	}
	return t.answer(locktable.Test(x.state, lock(id, r, exclusive), patient))
}

// Lock gives o the lock. If somebody else has it, and block is true, it waits for it (Blocked): it is offered to o when
// that could have it, with data. The same lock is waited for once.
func (t *Table) Lock(f File, o Owner, r Range, exclusive, block bool, data any) (a Answer, c Conflict) {
	t.change(f, o, func(x *file, who *owner) {
		t.taken(x, who, r)
		patient := who.patient()
		l := lock(who.id, r, exclusive)
		if i := find(x.state, l); i >= 0 && block {
			t.waits[waitAt(x.state, i).Ticket()].data = data
			a = Blocked
			return
		}
		ticket, mayWait := t.lastID+1, !t.tooManyWaits(x, who)
		g, answer := locktable.Take(x.state, l, patient, block && mayWait, ticket, uint64(t.room(x, who)))
		if a, c = t.answer(answer); a == Denied && block {
			a = NoRoom
		}
		if a == Blocked {
			t.lastID = ticket
			t.waits[ticket] = &wait{file: x, owner: who, data: data}
			who.waits++
			t.sizes[counted(o.Addr)].waits++
		}
		t.put(x, who, g)
	}, &a)
	return a, c
}

// Unlock gives the bytes back, of which o may hold some, all, or none. It is NoRoom if a lock would have to become two.
func (t *Table) Unlock(f File, o Owner, r Range) (a Answer) {
	t.known(f, o, func(x *file, who *owner) {
		t.taken(x, who, r)
		g, answer := locktable.Give(x.state, lock(who.id, r, false), uint64(t.room(x, who)))
		a, _ = t.answer(answer)
		t.put(x, who, g)
	})
	return a
}

// Cancel ends a wait for a lock, and takes back an offer of it. It tells whether there was one.
func (t *Table) Cancel(f File, o Owner, r Range, exclusive bool) (found bool) {
	t.known(f, o, func(x *file, who *owner) {
		if i := find(x.state, lock(who.id, r, exclusive)); i >= 0 {
			found = true
			t.leave(x, i)
		}
	})
	return found
}

// Accept gives an offered lock to whom it was offered. It tells whether the offer stood; if not, it does nothing.
func (t *Table) Accept(o Offer) (stood bool) {
	t.settle(o, func(x *file, who *owner, i int) { stood = t.accept(x, who, i) })
	return stood
}

// Refuse takes an offer back. It does nothing if the offer was accepted, or does not stand any more.
func (t *Table) Refuse(o Offer) {
	t.settle(o, func(x *file, _ *owner, i int) { t.leave(x, i) })
}

// Stands tells whether an offer was neither accepted nor refused, and its owner is there.
func (t *Table) Stands(o Offer) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.waits[o.ticket] != nil
}

// Share makes o's reservation of the file what s says, unless somebody else's is in conflict with it.
func (t *Table) Share(f File, o Owner, s Share) (a Answer) {
	t.change(f, o, func(x *file, who *owner) {
		want := advisory.CreateShare(who.id, s.Read, s.Write, s.DenyRead, s.DenyWrite)
		g, answer := locktable.Reserve(x.state, want, uint64(t.room(x, who)))
		a, _ = t.answer(answer)
		t.put(x, who, g)
	}, &a)
	return a
}

// Unshare ends o's reservation of the file, if there is one.
func (t *Table) Unshare(f File, o Owner) {
	t.known(f, o, func(x *file, who *owner) { t.put(x, who, locktable.Release(x.state, who.id)) })
}

// Free takes all from the hosts that gone says yes to, and returns how many owners that were.
func (t *Table) Free(gone func(Host) bool) (n int) {
	var offers []Offer
	t.mu.Lock()
	for h := range t.hosts {
		if !gone(h) {
			continue
		}
		for _, who := range t.ownersOf(h) {
			n++
			for x := range who.files {
				t.forget(x, who)
				offers = append(offers, t.offers(x)...)
			}
		}
	}
	t.mu.Unlock()
	t.tell(offers)
	return n
}

// Addresses are those of hosts that have something, or wait for it.
func (t *Table) Addresses() map[netip.Addr]bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make(map[netip.Addr]bool, len(t.hosts))
	for h := range t.hosts {
		all[h.Addr] = true
	}
	return all
}

// Counts are numbers of what is there.
type Counts struct{ Files, Owners, Hosts, Waits, Size int }

// Counts returns the numbers of now.
func (t *Table) Counts() Counts {
	t.mu.Lock()
	defer t.mu.Unlock()
	return Counts{len(t.files), len(t.owners), len(t.hosts), len(t.waits), t.size}
}
