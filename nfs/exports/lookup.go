package exports

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"tansy/internal/lockorder"
	"tansy/nfs/oncrpc"
)

// Resolver looks host names up; *net.Resolver is one.
type Resolver interface {
	// LookupAddr returns the names of an address.
	LookupAddr(ctx context.Context, addr string) (names []string, err error)
	// LookupNetIP returns the addresses of a name; network is "ip".
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

const (
	fresh      = 5 * time.Minute  // what was found out about a peer is looked up again after that
	retry      = 10 * time.Second // after a look-up failed
	lookupTime = 5 * time.Second  // for all look-ups about one peer
	maxPeers   = 4096             // remembered
	maxNames   = 16               // of one address, that are confirmed
	maxAtOnce  = 16               // look-ups of host names
)

// Table has the exports of a file, and remembers which rules a peer has. It may be used concurrently.
//
// A host name takes a look-up. The first call of a peer waits for it; later calls use what is known, while the
// background looks the name up again. If no name server answers, the last result goes on to hold.
type Table struct {
	exports  []Export
	resolver Resolver
	now      func() time.Time

	same     []*Rule // the rules of all peers, if no export tells them apart
	patterns bool    // there are patterns, so that the names of peers matter
	named    bool    // there are patterns or host names, so that rules may change
	certs    bool    // there are names of certificates
	hosts    hosts

	mu    lockorder.RWMutex[lockorder.Exports]
	peers map[caller]*peer
}

// caller is who may have rules of its own.
type caller struct {
	addr netip.Addr
	by   *oncrpc.Security // nil if there are no names of certificates, or the caller has none
}

// peer is what is known about one.
type peer struct {
	known chan struct{} // closed when rules is set for the first time

	// Under Table.mu.
	rules     []*Rule
	until     time.Time
	refreshed bool // by a goroutine that is at it
}

// NewTable makes a table that uses the resolver for names; nil is net.DefaultResolver.
func NewTable(exports []Export, r Resolver) *Table {
	if r == nil {
		r = net.DefaultResolver
	}
	t := &Table{exports: exports, resolver: r, now: time.Now, peers: map[caller]*peer{}}
	t.hosts.addresses = map[string][]netip.Addr{}
	alike := true
	for _, e := range exports {
		for _, c := range e.Clients {
			alike = alike && c.kind == anybody
			t.patterns = t.patterns || c.kind == pattern
			t.certs = t.certs || c.certified()
			if c.kind == hostname {
				t.hosts.addresses[c.host] = nil
			}
		}
	}
	t.named = t.patterns || len(t.hosts.addresses) > 0
	if alike {
		t.same = t.rules(caller{}, nil, nil)
	}
	return t
}

// Exports are the exports, which are not to be changed.
func (t *Table) Exports() []Export { return t.exports }

// Rules returns the rules that hold for a peer: one for each export, nil where the peer may do nothing. They must not
// be changed. by is what protects the peer's connection. A peer without an IP address matches "*" alone.
func (t *Table) Rules(a net.Addr, by *oncrpc.Security) []*Rule {
	if t.same != nil {
		return t.same
	}
	who := caller{addr: Address(a)}
	if t.certs && by != nil && by.Mutual {
		who.by = by
	}
	t.mu.RLock()
	p := t.peers[who]
	if p != nil && p.rules != nil && (!t.named || p.refreshed || t.now().Before(p.until)) {
		defer t.mu.RUnlock()
		return p.rules
	}
	t.mu.RUnlock()
	return t.find(who)
}

// TooWeak tells if a peer with this rule for an export, or with none, may not do anything because of how its connection
// is protected. Where clients are named by certificates, who shows none may be one of them.
func (t *Table) TooWeak(index int, rule *Rule, by *oncrpc.Security) bool {
	if rule == nil {
		return transportOf(by) != MutualTLS && t.Certified(index) != nil
	}
	return rule.Transports != 0 && rule.Transports&transportOf(by) == 0
}

// Certified returns for an export the rule of a client that is named by its certificate, the first in the file; nil if
// there is none.
func (t *Table) Certified(index int) *Rule {
	clients := t.exports[index].Clients
	for i := range clients {
		if clients[i].certified() {
			return &clients[i].Rule
		}
	}
	return nil
}

// Address is the IP address of a peer. An IPv4 address that is mapped to IPv6 becomes the IPv4 one.
func Address(a net.Addr) netip.Addr {
	switch a := a.(type) {
	case *net.TCPAddr:
		return a.AddrPort().Addr().Unmap().WithZone("")
	case *net.UDPAddr:
		return a.AddrPort().Addr().Unmap().WithZone("")
	}
	return netip.Addr{}
}

// find is Rules where something has to be found out.
func (t *Table) find(who caller) []*Rule {
	t.mu.Lock()
	p := t.peers[who]
	switch {
	case p == nil:
		if len(t.peers) >= maxPeers {
			clear(t.peers)
		}
		p = &peer{known: make(chan struct{})}
		t.peers[who] = p
		t.mu.Unlock()
		t.ask(who, p)
		close(p.known)
	case p.rules == nil: // another call is at it
		t.mu.Unlock()
		lockorder.Wait[lockorder.HostNames]()
		<-p.known
	case p.refreshed || t.now().Before(p.until):
		t.mu.Unlock()
	default:
		p.refreshed = true
		t.mu.Unlock()
		go t.ask(who, p)
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	return p.rules
}

// ask finds out which rules a peer has.
func (t *Table) ask(who caller, p *peer) {
	ctx, cancel := context.WithTimeout(context.Background(), lookupTime)
	defer cancel()
	names, addresses, err := t.resolve(ctx, who.addr)
	rules := t.rules(who, names, addresses)
	t.mu.Lock()
	defer t.mu.Unlock()
	p.refreshed = false
	if p.until = t.now().Add(fresh); err != nil {
		p.until = t.now().Add(retry)
	}
	if err == nil || p.rules == nil {
		p.rules = rules
	}
}

// resolve returns the names of a peer, each of which has its address again, and the addresses of
// the host names in the file. err says that some could not be looked up: that a name or an
// address is unknown is no error.
func (t *Table) resolve(
	ctx context.Context, addr netip.Addr,
) (names []string, addresses map[string][]netip.Addr, err error) {
	if !addr.IsValid() {
		return nil, nil, nil
	}
	addresses, err = t.hosts.get(ctx, t)
	if !t.patterns {
		return nil, addresses, err
	}
	found, e := t.resolver.LookupAddr(ctx, addr.String())
	err = errors.Join(err, failure(e))
	for _, n := range found[:min(len(found), maxNames)] {
		n = strings.TrimSuffix(strings.ToLower(n), ".")
		list, e := t.lookup(ctx, n)
		err = errors.Join(err, e)
		if slices.Contains(list, addr) { // whoever runs the reverse zone may say anything
			names = append(names, n)
		}
	}
	return names, addresses, err
}

// lookup returns the addresses of a host.
func (t *Table) lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	list, err := t.resolver.LookupNetIP(ctx, "ip", host)
	all := make([]netip.Addr, len(list))
	for i, a := range list {
		all[i] = a.Unmap()
	}
	return all, failure(err)
}

// failure is err, unless that says that there is nothing to be found.
func failure(err error) error {
	var dns *net.DNSError
	if errors.As(err, &dns) && dns.IsNotFound {
		return nil
	}
	return err
}

// hosts are the host names in a file with their addresses, which are looked up together.
type hosts struct {
	mu        lockorder.Mutex[lockorder.HostNames] // held while they are looked up
	addresses map[string][]netip.Addr
	until     time.Time
}

// get returns the addresses of each name, those known before where err says that names
// could not be looked up. The map is not changed any more.
func (h *hosts) get(ctx context.Context, t *Table) (map[string][]netip.Addr, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.addresses) == 0 || t.now().Before(h.until) {
		return h.addresses, nil
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	var failed error
	next := make(map[string][]netip.Addr, len(h.addresses))
	slot := make(chan struct{}, maxAtOnce)
	for host, before := range h.addresses {
		slot <- struct{}{}
		all.Go(func() {
			list, err := t.lookup(ctx, host)
			if err != nil {
				list = before
			}
			mu.Lock()
			next[host], failed = list, errors.Join(failed, err)
			mu.Unlock()
			<-slot
		})
	}
	all.Wait()
	h.addresses = next
	if failed == nil {
		h.until = t.now().Add(fresh)
	}
	return next, failed
}

// rules are those of a peer with these names.
func (t *Table) rules(who caller, names []string, addresses map[string][]netip.Addr) []*Rule {
	rules := make([]*Rule, len(t.exports))
	for i := range t.exports {
		best := anybody + 1
		for j := range t.exports[i].Clients {
			c := &t.exports[i].Clients[j]
			if c.kind < best && c.matches(who.addr, names, addresses, who.by) {
				best, rules[i] = c.kind, &c.Rule
			}
		}
	}
	return rules
}

// Covering returns the index of the export that a peer gets by mounting place, a clean path. It is the lowest export at
// or above place for which rules has a rule.
func (t *Table) Covering(place string, rules []*Rule) (index int, ok bool) {
	for i, e := range t.exports {
		if rules[i] != nil && Covers(e.Path, place) && (!ok || len(e.Path) > len(t.exports[index].Path)) {
			index, ok = i, true
		}
	}
	return index, ok
}
