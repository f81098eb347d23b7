package linear

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tansy/disk"
	"tansy/fs"
)

// clock is a volume's. It counts, or is the machine's if the server is another process. It may jump.
type clock struct {
	n       atomic.Uint64
	machine bool

	wild *rand.Rand          // not nil: now and then the clock jumps, by these choices
	tell func(time.Duration) // the server, if that is another process, by how much the clock is off

	mu    sync.Mutex
	jumps []jump
}

// jump is a reading from which on the clock is off by some nanoseconds.
type jump struct {
	at uint64
	by int64
}

// steady is what the clock reads without its jumps, in nanoseconds since 1970.
func steady(n uint64) uint64 { return clockBase*1e9 + n*clockTick }

func (c *clock) now() time.Time {
	t := steady(c.n.Add(1))
	return time.Unix(0, int64(t)+c.off(t))
}

// off is by how much the clock is off when it would read t without its jumps.
func (c *clock) off(t uint64) (by int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, j := range c.jumps {
		if j.at <= t {
			by = j.by
		}
	}
	return by
}

// bound is the earliest stamp of an operation called now, or the latest of one that ended now, in nanoseconds since
// 1970, without jumps.
func (c *clock) bound(called bool) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.machine:
		return uint64(time.Now().UnixNano())
	case called:
		return steady(c.n.Load() + 1)
	}
	return steady(c.n.Load()+1) - 1
}

// maybeJump has the clock jump, if it is one that does.
func (c *clock) maybeJump() {
	if c.wild == nil || c.wild.IntN(8) > 0 {
		return
	}
	by := time.Duration(c.wild.IntN(2000)-1000) * pick(c.wild, time.Second, time.Hour, 24*time.Hour)
	c.mu.Lock()
	defer c.mu.Unlock()
	at := steady(c.n.Load() + 1)
	if c.machine {
		at = uint64(time.Now().UnixNano())
		c.tell(by)
	}
	c.jumps = append(c.jumps, jump{at, int64(by)})
}

// read tells if the clock read t, in nanoseconds since 1970, while it went from begun to ended without its jumps.
func (c *clock) read(t, begun, ended uint64) bool {
	during := func(by int64) bool { return begun <= t-uint64(by) && t-uint64(by) <= ended }
	if c == nil {
		return during(0)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	by := int64(0)
	for _, j := range c.jumps {
		if j.at > ended {
			break
		}
		if j.at > begun && during(by) {
			return true
		}
		by = j.by
	}
	return during(by)
}

// setBack tells if the clock had read t or more, before it was set back, when it read ended without its jumps. Then a
// stamp may be t, because the file had a later one than the clock read.
func (c *clock) setBack(t, ended uint64) bool {
	if c == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	by := int64(0)
	for _, j := range c.jumps {
		if j.at > ended {
			break
		}
		if j.by < by && t <= j.at+uint64(by)+clockTick {
			return true
		}
		by = j.by
	}
	return false
}

// TestClock is TestLinear and TestCrash while the clock of the server's machine is set forward and back, by seconds to
// years. A stamp is what the clock read, or just behind the ctime that the file had.
func TestClock(t *testing.T) {
	first := seed(t)
	var sum totals
	for i := range count(40) {
		seed := first + uint64(i)
		h, result, err := runCrash(t, seed, &clock{wild: rand.New(rand.NewPCG(seed, 5<<40))}, nil, false)
		if err != nil {
			t.Fatalf("-seed %d: %v", seed, err)
		}
		sum.add(h, result)
	}
	k := &clock{wild: rand.New(rand.NewPCG(first, 6<<40))}
	d := disk.NewMem(volumeBlocks * disk.BlockSize)
	newVolume(t, d, k)
	s := serve(t, slow{d, 300 * time.Microsecond}, k, nil)
	clients := dial(t, nil, s.addr, 3)
	for i := range count(40) {
		h, result, err := runLinear(clients, k, first+uint64(i), fmt.Sprint("h", i))
		if err != nil {
			t.Fatalf("-seed %d: %v", h.seed, err)
		}
		sum.add(h, result)
	}
	closeAll(clients)
	s.stop()
	sum.report(t)
	if len(k.jumps) == 0 {
		t.Error("the clock did not jump")
	}
}

// TestClockFaults: stamps that a clock with jumps does not explain are found.
func TestClockFaults(t *testing.T) {
	at := func(n uint64) fs.Time { return fs.Time{Sec: n / 1e9, Nsec: uint32(n % 1e9)} }
	k := &clock{jumps: []jump{{steady(10), 5e9}, {steady(20), -5e9}}}
	c := &call{clock: k, begun: steady(22), ended: steady(24)}
	now, old := steady(23)-5e9, steady(15)+5e9 // what the clock reads, and what it read before it was set back
	for _, x := range []struct {
		what  string
		given []given
		ok    bool
	}{
		{"what the clock reads", []given{{at(now - 50), at(now)}}, true},
		{"behind the ctime", []given{{at(old), at(old + 1)}}, true},
		{"one of each", []given{{at(old), at(old + 1)}, {at(now - 50), at(now)}}, true},
		{"what it read before", []given{{at(now - 50), at(old)}}, false},
		{"what it will read", []given{{at(now - 50), at(steady(26) - 5e9)}}, false},
		{"the clock without its jumps", []given{{at(now - 50), at(steady(23))}}, false},
		{"before the ctime", []given{{at(old), at(now)}}, false},
		{"far behind the ctime", []given{{at(old), at(old + 2)}}, false},
		{"the ctime", []given{{at(old), at(old)}}, false},
		{"two readings", []given{{at(now - 50), at(now)}, {at(now - 50), at(now + clockTick)}}, false},
	} {
		if err := (&stamps{call: c, given: x.given}).check(); (err == nil) != x.ok {
			t.Errorf("%s: %v", x.what, err)
		}
	}
}
