package oncrpc

import (
	"io"
	"net"
	"runtime"
	"slices"
	"sync"
	"testing"
)

// line is a lock that is given to those who wait in the order of their coming.
type line struct {
	mu      sync.Mutex
	held    bool
	waiting []chan struct{}
}

// join waits for the lock. joined, if not nil, is told how many are ahead as soon as it is one of those that wait.
func (l *line) join(joined func(ahead int)) {
	l.mu.Lock()
	ahead := len(l.waiting)
	if l.held {
		ahead++
	}
	if joined != nil {
		joined(ahead)
	}
	if !l.held {
		l.held = true
		l.mu.Unlock()
		return
	}
	turn := make(chan struct{})
	l.waiting = append(l.waiting, turn)
	l.mu.Unlock()
	<-turn
}

func (l *line) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held = len(l.waiting) > 0; l.held {
		close(l.waiting[0])
		l.waiting = l.waiting[1:]
	}
}

// length waits until n are in the line, who has the lock included.
func (l *line) length(n int) {
	for {
		l.mu.Lock()
		got := len(l.waiting) + 1
		l.mu.Unlock()
		if got >= n {
			return
		}
		runtime.Gosched()
	}
}

// TestFloodOfChanges: of one host's calls that all want the same lock, few are ahead of those of another, however many
// the first one has sent, over many connections. (What is ahead of the other's first call came when the first was
// alone.)
func TestFloodOfChanges(t *testing.T) {
	const connections, calls = 16, 50
	s, addr := patient(t, Config{})
	var l line
	var ahead []int // of the other's calls, guarded by l
	came := make(chan struct{}, calls)
	s.cfg.Programs = append(s.cfg.Programs, withStats([]Program{{Number: 78, Version: 1, Procs: []Proc{
		{Name: "FLOOD", Changes: true, Serve: func(*Call) Accept {
			l.join(nil)
			l.leave()
			return Success
		}},
		{Name: "CHANGE", Changes: true, Serve: func(*Call) Accept {
			l.join(func(n int) { ahead = append(ahead, n); came <- struct{}{} })
			l.leave()
			return Success
		}},
	}}})...)
	call := func(proc uint32) []byte { return mark(words(1, 0, 2, 78, 1, proc, 0, 0, 0, 0)) }

	l.join(nil)
	flood := slices.Repeat(call(0), 100)
	for range connections {
		p := connectFrom(t, addr, 2)
		go io.Copy(io.Discard, p)
		go func() {
			for {
				if _, err := p.Write(flood); err != nil {
					return
				}
			}
		}()
	}
	l.length(1 + mostChanges)
	other := connectFrom(t, addr, 3)
	for i := range calls {
		other.send(call(1))
		<-came
		if i == 0 {
			s.changes.begin(&hostAt(s, 3).changes, nil) // as for one that is always there, however long these take
			l.leave()
		}
		other.receive()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if ahead[0] > 1+mostChanges {
		t.Errorf("%d calls were ahead of the first one", ahead[0])
	}
	if most := slices.Max(ahead[1:]); most > fewChanges {
		t.Errorf("%d calls were ahead of a later one, want at most %d: %v", most, fewChanges, ahead)
	}
}

// hostAt is the host with address 127.0.0.n.
func hostAt(s *Server, n byte) *host {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hosts[hostOf(&net.TCPAddr{IP: net.IPv4(127, 0, 0, n)})]
}

// changer is a host with calls that change something.
type changer struct {
	t     *testing.T
	c     *changes
	p     places
	ready []chan int // of its calls that waited, in the order in which they began to
}

func (h *changer) begin(n int) {
	for range n {
		ready := make(chan int, 1)
		if _, ok := h.c.begin(&h.p, ready); !ok {
			h.ready = append(h.ready, ready)
		}
	}
}

func (h *changer) end(n int) {
	for range n {
		h.c.end(&h.p, h.p.era)
	}
}

// has checks how many calls are under way and how many wait, and that those that wait began to do so last.
func (h *changer) has(taken, waiting int) {
	h.t.Helper()
	if h.p.taken != taken || len(h.p.waiting) != waiting {
		h.t.Errorf("%d calls under way and %d wait, want %d and %d", h.p.taken, len(h.p.waiting), taken, waiting)
	}
	for i, ready := range h.ready {
		if told := len(ready) > 0; told != (i < len(h.ready)-waiting) {
			h.t.Errorf("call %d of %d that had to wait: told %v, and %d wait", i, len(h.ready), told, waiting)
		}
	}
}

func changers(t *testing.T, n int) (c *changes, hosts []*changer) {
	c = newChanges()
	for range n {
		hosts = append(hosts, &changer{t: t, c: c})
	}
	return c, hosts
}

// TestChangesOfOneHost: a host that is alone has many places, and again so when others are gone.
func TestChangesOfOneHost(t *testing.T) {
	c, hosts := changers(t, 2)
	a, b := hosts[0], hosts[1]
	a.begin(mostChanges + 30)
	a.has(mostChanges, 30)
	a.end(5)
	a.has(mostChanges, 25)
	b.begin(1)
	b.has(1, 0) // at once
	a.end(mostChanges - fewChanges)
	a.has(fewChanges, 25) // no other has begun
	a.end(4)
	a.has(fewChanges, 21)
	for range 3 {
		c.look()
		a.has(fewChanges, 21)
		a.end(1)
		a.begin(1)
	}
	b.end(1)
	c.look() // it had one until now
	a.has(fewChanges, 21)
	a.end(1)
	c.look()
	a.has(fewChanges+20, 0)
}

// TestChangesAlike: hosts that have as many calls as others may have more of them under way than where one has many and
// the others few; together not more than one that is alone, as long as each has its fewChanges.
func TestChangesAlike(t *testing.T) {
	for _, x := range []struct{ hosts, calls, others, want int }{
		{2, 200, 200, mostChanges / 2},
		{2, 40, 40, 40},
		{3, 200, 200, mostChanges / 3},
		{3, 200, 3, fewChanges},
		{20, 200, 200, fewChanges},
	} {
		c, hosts := changers(t, x.hosts)
		for i, h := range hosts {
			h.begin(1) // all are there
			if i == 0 {
				h.begin(x.calls - 1)
			} else {
				h.begin(x.others - 1)
			}
		}
		for range 8 {
			c.look()
			for _, h := range hosts {
				n := h.p.taken
				h.end(n)
				h.begin(n)
			}
		}
		if got := hosts[0].p.taken; got != x.want {
			t.Errorf("%+v: %d under way", x, got)
		}
		for _, h := range hosts[1:] {
			if got := h.p.taken; got != min(x.want, x.others) {
				t.Errorf("%+v: %d of another under way", x, got)
			}
		}
	}
}

// TestStuckChanges: where none goes on, those under way count no more until they end, and others go on as ever.
func TestStuckChanges(t *testing.T) {
	c := newChanges()
	var a, b places
	begin := func(p *places) int {
		t.Helper()
		era, ok := c.begin(p, nil)
		if !ok {
			t.Fatalf("no place beside %d calls", p.taken)
		}
		return era
	}
	begin(&b)
	for range fewChanges {
		begin(&a)
	}
	waiting := make(chan int, 2*fewChanges)
	if _, ok := c.begin(&a, waiting); ok {
		t.Fatal("a place more than there are")
	}
	c.look()
	if len(waiting) != 0 {
		t.Fatal("they began since")
	}
	c.look()
	if len(waiting) != 1 {
		t.Fatal("who waits is kept up by those that do not go on")
	}
	c.end(&a, <-waiting)
	for range 50 { // one after the other, without a look
		c.end(&a, begin(&a))
	}
	for range fewChanges {
		begin(&a)
	}
	for range fewChanges { // the device answers again
		if _, ok := c.begin(&a, waiting); ok {
			t.Fatal("as many places more as there were before")
		}
		c.end(&a, 0)
		a.waiting = nil
	}
	if a.taken != fewChanges || a.forgiven != 0 {
		t.Errorf("%d under way, %d of which do not count", a.taken, a.forgiven)
	}
}
