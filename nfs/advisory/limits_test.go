package advisory

import (
	"fmt"
	"net/netip"
	"testing"
)

// TestLimits reaches each limit alone, and sees that there is room again afterwards.
func TestLimits(t *testing.T) {
	at := func(host, file, first int) (File, Owner, Range) {
		h := Host{netip.AddrFrom4([4]byte{192, 0, 2, byte(host)}), "host"}
		return File{Ino: uint64(file)}, Owner{h, "owner"}, Range{uint64(first), uint64(first)}
	}
	wide := Limits{All: 100, Client: 100, File: 100, Waits: 100, FileWaits: 100, Hosts: 100}
	for _, x := range []struct {
		limit string
		set   func(*Limits)
		place func(i int) (File, Owner, Range) // of the locks, of which there may be three
	}{
		{"All", func(l *Limits) { l.All = 3 }, func(i int) (File, Owner, Range) { return at(i, i, 0) }},
		{"Client", func(l *Limits) { l.Client = 3 }, func(i int) (File, Owner, Range) { return at(0, i, 0) }},
		{"File", func(l *Limits) { l.File = 3 }, func(i int) (File, Owner, Range) { return at(i, 0, 2*i) }},
		{"Hosts", func(l *Limits) { l.Hosts = 3 }, func(i int) (File, Owner, Range) { return at(i, i, 0) }},
	} {
		limits := wide
		x.set(&limits)
		table := New(limits, func(Offer) {})
		for i := range 5 {
			f, o, r := x.place(i)
			want := Granted
			if i >= 3 {
				want = NoRoom
			}
			if got, _ := table.Lock(f, o, r, true, false, nil); got != want {
				t.Errorf("%s: lock %d is %v, want %v", x.limit, i, got, want)
			}
		}
		f, o, r := x.place(0)
		table.Unlock(f, o, r)
		f, o, r = x.place(3)
		if got, _ := table.Lock(f, o, r, true, false, nil); got != Granted {
			t.Errorf("%s: after an unlock a lock is %v", x.limit, got)
		}
	}
}

// TestSplit: the unlock that makes two locks of one needs room, and without it changes nothing.
func TestSplit(t *testing.T) {
	table := New(Limits{All: 1, Client: 1, File: 1, Waits: 1, FileWaits: 1, Hosts: 2}, func(Offer) {})
	o := Owner{Host{netip.IPv4Unspecified(), "host"}, "owner"}
	table.Lock(File{}, o, Range{0, 9}, true, false, nil)
	if got := table.Unlock(File{}, o, Range{4, 5}); got != NoRoom {
		t.Errorf("a third lock: %v", got)
	}
	other := Owner{Host{netip.IPv4Unspecified(), "host"}, "other"}
	if got, _ := table.Test(File{}, other, Range{4, 5}, false); got != Denied {
		t.Errorf("what was not unlocked is %v", got)
	}
}

// TestNetworks: addresses of one IPv6 network have one limit, and locks of their own.
func TestNetworks(t *testing.T) {
	table := New(Limits{All: 10, Client: 2, File: 10, Waits: 1, FileWaits: 1, Hosts: 9}, func(Offer) {})
	lock := func(addr string, file uint64) Answer {
		o := Owner{Host{netip.MustParseAddr(addr), "host"}, "owner"}
		a, _ := table.Lock(File{Ino: file}, o, Range{0, 0}, true, false, nil)
		return a
	}
	for i, want := range []Answer{Granted, Granted, NoRoom} {
		if got := lock(fmt.Sprintf("2001:db8::%d", i+1), uint64(i)); got != want {
			t.Errorf("address %d: %v, want %v", i, got, want)
		}
	}
	if got := lock("2001:db8::9", 1); got != NoRoom && got != Denied {
		t.Errorf("the lock of another address: %v", got)
	}
	if got := lock("2001:db8:0:1::1", 5); got != Granted {
		t.Errorf("another network: %v", got)
	}
}
