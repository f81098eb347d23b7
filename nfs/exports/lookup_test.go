package exports

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// zone is a Resolver.
type zone struct {
	mu    sync.Mutex
	names map[string][]string // of addresses
	addrs map[string][]string // of names
	down  error
	asked int
	wait  chan struct{} // if not nil, look-ups begin when it can be received from
}

func (z *zone) look(m map[string][]string, key string) ([]string, error) {
	if z.wait != nil {
		<-z.wait
	}
	z.mu.Lock()
	defer z.mu.Unlock()
	z.asked++
	if z.down != nil {
		return nil, z.down
	}
	if len(m[key]) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: key, IsNotFound: true}
	}
	return m[key], nil
}

func (z *zone) LookupAddr(_ context.Context, addr string) ([]string, error) {
	return z.look(z.names, addr)
}

func (z *zone) LookupNetIP(_ context.Context, _, host string) (list []netip.Addr, err error) {
	all, err := z.look(z.addrs, host)
	for _, a := range all {
		list = append(list, netip.MustParseAddr(a))
	}
	return list, err
}

func (z *zone) set(down error, names, addrs map[string][]string) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.down, z.names, z.addrs = down, names, addrs
}

func from(addr string) net.Addr {
	return &net.TCPAddr{IP: net.ParseIP(addr), Port: 700}
}

// table makes a Table of a file, in which the user of each client is told by its anonuid.
func table(t testing.TB, file string, r Resolver) *Table {
	t.Helper()
	e, _, err := Parse([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	return NewTable(e, r)
}

// uids are the anonymous users of the rules for a peer, - where there is none.
func uids(t *Table, peer net.Addr) string {
	var s []string
	for _, r := range t.Rules(peer, nil) {
		if r == nil {
			s = append(s, "-")
		} else {
			s = append(s, fmt.Sprint(r.AnonUID))
		}
	}
	return strings.Join(s, " ")
}

// Of the clients that fit, the most telling kind counts, and of one kind the first. A name
// from the reverse zone counts only if it has the address.
func TestRules(t *testing.T) {
	z := &zone{
		names: map[string][]string{"10.1.0.7": {"Host7.Example.org."}, "10.1.0.8": {"host8.example.org"},
			"10.9.9.9": {"liar.example.org."}, "2001:db8::5": {"six.example.org"}},
		addrs: map[string][]string{
			"host7.example.org": {"10.1.0.7"}, "host8.example.org": {"10.2.0.8", "::ffff:10.1.0.8"},
			"liar.example.org": {"10.1.0.9"},
			"six.example.org":  {"2001:db8::5"}, "named.example.net": {"192.0.2.1", "192.0.2.2"},
		},
	}
	x := table(t, `
/    *(anonuid=1) *.example.org(anonuid=2) 10.1.0.0/16(anonuid=3) 10.0.0.0/8(anonuid=4) host7.example.org(anonuid=5) 10.1.0.7(anonuid=6) named.example.net(anonuid=7)
/one 10.1.0.0/255.255.255.0(anonuid=1) 2001:db8::/64(anonuid=2)
/two *.EXAMPLE.org(anonuid=1) [a-m]*.example.org(anonuid=2) NAMED.example.net(anonuid=3)
`, z)
	for _, c := range []struct{ peer, want string }{
		{"10.1.0.7", "6 1 1"},
		{"::ffff:10.1.0.7", "6 1 1"},
		{"10.1.0.8", "3 1 1"},
		{"10.1.1.1", "3 - -"},
		{"10.9.9.9", "4 - -"},
		{"2001:db8::5", "2 2 1"},
		{"2001:db8:0:1::5", "1 - -"},
		{"192.0.2.2", "7 - 3"},
		{"192.0.2.3", "1 - -"},
	} {
		for range 2 {
			if got := uids(x, from(c.peer)); got != c.want {
				t.Errorf("%s: %s, want %s", c.peer, got, c.want)
			}
		}
	}
	if got := uids(x, &net.UDPAddr{IP: net.IPv4(10, 1, 0, 7)}); got != "6 1 1" {
		t.Errorf("over UDP: %s", got)
	}
	if got := uids(x, &net.UnixAddr{}); got != "1 - -" {
		t.Errorf("without an address: %s", got)
	}
	if all := table(t, "/ *(anonuid=1)\n/a *(anonuid=2)", nil); all.same == nil || uids(all, nil) != "1 2" {
		t.Errorf("everybody: %v", all.same)
	}
}

// What mounting a place gives is the lowest export above it that the peer has a rule for.
func TestCovering(t *testing.T) {
	x := table(t, "/a/b 10.0.0.1\n/ 10.0.0.1 10.0.0.2\n/a 10.0.0.2 10.0.0.3\n", nil)
	for _, c := range []struct{ peer, place, want string }{
		{"10.0.0.1", "/", "/"}, {"10.0.0.1", "/a", "/"}, {"10.0.0.1", "/a/b", "/a/b"}, {"10.0.0.1", "/a/b/c", "/a/b"},
		{"10.0.0.1", "/a/bc", "/"},
		{"10.0.0.2", "/a/b", "/a"}, {"10.0.0.2", "/b", "/"},
		{"10.0.0.3", "/", ""}, {"10.0.0.3", "/ab", ""}, {"10.0.0.3", "/a", "/a"},
		{"10.0.0.4", "/a", ""},
	} {
		got := ""
		if i, ok := x.Covering(c.place, x.Rules(from(c.peer), nil)); ok {
			got = x.exports[i].Path
		}
		if got != c.want {
			t.Errorf("%s mounts %s: %q, want %q", c.peer, c.place, got, c.want)
		}
	}
}

// Names are looked up once, and again after a while in the background; until that is done,
// and as long as no name server answers, what was known holds.
func TestLookups(t *testing.T) {
	names := map[string][]string{"10.0.0.1": {"a.lab"}}
	good := map[string][]string{"a.lab": {"10.0.0.1"}, "b.lab": {"10.0.0.2"}}
	z := &zone{names: names, addrs: good}
	x := table(t, "/ *.lab(anonuid=1)\n/b b.lab(anonuid=2)\n", z)
	now := time.Unix(1000, 0)
	var mu sync.Mutex
	x.now = func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return now
	}
	later := func(d time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		now = now.Add(d)
	}
	is := func(peer, want string) {
		t.Helper()
		if got := uids(x, from(peer)); got != want {
			t.Errorf("%s: %s, want %s", peer, got, want)
		}
	}
	becomes := func(peer, want string) {
		t.Helper()
		for range 1 << 22 {
			if uids(x, from(peer)) == want {
				return
			}
			runtime.Gosched()
		}
		t.Fatalf("%s: %s, want %s", peer, uids(x, from(peer)), want)
	}
	is("10.0.0.1", "1 -")
	is("10.0.0.2", "- 2")
	asked := z.asked
	later(fresh - 1)
	is("10.0.0.1", "1 -")
	if z.asked != asked {
		t.Errorf("asked %d times, before that %d", z.asked, asked)
	}
	// The name moves.
	z.set(nil, map[string][]string{"10.0.0.3": {"a.lab"}}, map[string][]string{"a.lab": {"10.0.0.3"}})
	later(2)
	becomes("10.0.0.1", "- -")
	becomes("10.0.0.2", "- -")
	is("10.0.0.3", "1 -")
	// No name server answers: what is known holds, and new peers have no names. Soon after it does they have.
	z.set(errors.New("timed out"), nil, nil)
	later(fresh + 1)
	is("10.0.0.3", "1 -")
	is("10.0.0.4", "- -")
	peer := x.peers[caller{addr: netip.MustParseAddr("10.0.0.3")}]
	for ; ; runtime.Gosched() { // the look-up that failed has ended
		x.mu.RLock()
		ended := !peer.refreshed && peer.until.After(x.now())
		x.mu.RUnlock()
		if ended {
			break
		}
	}
	is("10.0.0.3", "1 -")
	z.set(nil, map[string][]string{"10.0.0.4": {"a.lab"}}, map[string][]string{"a.lab": {"10.0.0.4"}})
	later(retry + 1)
	becomes("10.0.0.4", "1 -")
	becomes("10.0.0.3", "- -")
}

// All first calls of a peer wait for one look-up.
func TestOneLookup(t *testing.T) {
	z := &zone{names: map[string][]string{"10.0.0.1": {"a.lab"}}, addrs: map[string][]string{"a.lab": {"10.0.0.1"}},
		wait: make(chan struct{})}
	x := table(t, "/ *.lab(anonuid=1)", z)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if got := uids(x, from("10.0.0.1")); got != "1" {
				t.Error(got)
			}
		})
	}
	close(z.wait)
	all.Wait()
	if z.asked != 2 {
		t.Errorf("%d look-ups", z.asked)
	}
	for i := range 3 * maxPeers { // strangers cost no more than so many
		x.Rules(from(fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255)), nil)
	}
	if len(x.peers) > maxPeers {
		t.Errorf("%d peers remembered", len(x.peers))
	}
}
