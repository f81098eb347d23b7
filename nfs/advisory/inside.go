package advisory

import (
	"cmp"
	"net/netip"
	"slices"

	"tansy/internal/gen/advisory/advisory"
	"tansy/internal/gen/advisory/locktable"
)

// What is called with Table.mu held, and where it is taken.

// change has do change a file for an owner, both of which are made if they are not there. a becomes NoRoom, and do is
// not called, where there is no place for another host.
func (t *Table) change(f File, o Owner, do func(*file, *owner), a *Answer) {
	t.mu.Lock()
	who := t.owners[o]
	if who == nil && t.hosts[o.Host] == 0 && len(t.hosts) >= t.limits.Hosts {
		t.mu.Unlock()
		*a = NoRoom
		return
	}
	if who == nil {
		t.lastID++
		who = &owner{Owner: o, id: t.lastID, files: map[*file]int{}}
		t.owners[o], t.byID[who.id] = who, who
		t.hosts[o.Host]++
		if t.sizes[counted(o.Addr)] == nil {
			t.sizes[counted(o.Addr)] = new(client)
		}
		t.sizes[counted(o.Addr)].owners++
	}
	x := t.files[f]
	if x == nil {
		x = &file{f, locktable.Empty()}
		t.files[f] = x
	}
	do(x, who)
	offers := t.offers(x)
	t.drop(x, who)
	t.mu.Unlock()
	t.tell(offers)
}

// known has do change a file for an owner that has something; else there is nothing to do.
func (t *Table) known(f File, o Owner, do func(*file, *owner)) {
	t.mu.Lock()
	x, who := t.files[f], t.owners[o]
	if x == nil || who == nil {
		t.mu.Unlock()
		return
	}
	do(x, who)
	offers := t.offers(x)
	t.drop(x, who)
	t.mu.Unlock()
	t.tell(offers)
}

// settle has do settle an offer that stands.
func (t *Table) settle(o Offer, do func(x *file, who *owner, i int)) {
	t.mu.Lock()
	w := t.waits[o.ticket]
	if w == nil {
		t.mu.Unlock()
		return
	}
	do(w.file, w.owner, place(w.file.state, o.ticket))
	offers := t.offers(w.file)
	t.drop(w.file, w.owner)
	t.mu.Unlock()
	t.tell(offers)
}

// drop forgets the file, and the owner, if nothing is left of them.
func (t *Table) drop(x *file, who *owner) {
	if locktable.Count(x.state) == 0 {
		delete(t.files, x.key)
	}
	if who.size > 0 {
		return
	}
	delete(t.owners, who.Owner)
	delete(t.byID, who.id)
	if t.hosts[who.Host]--; t.hosts[who.Host] == 0 {
		delete(t.hosts, who.Host)
	}
	c := t.sizes[counted(who.Addr)]
	if c.owners--; c.owners == 0 {
		delete(t.sizes, counted(who.Addr))
	}
}

// counted is the address whose limits count for an address: itself, or the network of an IPv6 address (/64), of which a
// machine may have as many as it likes.
func counted(a netip.Addr) netip.Addr {
	if !a.Is6() {
		return a
	}
	network, err := a.Prefix(64)
	if err != nil {
		return a
	}
	return network.Addr()
}

// put makes g what is known of a file, after a change that concerned one owner.
func (t *Table) put(x *file, who *owner, g advisory.File) {
	d := int(locktable.Count(g)) - int(locktable.Count(x.state))
	x.state = g
	who.size += d
	t.size += d
	t.sizes[counted(who.Addr)].size += d
	if who.files[x] += d; who.files[x] == 0 {
		delete(who.files, x)
	}
}

// room is how much may be added to a file for an owner.
func (t *Table) room(x *file, who *owner) int {
	return max(0, min(t.limits.All-t.size, t.most(who.Addr)-t.sizes[counted(who.Addr)].size,
		t.limits.File-int(locktable.Count(x.state))))
}

// tooManyWaits tells whether nobody else may wait, for a file or at an address.
func (t *Table) tooManyWaits(x *file, who *owner) bool {
	return t.sizes[counted(who.Addr)].waits >= t.mostWaits(who.Addr) || x.state.Waits().LenInt() >= t.limits.FileWaits
}

// patient tells whether an owner holds nothing, so that nobody waits for it, and it may wait for those that came first.
func (o *owner) patient() bool { return o.size == 2*o.waits }

// taken accepts for an owner what it was offered of these bytes: who asks for them has learned that it has them.
func (t *Table) taken(x *file, who *owner, r Range) {
	for i := 0; i < x.state.Waits().LenInt(); {
		w := waitAt(x.state, i)
		l := w.Lock()
		if w.Offered() && l.Owner() == who.id && l.First() <= r.Last && r.First <= l.Last() {
			t.accept(x, who, i)
		} else {
			i++
		}
	}
}

// accept gives an owner what it was offered with the wait at place i. It tells whether it was offered.
func (t *Table) accept(x *file, who *owner, i int) bool {
	w := waitAt(x.state, i)
	if !w.Offered() {
		return false
	}
	t.ended(w.Ticket())
	t.put(x, who, locktable.Accept(x.state, uint64(i)))
	return true
}

// leave ends the wait at place i.
func (t *Table) leave(x *file, i int) {
	ticket := waitAt(x.state, i).Ticket()
	who := t.waits[ticket].owner
	t.ended(ticket)
	t.put(x, who, locktable.Leave(x.state, uint64(i)))
}

// ended forgets a wait.
func (t *Table) ended(ticket uint64) {
	who := t.waits[ticket].owner
	who.waits--
	t.sizes[counted(who.Addr)].waits--
	delete(t.waits, ticket)
}

// forget takes all of a file from an owner.
func (t *Table) forget(x *file, who *owner) {
	for i := range x.state.Waits().LenInt() {
		if w := waitAt(x.state, i); w.Lock().Owner() == who.id {
			t.ended(w.Ticket())
		}
	}
	t.put(x, who, locktable.Forget(x.state, who.id))
	t.drop(x, who)
}

// ownersOf are the owners of a host, the oldest first.
func (t *Table) ownersOf(h Host) (list []*owner) {
	for o, who := range t.owners {
		if o.Host == h {
			list = append(list, who)
		}
	}
	slices.SortFunc(list, func(a, b *owner) int { return cmp.Compare(a.id, b.id) })
	return list
}

// offers are those of a file that nobody was told of yet.
func (t *Table) offers(x *file) (list []Offer) {
	for i := range x.state.Waits().LenInt() {
		w := waitAt(x.state, i)
		if known := t.waits[w.Ticket()]; w.Offered() && !known.told {
			known.told = true
			list = append(list, Offer{w.Ticket(), known.data})
		}
	}
	return list
}

// tell calls offer for each, without Table.mu.
func (t *Table) tell(offers []Offer) {
	for _, o := range offers {
		t.offer(o)
	}
}

// answer is what the verified table answered.
func (t *Table) answer(a advisory.Answer) (Answer, Conflict) {
	switch {
	case a.Is_Granted():
		return Granted, Conflict{}
	case a.Is_Blocked():
		return Blocked, Conflict{}
	case a.Is_NoRoom():
		return NoRoom, Conflict{}
	}
	l := a.Other()
	c := Conflict{Range: Range{l.First(), l.Last()}, Exclusive: l.Excl()}
	if who := t.byID[l.Owner()]; who != nil {
		c.Owner = who.Owner
	}
	return Denied, c
}

func lock(owner uint64, r Range, exclusive bool) advisory.Lock {
	return advisory.CreateLock(owner, r.First, r.Last, exclusive)
}

func waitAt(f advisory.File, i int) advisory.Wait { return f.Waits().IndexInt(i).(advisory.Wait) }

// find is the place of the wait for a lock, or -1.
func find(f advisory.File, l advisory.Lock) int {
	for i := range f.Waits().LenInt() {
		if waitAt(f, i).Lock() == l {
			return i
		}
	}
	return -1
}

// place is that of a ticket.
func place(f advisory.File, ticket uint64) int {
	for i := range f.Waits().LenInt() {
		if waitAt(f, i).Ticket() == ticket {
			return i
		}
	}
	panic("a ticket without a place")
}
