package fair

import (
	"slices"
	"sort"

	"tansy/internal/lockorder"
)

// Memory is shared out so that no peer can keep it from the others. A peer may hold it for
// long without doing anything wrong, because its line is slow, or for ever. What helps
// against both is not to let the slow ones have all:
//
//   - Who is known to be slow (class) may take a part only, and so may those of whom nothing
//     is known yet. The rest is for those who have shown that they give it back soon.
//   - One host, which is one address, gets three times what it leaves free, at most, of the
//     whole as of each part. So there is something for the next host, and the one after it.
//   - One connection gets a part, such as a quarter.
//   - Who does not get it waits. Waiters are served host by host, by what they asked for, and
//     those of one host in order: nobody is overtaken by whom he could let pass only to his own
//     loss. Those whose host or class has its part do not keep others waiting.
//   - A peer that is not proven gets large replies only up to a quarter of the memory, and beyond
//     that, if slow ones are the reason, smaller ones, one at a time, where the procedure has
//     such (claim): the less, the more its host has already.

// Class is what is known of a peer's pace: how soon it gives back the memory that it holds.
type Class int

const (
	Slow   Class = iota // after seconds
	Fresh               // nothing is known
	Proven              // soon
	classes
)

// Parts are eighths of a memory: what the connections of a class, and of those below it, may hold together.
type Parts [classes]int

// Memory is a number of bytes that calls hold, over all connections.
type Memory struct {
	all   int
	each  int // of them for one connection at most
	parts Parts

	mu      lockorder.Mutex[lockorder.Memory]
	used    Share
	waiters []*waiter // by turn
	round   int       // of admit
	clock   int64     // the turn of whoever waited and was served last
}

// Share is what some of the connections hold of a memory, in bytes by class.
type Share struct {
	held [classes]int

	// In one round of admit: a waiter up to this class waits, and so must those behind it.
	round int
	floor Class

	// Of a host: when it may have more, if all hosts that wait get as much. In bytes.
	due int64
}

// upTo is what class k and those below it hold.
func (s *Share) upTo(k Class) (n int) {
	for i := Slow; i <= k; i++ {
		n += s.held[i]
	}
	return n
}

// Account is what one connection holds of a memory. Its methods may be called concurrently.
type Account struct {
	m     *Memory
	host  *Share // of all connections of the host
	class Class
	held  int

	closed bool
}

// Reservation is what one record takes of an account.
type Reservation struct {
	Of    *Account
	Bytes int
}

func (r Reservation) Give() { r.Of.Give(r.Bytes) }

// Claim asks for n bytes. If they cannot be had for a while, fewer will do, but short at least; short 0 means n or
// nothing.
type Claim struct{ Bytes, Least int }

// waiter is a claim that was not met yet.
type waiter struct {
	account *Account
	Claim
	turn    int64 // before all that have a later one
	granted int
	ready   chan struct{} // closed when it is granted
}

func NewMemory(bytes, each int, p Parts) *Memory { return &Memory{all: bytes, each: each, parts: p} }

// NewAccount returns the account of one connection of a host. The account must not be copied once it is in use.
func NewAccount(m *Memory, host *Share, k Class) Account { return Account{m: m, host: host, class: k} }

// Is tells whether the connection has class k.
func (a *Account) Is(k Class) bool {
	a.m.mu.Lock()
	defer a.m.mu.Unlock()
	return a.class == k
}

// Waits tells if the connection waits.
func (a *Account) Waits() bool {
	a.m.mu.Lock()
	defer a.m.mu.Unlock()
	return slices.ContainsFunc(a.m.waiters, func(w *waiter) bool { return w.account == a })
}

// Try takes what is claimed if it can be had at once. The result is the number of bytes, or 0.
func (a *Account) Try(c Claim) int {
	a.m.mu.Lock()
	defer a.m.mu.Unlock()
	w := waiter{account: a, Claim: c}
	if !a.closed && !a.m.behind(a) {
		all, host := a.m.used.floor, a.host.floor
		a.m.grant(&w)
		a.m.used.floor, a.host.floor = all, host // it does not wait
	}
	return w.granted
}

// Take waits for what is claimed. The result is the number of bytes, or 0 if the account is closed.
func (a *Account) Take(c Claim) int {
	w := &waiter{account: a, Claim: c, ready: make(chan struct{})}
	a.m.mu.Lock()
	if a.closed {
		a.m.mu.Unlock()
		return 0
	}
	if !a.m.behind(a) {
		a.m.grant(w)
	}
	if w.granted > 0 {
		a.m.mu.Unlock()
		return w.granted
	}
	a.m.enqueue(w)
	a.m.mu.Unlock()
	lockorder.Wait[lockorder.Share]()
	<-w.ready
	return w.granted
}

// enqueue has w wait, behind those of its own host and among those of others.
func (m *Memory) enqueue(w *waiter) {
	host := w.account.host
	w.turn = max(host.due, m.clock)
	host.due = w.turn + int64(w.Bytes)
	i := sort.Search(len(m.waiters), func(i int) bool { return m.waiters[i].turn > w.turn })
	m.waiters = slices.Insert(m.waiters, i, w)
}

// Give returns n bytes.
func (a *Account) Give(n int) {
	a.m.mu.Lock()
	defer a.m.mu.Unlock()
	a.add(-n)
	a.m.admit()
}

func (a *Account) add(n int) {
	a.held += n
	a.host.held[a.class] += n
	a.m.used.held[a.class] += n
}

// Judge gives the connection class k, and with it all that the connection holds.
func (a *Account) Judge(k Class) {
	a.m.mu.Lock()
	defer a.m.mu.Unlock()
	if a.class == k {
		return
	}
	n := a.held
	a.add(-n)
	a.class = k
	a.add(n)
	a.m.admit()
}

// Close ends the waiting of a connection that is broken.
func (a *Account) Close() {
	a.m.mu.Lock()
	defer a.m.mu.Unlock()
	a.closed = true
	a.m.admit()
}

// IsDoubtful tells whether the connection gets n bytes only if its pace is good, which is not known yet.
func (a *Account) IsDoubtful(n int) bool {
	a.m.mu.Lock()
	defer a.m.mu.Unlock()
	return a.class == Fresh && a.m.scarce(a, n) != nil
}

// Held is the number of bytes that all connections hold.
func (m *Memory) Held() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used.upTo(Proven)
}

// Waiting is how many wait.
func (m *Memory) Waiting() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.waiters)
}

// nobody is the floor of a share for which nobody waits.
const nobody = Slow - 1

// behind tells if a would overtake one that waits. The floors are those of the last admit,
// which was after the last change.
func (m *Memory) behind(a *Account) bool {
	if len(m.waiters) == 0 {
		m.used.floor = nobody
	}
	if len(m.waiters) == 0 || a.host.round != m.round {
		a.host.round, a.host.floor = m.round, nobody
	}
	return a.class <= m.used.floor || a.class <= a.host.floor
}

// admit serves the waiters that can be served, in order.
func (m *Memory) admit() {
	if len(m.waiters) == 0 {
		return
	}
	m.round++
	m.used.floor = nobody
	left := 0
	for i, w := range m.waiters {
		a := w.account
		done := a.closed
		if !done && m.used.floor < Proven && !m.behind(a) {
			m.grant(w)
			if done = w.granted > 0; done {
				m.clock = max(m.clock, w.turn)
			}
		}
		if done {
			close(w.ready)
			continue
		}
		if left < i {
			m.waiters[left] = w
		}
		left++
	}
	clear(m.waiters[left:])
	m.waiters = m.waiters[:left]
}

// grant takes what w claims, if that is there for it. If it is not, it sets the floor of
// the share that lacks it.
func (m *Memory) grant(w *waiter) {
	n := w.Bytes
	if s := m.scarce(w.account, n); s != nil && w.Least > 0 && w.account.class < Proven {
		if w.account.class == Fresh && s.held[Slow] == 0 {
			s.floor = max(s.floor, Fresh)
			return // it will not take long
		}
		if w.account.held > 0 {
			return // one at a time
		}
		n = max(w.Least, min(n, m.portion(w.account)))
	}
	if s, k := m.lacks(w.account, n); k < classes {
		if s != nil {
			s.floor = max(s.floor, k)
		}
		return
	}
	w.account.add(n)
	w.granted = n
}

// portion is how many bytes one reply may take where they are scarce, so that a host which has little
// gets more than many small replies of one that has much.
func (m *Memory) portion(a *Account) int { return m.free(a.class)/4 - a.host.upTo(a.class) }

// free is what a class and those below it do not hold yet of what they may.
func (m *Memory) free(k Class) int { return m.all*m.parts[k]/8 - m.used.upTo(k) }

// scarce finds the share of which those that are not proven have a quarter, or would with n
// bytes more of a; nil if there is none.
func (m *Memory) scarce(a *Account, n int) *Share {
	switch {
	case above(m.used.upTo(Fresh), n, m.all/4):
		return &m.used
	case above(a.host.upTo(Fresh), n, m.all*3/16):
		return a.host
	}
	return nil
}

// lacks finds the share that has no room for n bytes more of a, and for which class; the
// Class is classes if there is room. The share is nil if it is that of the connection.
func (m *Memory) lacks(a *Account, n int) (*Share, Class) {
	if above(a.held, n, m.each) {
		return nil, a.class
	}
	for k := Proven; k >= a.class; k-- {
		if above(m.used.upTo(k), n, m.all*m.parts[k]/8) {
			return &m.used, k
		}
	}
	for k := Proven; k >= a.class; k-- {
		if above(a.host.upTo(k), n, 3*(m.free(k)-n)) {
			return a.host, k
		}
	}
	return nil, classes
}

// above tells if n bytes more than those held are above a limit. The first claim is not,
// however large: else it would wait for ever.
func above(held, n, limit int) bool { return held > 0 && held+n > limit }
