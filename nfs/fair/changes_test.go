package fair

import "testing"

// changer is a host with calls that change something.
type changer struct {
	t     *testing.T
	c     *Changes
	p     Places
	ready []chan int // of its calls that waited, in the order in which they began to
}

func (h *changer) begin(n int) {
	for range n {
		ready := make(chan int, 1)
		if _, ok := h.c.Begin(&h.p, ready); !ok {
			h.ready = append(h.ready, ready)
		}
	}
}

func (h *changer) end(n int) {
	for range n {
		h.c.End(&h.p, h.p.era)
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

func changers(t *testing.T, n int) (c *Changes, hosts []*changer) {
	c = NewChanges()
	for range n {
		hosts = append(hosts, &changer{t: t, c: c})
	}
	return c, hosts
}

// TestChangesOfOneHost: a host that is alone has many places, and again so when others are gone.
func TestChangesOfOneHost(t *testing.T) {
	c, hosts := changers(t, 2)
	a, b := hosts[0], hosts[1]
	a.begin(MostChanges + 30)
	a.has(MostChanges, 30)
	a.end(5)
	a.has(MostChanges, 25)
	b.begin(1)
	b.has(1, 0) // at once
	a.end(MostChanges - FewChanges)
	a.has(FewChanges, 25) // no other has begun
	a.end(4)
	a.has(FewChanges, 21)
	for range 3 {
		c.Look()
		a.has(FewChanges, 21)
		a.end(1)
		a.begin(1)
	}
	b.end(1)
	c.Look() // it had one until now
	a.has(FewChanges, 21)
	a.end(1)
	c.Look()
	a.has(FewChanges+20, 0)
}

// TestChangesAlike: hosts that have as many calls as others may have more of them under way than where one has many and
// the others few; together not more than one that is alone, as long as each has its FewChanges.
func TestChangesAlike(t *testing.T) {
	for _, x := range []struct{ hosts, calls, others, want int }{
		{2, 200, 200, MostChanges / 2},
		{2, 40, 40, 40},
		{3, 200, 200, MostChanges / 3},
		{3, 200, 3, FewChanges},
		{20, 200, 200, FewChanges},
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
			c.Look()
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
	c := NewChanges()
	var a, b Places
	begin := func(p *Places) int {
		t.Helper()
		era, ok := c.Begin(p, nil)
		if !ok {
			t.Fatalf("no place beside %d calls", p.taken)
		}
		return era
	}
	begin(&b)
	for range FewChanges {
		begin(&a)
	}
	waiting := make(chan int, 2*FewChanges)
	if _, ok := c.Begin(&a, waiting); ok {
		t.Fatal("a place more than there are")
	}
	c.Look()
	if len(waiting) != 0 {
		t.Fatal("they began since")
	}
	c.Look()
	if len(waiting) != 1 {
		t.Fatal("who waits is kept up by those that do not go on")
	}
	c.End(&a, <-waiting)
	for range 50 { // one after the other, without a look
		c.End(&a, begin(&a))
	}
	for range FewChanges {
		begin(&a)
	}
	for range FewChanges { // the device answers again
		if _, ok := c.Begin(&a, waiting); ok {
			t.Fatal("as many places more as there were before")
		}
		c.End(&a, 0)
		a.waiting = nil
	}
	if a.taken != FewChanges || a.forgiven != 0 {
		t.Errorf("%d under way, %d of which do not count", a.taken, a.forgiven)
	}
}
