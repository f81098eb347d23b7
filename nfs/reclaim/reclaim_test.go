package reclaim

import (
	"errors"
	"fmt"
	"math/rand"
	"net/netip"
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tansy/fs"
	"tansy/test/kit/replay"
)

// memory is a Store. It may fail, and it may keep whom it likes waiting.
type memory struct {
	mu     sync.Mutex
	note   []byte
	fails  error
	writes int
	during func() // called before a write
}

func (m *memory) Note(string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.note == nil {
		return nil, fs.ErrNoEnt
	}
	return slices.Clone(m.note), nil
}

func (m *memory) SetNote(_ string, value []byte) error {
	m.mu.Lock()
	during := m.during
	m.mu.Unlock()
	if during != nil {
		during()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fails != nil {
		return m.fails
	}
	m.note = slices.Clone(value)
	m.writes++
	return nil
}

func (m *memory) set(fails error, during func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fails, m.during = fails, during
}

// there are the addresses on the volume.
func (m *memory) there(t *testing.T) (list []string) {
	t.Helper()
	b, err := m.Note("")
	if err != nil {
		t.Fatal(err)
	}
	_, hosts, err := decode(b)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range hosts {
		list = append(list, h.Addr.String())
	}
	slices.Sort(list)
	return list
}

// bench is a volume, and who has locks.
type bench struct {
	*Volume
	t *testing.T
	*memory

	lock    sync.Mutex
	holding map[netip.Addr]bool
}

func (b *bench) who() map[netip.Addr]bool {
	b.lock.Lock()
	defer b.lock.Unlock()
	all := map[netip.Addr]bool{}
	for a := range b.holding {
		all[a] = true
	}
	return all
}

// start is a server's start on what is in m.
func start(t *testing.T, m *memory, grace time.Duration, hosts int) *bench {
	t.Helper()
	b := &bench{t: t, memory: m, holding: map[netip.Addr]bool{}}
	v, err := Open(Config{Store: m, Grace: grace, Hosts: hosts, Holding: b.who})
	if err != nil {
		t.Fatal(err)
	}
	if b.Volume = v; v.Next(v.State()+2) != nil {
		t.Fatal("the state is not written")
	}
	v.Start()
	return b
}

var local = netip.MustParseAddr("192.0.2.9")

func host(a string) Host { return Host{netip.MustParseAddr(a), local} }

// admit asks for a lock, which is released when the host holds something.
func (b *bench) admit(a string, reclaim bool, want Answer) {
	b.t.Helper()
	h := host(a)
	release, got := b.Admit(h, reclaim)
	if got != want {
		b.t.Errorf("%s, reclaim %v: %v, want %v", a, reclaim, got, want)
	}
	if got == Admitted {
		b.lock.Lock()
		b.holding[h.Addr] = true
		b.lock.Unlock()
		release()
	}
}

func (b *bench) unlock(a string) {
	b.lock.Lock()
	defer b.lock.Unlock()
	delete(b.holding, netip.MustParseAddr(a))
}

func (b *bench) sees(want ...string) {
	b.t.Helper()
	if got := b.there(b.t); !slices.Equal(got, want) {
		b.t.Errorf("on the volume are %v, want %v", got, want)
	}
}

// TestGrace: who was there reclaims, for a time in which others get nothing; who did not is not there any more when
// they do, and cannot reclaim then nor after the next crash.
func TestGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := new(memory)
		first := start(t, m, time.Minute, 9)
		if first.Grace() {
			t.Error("a grace period of a new volume")
		}
		first.admit("192.0.2.1", true, NotYours)
		for _, a := range []string{"192.0.2.1", "192.0.2.2", "2001:db8::3"} {
			first.admit(a, false, Admitted)
		}
		first.sees("192.0.2.1", "192.0.2.2", "2001:db8::3") // and now it crashes

		b := start(t, m, time.Minute, 9)
		if b.State() != first.State()+2 {
			t.Errorf("state %d after %d", b.State(), first.State())
		}
		b.admit("192.0.2.4", false, InGrace)
		b.admit("192.0.2.4", true, NotYours)
		b.admit("192.0.2.1", false, InGrace)
		b.admit("192.0.2.1", true, Admitted)
		other := Host{host("192.0.2.1").Addr, netip.MustParseAddr("192.0.2.10")}
		if release, a := b.Admit(other, true); a != Admitted {
			t.Errorf("who reclaims by another address: %v", a)
		} else {
			release()
		}
		b.sees("192.0.2.1", "192.0.2.1", "192.0.2.2", "2001:db8::3")
		b.admit("2001:db8::3", true, Admitted)
		b.unlock("2001:db8::3")
		time.Sleep(time.Minute - 1)
		synctest.Wait()
		b.admit("192.0.2.4", false, InGrace)
		b.sees("192.0.2.1", "192.0.2.1", "192.0.2.2", "2001:db8::3")

		// A device that fails has the grace period go on, without those that were silent.
		b.set(errors.New("the device fails"), nil)
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		b.admit("192.0.2.4", false, InGrace)
		b.admit("192.0.2.1", true, Admitted)
		b.admit("192.0.2.2", true, NotYours)
		b.set(nil, nil)
		time.Sleep(forgetEvery)
		synctest.Wait()
		b.sees("192.0.2.1", "192.0.2.1")
		b.admit("192.0.2.1", true, NotYours)
		b.admit("192.0.2.2", true, NotYours)
		b.admit("192.0.2.4", false, Admitted)
		b.sees("192.0.2.1", "192.0.2.1", "192.0.2.4")

		last := start(t, m, 0, 9) // without grace
		last.admit("192.0.2.1", true, NotYours)
		last.admit("192.0.2.5", false, Admitted)
		for _, x := range []*bench{first, b, last} {
			x.Close()
			x.Close()
		}
	})
}

// TestSilent: while the end of the grace period is written, others get nothing yet, and nothing is reclaimed any more
// that would have to be written.
func TestSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := new(memory)
		first := start(t, m, time.Minute, 9)
		first.admit("192.0.2.1", false, Admitted)
		first.admit("192.0.2.3", false, Admitted)
		b := start(t, m, time.Minute, 9)
		b.admit("192.0.2.1", true, Admitted)
		hold := make(chan struct{})
		b.set(nil, func() { <-hold })
		time.Sleep(time.Minute)
		synctest.Wait()
		got := make(chan Answer, 1)
		go func() {
			_, a := b.Admit(Host{host("192.0.2.1").Addr, netip.MustParseAddr("192.0.2.10")}, true)
			got <- a
		}()
		b.admit("192.0.2.2", false, InGrace)
		b.admit("192.0.2.3", true, NotYours)
		b.admit("192.0.2.1", true, Admitted)
		synctest.Wait()
		b.set(nil, nil)
		close(hold)
		if a := <-got; a != NotYours {
			t.Errorf("who reclaims too late: %v", a)
		}
		synctest.Wait()
		b.sees("192.0.2.1")
		b.admit("192.0.2.2", false, Admitted)
		first.Close()
		b.Close()
	})
}

// TestUnderWay: the grace period ends when calls are over that were admitted in it. Until then others get nothing, and
// nothing more is reclaimed.
func TestUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := new(memory)
		first := start(t, m, time.Minute, 9)
		first.admit("192.0.2.1", false, Admitted)
		b := start(t, m, time.Minute, 9)
		release, _ := b.Admit(host("192.0.2.1"), true)
		time.Sleep(time.Minute)
		synctest.Wait()
		b.admit("192.0.2.2", false, InGrace)
		b.admit("192.0.2.1", true, NotYours)
		release()
		synctest.Wait()
		b.admit("192.0.2.2", false, Admitted)
		first.Close()
		b.Close()
	})
}

// TestForget: hosts without locks go after a while, and at the end, and when another comes; calls under way keep them.
func TestForget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := new(memory)
		b := start(t, m, time.Minute, 9)
		b.admit("192.0.2.1", false, Admitted)
		release, _ := b.Admit(host("192.0.2.2"), false)
		again, _ := b.Admit(host("192.0.2.2"), false)
		release()
		b.unlock("192.0.2.1")
		b.admit("192.0.2.3", false, Admitted)
		b.sees("192.0.2.2", "192.0.2.3")
		writes := m.writes
		b.admit("192.0.2.3", false, Admitted)
		time.Sleep(forgetEvery)
		synctest.Wait()
		if m.writes != writes {
			t.Error("written, and nothing is new")
		}
		again()
		time.Sleep(forgetEvery)
		synctest.Wait()
		b.sees("192.0.2.3")
		b.unlock("192.0.2.3")
		b.Close()
		b.sees()
		next := start(t, m, time.Minute, 9)
		next.admit("192.0.2.1", false, Admitted) // there is no grace period, as nobody had locks
		next.unlock("192.0.2.1")
		next.Close()
		b.admit("192.0.2.4", false, Admitted) // a call that was under way
		b.sees("192.0.2.4")

		b.admit("192.0.2.5", false, Admitted)
		b = start(t, m, time.Minute, 9)
		b.admit("192.0.2.5", true, Admitted)
		b.unlock("192.0.2.5")
		b.Close()
		b.sees("192.0.2.4") // who may still reclaim when the next server comes
	})
}

// TestRoom: a host that cannot be put on the volume gets nothing, and one that is there still does.
func TestRoom(t *testing.T) {
	m := new(memory)
	b := start(t, m, 0, 3)
	defer b.Close()
	for i, want := range []Answer{Admitted, Admitted, Admitted, NoRoom} {
		b.admit(fmt.Sprintf("192.0.2.%d", i), false, want)
	}
	b.admit("192.0.2.2", false, Admitted)
	b.unlock("192.0.2.0")
	b.set(fs.ErrNoSpc, nil)
	b.admit("192.0.2.3", false, NoRoom)
	b.set(nil, nil)
	b.admit("192.0.2.3", false, Admitted)
	b.admit("192.0.2.0", false, NoRoom)
	b.sees("192.0.2.1", "192.0.2.2", "192.0.2.3")

	b = start(t, new(memory), 0, 1000)
	defer b.Close()
	for i := range perNetwork {
		b.admit(fmt.Sprintf("2001:db8::%x", i), false, Admitted)
	}
	b.admit("2001:db8::ffff", false, NoRoom)
	b.admit("2001:db8:0:1::1", false, Admitted)
	b.admit("192.0.2.1", false, Admitted)
}

// TestAlways: whatever fails, and whoever comes and goes beside each other, all that hold a lock are on the volume.
func TestAlways(t *testing.T) {
	m := new(memory)
	b := start(t, m, 0, 6)
	defer b.Close()
	seed := int64(replay.Seed(t))
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			rnd := rand.New(rand.NewSource(seed + int64(i)))
			name := fmt.Sprintf("192.0.2.%d", i)
			for range 400 {
				if rnd.Intn(20) == 0 {
					b.forget()
				}
				release, a := b.Admit(host(name), false)
				if a != Admitted {
					continue
				}
				check := func() {
					if !slices.Contains(b.there(t), name) {
						t.Errorf("%s has a lock and is not on the volume", name)
					}
				}
				check()
				b.lock.Lock()
				b.holding[host(name).Addr] = true
				b.lock.Unlock()
				release()
				check()
				b.unlock(name)
			}
		})
	}
	stop := make(chan struct{})
	failing := make(chan struct{})
	go func() {
		defer close(failing)
		for rnd := rand.New(rand.NewSource(seed)); ; {
			select {
			case <-stop:
				return
			default:
				m.set(map[bool]error{true: fs.ErrIO}[rnd.Intn(3) == 0], nil)
			}
		}
	}()
	all.Wait()
	close(stop)
	<-failing
}

// TestFormat: what is written is read, and nothing else.
func TestFormat(t *testing.T) {
	rnd := rand.New(rand.NewSource(int64(replay.Seed(t))))
	some := func(none bool) (a netip.Addr) {
		switch rnd.Intn(5) {
		case 0:
			if !none {
				return netip.AddrFrom4([4]byte{192, 0, 2, 7})
			}
			return a
		case 1, 2:
			return netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 15: byte(rnd.Intn(3))})
		}
		return netip.AddrFrom4([4]byte{192, 0, 2, byte(rnd.Intn(3))})
	}
	for range 2000 {
		var list []Host
		for range rnd.Intn(6) {
			list = append(list, Host{some(false), some(true)})
		}
		state := rnd.Uint32()
		b := encode(state, list)
		s, got, err := decode(b)
		if err != nil || s != state || !reflect.DeepEqual(got, list) {
			t.Fatalf("%v: %v, %v", list, got, err)
		}
		if _, got, err := decode(b[:len(b)-1]); err == nil && len(got) >= len(list) {
			t.Fatalf("%v without its last byte: %v", list, got)
		}
	}
	for _, b := range [][]byte{nil, {1}, {1, 0, 0, 0}, {2, 0, 0, 0, 1}, {1, 0, 0, 0, 1, 0x10, 1, 2, 3, 4}} {
		if _, _, err := decode(b); err == nil {
			t.Errorf("%v says something", b)
		}
		if _, err := Open(Config{Store: &memory{note: append([]byte{}, b...)}}); err == nil {
			t.Errorf("a volume opens with %v", b)
		}
	}
	none := netip.Addr{}
	for _, a := range []string{
		"0.0.0.0", "224.0.0.1", "255.255.255.255", "::", "ff02::1", "::ffff:0.0.0.0", "::ffff:224.0.0.1",
		"::ffff:255.255.255.255",
	} {
		bad, good := netip.MustParseAddr(a), host("192.0.2.1").Addr
		_, got, err := decode(encode(1, []Host{{bad, local}, {good, local}, {good, bad}, {host("::1").Addr, bad}}))
		want := []Host{{good, local}, {good, none}, {host("::1").Addr, none}}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s among the hosts: %v, %v", a, got, err)
		}
	}
	var list []Host // as many as docs/guide/clients.md says
	for i := range 800 {
		list = append(list, Host{netip.AddrFrom4([4]byte{192, 0, byte(i >> 8), byte(i)}), local})
	}
	if n := len(encode(1, list)); n > 4088-4-len("tansy.")-len(note) {
		t.Errorf("800 hosts take %d bytes", n)
	}
}
