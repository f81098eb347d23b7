// Package reclaim is what outlives a server of its locks: which hosts have any. A host is on the volume, durable,
// before its first lock there is granted. The server that opens the volume next, after a crash or in another's place,
// tells each that it has started. For a time, the grace period, only these hosts get locks there, which they had before
// (X/Open CAE C702: NLM's grace period, and NSM).
//
// A host is an IP address here: several behind one address translator are one.
package reclaim

import (
	"errors"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"tansy/fs"
)

// Store is where a volume keeps notes (fs.FS says what).
type Store interface {
	Note(name string) ([]byte, error)
	SetNote(name string, value []byte) error // durable when it returns
}

// note is the name of the note that has the hosts.
const note = "locks"

// Host is a client machine that has locks, as it calls the server. One that calls several addresses of the server, and
// knows it by each, is several.
type Host struct {
	Addr  netip.Addr // that it calls from
	Local netip.Addr // that it called, and knows the server by; the zero Addr: not known
}

// Config is what a Volume is made with. All but Log and Grace are required.
type Config struct {
	Store Store
	Grace time.Duration // how long hosts that were there may reclaim; 0: not at all
	Hosts int           // that may be on the volume

	// Holding returns the addresses that have locks now, or wait for some. An address that Admit admitted is among them
	// from the call of its release on, for as long as it has any.
	Holding func() map[netip.Addr]bool
	Log     *slog.Logger
}

// perNetwork is how many addresses of one IPv6 network (/64), of which a machine has as many as it likes, may be on a
// volume.
const perNetwork = 64

// forgetEvery is how often hosts without locks are taken from the volume.
const forgetEvery = 30 * time.Second

// Volume is the hosts on one volume. It may be used concurrently.
type Volume struct {
	cfg  Config
	ends chan struct{} // closed by Close
	over chan struct{} // closed by run: the grace period has ended, or Close was called
	busy sync.WaitGroup
	last sync.Once

	writing chan struct{} // has one entry while somebody writes to the volume; waited for before mu

	mu     sync.Mutex
	state  uint32                  // of the server that served the volume last, or that serves it
	hosts  map[Host]struct{}       // that stay on the volume, whatever becomes of a write under way
	pins   map[netip.Addr]int      // calls that were admitted, and whose locks Holding may not know of
	before map[netip.Addr]struct{} // that were there at the start, and did not reclaim yet; for as long as there is grace
	grace  bool
	late   bool       // nothing is reclaimed any more, and the grace period ends when no call is under way
	idle   *sync.Cond // of mu: there are no pins
	closed bool
	full   bool // it was logged that a host does not find room
}

// Open reads what the last server left on a volume. Errors are ErrNote, and those of Config.Store.
func Open(cfg Config) (*Volume, error) {
	v := &Volume{
		cfg: cfg, ends: make(chan struct{}), over: make(chan struct{}), writing: make(chan struct{}, 1),
		hosts: map[Host]struct{}{}, pins: map[netip.Addr]int{},
	}
	v.idle = sync.NewCond(&v.mu)
	if v.cfg.Log == nil {
		v.cfg.Log = slog.New(slog.DiscardHandler)
	}
	b, err := cfg.Store.Note(note)
	if errors.Is(err, fs.ErrNoEnt) {
		return v, nil
	}
	var list []Host
	if err == nil {
		v.state, list, err = decode(b)
	}
	if err != nil {
		return nil, err
	}
	for _, h := range list {
		v.hosts[h] = struct{}{}
	}
	if v.grace = len(list) > 0 && cfg.Grace > 0; v.grace {
		v.before = map[netip.Addr]struct{}{}
		for h := range v.hosts {
			v.before[h.Addr] = struct{}{}
		}
	}
	return v, nil
}

// State is the state number of the server that served the volume last; 0: none did.
func (v *Volume) State() uint32 {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.state
}

// Next makes the state number of this server durable, before Start. It takes the room that the first host needs, too.
func (v *Volume) Next(state uint32) error {
	defer v.beginWriting()()
	v.mu.Lock()
	v.state = state
	list := v.list()
	v.mu.Unlock()
	return v.cfg.Store.SetNote(note, encode(state, list))
}

// Start begins the grace period, if hosts were there, and returns these. Close ends what it begins.
func (v *Volume) Start() []Host {
	v.mu.Lock()
	defer v.mu.Unlock()
	list := v.list()
	if !v.closed {
		v.busy.Go(v.run)
	}
	return list
}

// run ends the grace period, and takes hosts without locks from the volume, until Close.
func (v *Volume) run() {
	v.runGrace()
	close(v.over)
	for v.sleep(forgetEvery) {
		v.forget()
	}
}

// runGrace returns when the grace period has ended, or Close was called.
func (v *Volume) runGrace() {
	for wait := v.cfg.Grace; v.Grace(); wait = forgetEvery {
		if !v.sleep(wait) {
			return
		}
		v.endGrace()
	}
}

// sleep tells whether a time passed before Close.
func (v *Volume) sleep(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-v.ends:
		return false
	}
}

// Close ends what Start began, and leaves those hosts on the volume that have locks. It waits for the device. It may be
// called again.
func (v *Volume) Close() {
	v.last.Do(func() {
		v.mu.Lock()
		v.closed = true
		v.mu.Unlock()
		close(v.ends)
		v.busy.Wait()
		v.forget()
	})
}

// Grace tells whether the grace period lasts.
func (v *Volume) Grace() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.grace
}

// Over is closed when the grace period has ended, or Close was called. Grace tells which: it stays true after a Close.
func (v *Volume) Over() <-chan struct{} { return v.over }

// Hosts is the number of hosts on the volume.
func (v *Volume) Hosts() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.hosts)
}

// Answer is what becomes of a call for a lock, before it is looked for who has it.
type Answer int

// Answers.
const (
	Admitted Answer = iota
	InGrace         // only locks from before are granted now
	NotYours        // it is none from before, or it is too late to say so
	NoRoom          // the host cannot be put on the volume
)

// Admit decides whether a host may have a lock; reclaim says that it is one it had before. If the answer is Admitted,
// the host is on the volume, durable, and stays there until release is called, and then for as long as Config.Holding
// says that it has locks. It waits for the device if the host is new.
func (v *Volume) Admit(h Host, reclaim bool) (release func(), a Answer) {
	v.mu.Lock()
	a = v.may(h.Addr, reclaim)
	if _, there := v.hosts[h]; a != Admitted || there {
		defer v.mu.Unlock()
		return v.admit(h.Addr, a), a
	}
	v.mu.Unlock()

	defer v.beginWriting()()
	v.mu.Lock()
	defer v.mu.Unlock()
	a = v.may(h.Addr, reclaim)
	if _, there := v.hosts[h]; a == Admitted && !there && !v.add(h) {
		a = NoRoom
	}
	return v.admit(h.Addr, a), a
}

// may decides what needs no room. The caller has mu.
func (v *Volume) may(at netip.Addr, reclaim bool) Answer {
	switch {
	case v.grace && !reclaim:
		return InGrace
	case reclaim && (!v.grace || v.late || !v.known(at)):
		return NotYours
	}
	return Admitted
}

// known tells whether an address is on the volume. No other comes to it during the grace period. The caller has mu.
func (v *Volume) known(at netip.Addr) bool {
	for h := range v.hosts {
		if h.Addr == at {
			return true
		}
	}
	return false
}

// admit notes a call that was admitted. The caller has mu.
func (v *Volume) admit(at netip.Addr, a Answer) (release func()) {
	if a != Admitted {
		return nil
	}
	v.pins[at]++
	delete(v.before, at)
	return func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		if v.pins[at]--; v.pins[at] == 0 {
			delete(v.pins, at)
			v.idle.Broadcast()
		}
	}
}
