package oncrpc

import (
	"io"
	"sync/atomic"
	"testing"
)

// client is a connection that always has another call, of such a cost.
type client struct {
	flow
	turn
	cost int
	had  int // turns
}

// world is turns of room 1 each, whose time goes on when a test says so.
type world struct {
	*turns
	clients []*client
	ticks   int // wanted
}

func newWorld(room int) *world {
	w := &world{turns: newTurns(room)}
	w.later = func(func()) { w.ticks++ }
	return w
}

// join adds n clients of a host, each with a call that waits.
func (w *world) join(n, cost int, host *queued) (added []*client) {
	for range n {
		c := &client{flow: flow{host: host}, cost: cost}
		w.queue(&c.flow, &c.turn, 1, cost)
		added = append(added, c)
	}
	w.clients = append(w.clients, added...)
	return added
}

// next ends the turn of the client that has one, who comes with its next call.
func (w *world) next(t *testing.T) *client {
	t.Helper()
	for _, c := range w.clients {
		select {
		case <-c.ready:
			c.had++
			w.end(&c.turn)
			w.queue(&c.flow, &c.turn, 1, c.cost)
			return c
		default:
		}
	}
	t.Fatal("nobody has a turn")
	return nil
}

func TestTurnsGoAround(t *testing.T) {
	w := newWorld(1)
	all := w.join(10, 1, new(queued))
	for range 1000 {
		w.next(t)
	}
	for i, c := range all {
		if c.had < 99 || c.had > 101 {
			t.Errorf("connection %d of 10 had %d turns of 1000", i, c.had)
		}
	}
}

// TestTurnsOfHosts: a host with many connections gets no more than one with few.
func TestTurnsOfHosts(t *testing.T) {
	w := newWorld(1)
	w.join(100, 1, new(queued))
	few := w.join(2, 1, new(queued))
	for range 10_000 {
		w.next(t)
	}
	if had := few[0].had + few[1].had; had < 4000 || had > 6000 {
		t.Errorf("the host with 2 of 102 connections had %d turns of 10000", had)
	}
}

// TestTurnsByCost: a cheap call waits for the call that is being carried out, and the next one,
// as long as its client makes no more of them than is its share.
func TestTurnsByCost(t *testing.T) {
	w := newWorld(1)
	host := new(queued)
	w.join(32, 128, host)
	for range 1000 {
		w.next(t)
	}
	cheap := &client{flow: flow{host: host}}
	for range 1000 {
		w.queue(&cheap.flow, &cheap.turn, 1, 1)
		for waited := 0; len(cheap.ready) == 0; waited++ {
			if waited == 2 {
				t.Fatal("a cheap call waited for more than two of data")
			}
			w.next(t)
		}
		<-cheap.ready
		w.end(&cheap.turn)
		w.next(t)
	}
}

// TestTurnsAreNotSavedUp: who comes late gets what the others get from then on.
func TestTurnsAreNotSavedUp(t *testing.T) {
	w := newWorld(1)
	w.join(4, 1, new(queued))
	for range 1000 {
		w.next(t)
	}
	late := w.join(4, 1, new(queued))
	for range 100 {
		w.next(t)
	}
	had := 0
	for _, c := range late {
		had += c.had
	}
	if had < 40 || had > 60 {
		t.Errorf("of 100 turns the host that came late had %d", had)
	}
}

// TestTurnsThatLast: a call that itself waits keeps nobody waiting for long.
func TestTurnsThatLast(t *testing.T) {
	w := newWorld(2)
	var hang [2]turn
	for i := range hang {
		if !w.take(&flow{host: new(queued)}, &hang[i], 1, 1) {
			t.Fatal("no turn where there is room")
		}
	}
	if w.ticks != 0 {
		t.Error("the time is looked at while nobody waits")
	}
	w.join(3, 1, new(queued))
	w.tick()
	for _, c := range w.clients {
		if len(c.ready) > 0 {
			t.Fatal("a turn ended at once")
		}
	}
	w.tick()
	for range 100 {
		w.next(t)
	}
	if w.ticks != 3 {
		t.Errorf("%d ticks, want one for who began to wait, and for each while somebody does", w.ticks)
	}
	w.end(&hang[0]) // late, which changes nothing
	for range 100 {
		w.next(t)
	}
	if running := len(w.running); running > 2 || w.free != 2-running {
		t.Errorf("%d turns, %d free of 2", running, w.free)
	}
}

// TestTurnsWhileBusy: a turn that lasts because the processors are busy does not make room for more turns, as
// that would keep them busier still. It does when others that came later have ended.
func TestTurnsWhileBusy(t *testing.T) {
	w := newWorld(3)
	var long turn
	if !w.take(&flow{host: new(queued)}, &long, 1, 1) {
		t.Fatal("no turn where there is room")
	}
	w.join(5, 1, new(queued))
	for i := range 3 {
		w.tick()
		if long.at == 0 {
			t.Fatalf("the turn ended by itself after %d of others, where 3 are under way", i)
		}
		w.next(t)
	}
	w.tick()
	if long.at != 0 {
		t.Error("a turn lasts although more have come and gone than are under way")
	}
}

// TestTurnsOfFew: a single call of somebody whose turn it is anyway does not wait for room, but for no more than
// the few there is some for.
func TestTurnsOfFew(t *testing.T) {
	w := newWorld(1)
	crowd := w.join(3, 100, new(queued))
	for range 10 {
		w.next(t)
	}
	var single [2 * crumbs]turn
	got := 0
	for i := range single {
		if w.take(&flow{host: new(queued)}, &single[i], 1, 1) {
			got++
		}
	}
	if got != crumbs {
		t.Errorf("%d single calls of others have turns, want %d", got, crumbs)
	}
	for i := range single {
		w.end(&single[i])
	}
	if w.take(&crowd[0].flow, new(turn), 1, 1) {
		t.Error("a call overtakes those that wait")
	}
	if w.take(&flow{host: new(queued)}, new(turn), 2, 1) {
		t.Error("more than a single inline call begins without room")
	}
}

// TestTurnWhileSending: a call may cost more than there is room for. Who sends its reply has a turn, but not
// while the peer does not take it: another call goes on.
func TestTurnWhileSending(t *testing.T) {
	s, addr := patient(t, Config{})
	s.turns.free = roomPerProcessor
	s.turns.later = func(func()) {} // none ends by itself
	p := connectFrom(t, addr, 1)
	p.send(readCall(1, 8<<20))
	var first [4]byte
	if _, err := io.ReadFull(p, first[:]); err != nil {
		t.Fatal(err)
	}
	other := connectFrom(t, addr, 3)
	other.send(mark(callBytes(9, 2, nil)))
	other.receive()
	if _, err := io.CopyN(io.Discard, p, 8<<20); err != nil {
		t.Fatal(err)
	}
}

// TestCallAmongMany: a call is carried out after those that were under way when it came, and a few
// more, not after all that others have sent before.
func TestCallAmongMany(t *testing.T) {
	const crowd, each = 20, 100
	open := make(chan struct{})
	var of [2]atomic.Int32 // calls of the crowd, and of the single one
	before := make(chan int32, 1)
	count := func(c *Call) Accept {
		who := c.Args.Uint32()
		if of[who].Add(1); who == 1 {
			before <- of[0].Load()
		}
		<-open
		return Success
	}
	s := NewServer(Config{Log: quiet, Programs: []Program{{Number: 77, Version: 1, Procs: []Proc{
		NullProc, {Name: "INLINE", Inline: true, Serve: count}, {Name: "OTHER", Serve: count},
	}}}})
	s.janitor.Do(func() {})
	s.turns.free = batchRoom
	s.turns.later = func(func()) {} // none ends by itself
	addr := listen(t, s)
	waiting := func(n int) {
		for now := -1; now != n; {
			s.turns.mu.Lock()
			now = len(s.turns.waiting)
			s.turns.mu.Unlock()
		}
	}
	for range crowd {
		var calls []byte
		for xid := range uint32(each) {
			calls = append(calls, mark(words(xid, 0, 2, 77, 1, 1+xid%2, 0, 0, 0, 0, 0))...)
		}
		connectFrom(t, addr, 2).send(calls)
	}
	waiting(crowd - 1)
	single := connectFrom(t, addr, 1)
	single.send(mark(words(0, 0, 2, 77, 1, 2, 0, 0, 0, 0, 1)))
	waiting(crowd)
	close(open)
	if n := <-before; n > 2*batchRoom {
		t.Errorf("the call of the single client came after %d of %d calls", n, crowd*each)
	}
	single.receive()
}

// TestTurnsForData: who has shown that it takes data gets some before those that have not.
func TestTurnsForData(t *testing.T) {
	s, addr := patient(t, Config{})
	known := connectFrom(t, addr, 1)
	works(t, known)
	works(t, known) // enough to be known
	s.turns.mu.Lock()
	s.turns.free = 0
	s.turns.later = func(func()) {} // none ends by itself
	s.turns.mu.Unlock()
	first := func(n int) (f *flow) {
		for f == nil {
			s.turns.mu.Lock()
			if len(s.turns.waiting) == n {
				f = s.turns.waiting[0].flow
			}
			s.turns.mu.Unlock()
		}
		return f
	}
	const crowd = 3
	for i := range crowd {
		connectFrom(t, addr, 1).send(readCall(1, 256<<10))
		first(i + 1)
	}
	known.send(readCall(1, 256<<10))
	if first(crowd+1) != &s.of(known).flow {
		t.Error("data for those of whom nothing is known comes first")
	}
	s.turns.mu.Lock()
	s.turns.free = 1 << 20
	s.turns.admit()
	s.turns.mu.Unlock()
	known.receive()
}
