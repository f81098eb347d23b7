package fair

import "testing"

// client is a connection that always has another call, of such a cost.
type client struct {
	Flow
	Turn
	cost int
	had  int // turns
}

// world is turns of room 1 each, whose time goes on when a test says so.
type world struct {
	*Turns
	clients []*client
	ticks   int // wanted
}

func newWorld(room int) *world {
	w := &world{Turns: NewTurns(room)}
	w.later = func(func()) { w.ticks++ }
	return w
}

// join adds n clients of a host, each with a call that waits.
func (w *world) join(n, cost int, host *HostTurns) (added []*client) {
	for range n {
		c := &client{Flow: Flow{Host: host}, cost: cost}
		w.queue(&c.Flow, &c.Turn, 1, cost)
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
			w.End(&c.Turn)
			w.queue(&c.Flow, &c.Turn, 1, c.cost)
			return c
		default:
		}
	}
	t.Fatal("nobody has a turn")
	return nil
}

func TestTurnsGoAround(t *testing.T) {
	w := newWorld(1)
	all := w.join(10, 1, new(HostTurns))
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
	w.join(100, 1, new(HostTurns))
	few := w.join(2, 1, new(HostTurns))
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
	host := new(HostTurns)
	w.join(32, 128, host)
	for range 1000 {
		w.next(t)
	}
	cheap := &client{Flow: Flow{Host: host}}
	for range 1000 {
		w.queue(&cheap.Flow, &cheap.Turn, 1, 1)
		for waited := 0; len(cheap.ready) == 0; waited++ {
			if waited == 2 {
				t.Fatal("a cheap call waited for more than two of data")
			}
			w.next(t)
		}
		<-cheap.ready
		w.End(&cheap.Turn)
		w.next(t)
	}
}

// TestTurnsAreNotSavedUp: who comes late gets what the others get from then on.
func TestTurnsAreNotSavedUp(t *testing.T) {
	w := newWorld(1)
	w.join(4, 1, new(HostTurns))
	for range 1000 {
		w.next(t)
	}
	late := w.join(4, 1, new(HostTurns))
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
	var hang [2]Turn
	for i := range hang {
		if !w.Take(&Flow{Host: new(HostTurns)}, &hang[i], 1, 1) {
			t.Fatal("no turn where there is room")
		}
	}
	if w.ticks != 0 {
		t.Error("the time is looked at while nobody waits")
	}
	w.join(3, 1, new(HostTurns))
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
	w.End(&hang[0]) // late, which changes nothing
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
	var long Turn
	if !w.Take(&Flow{Host: new(HostTurns)}, &long, 1, 1) {
		t.Fatal("no turn where there is room")
	}
	w.join(5, 1, new(HostTurns))
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
	crowd := w.join(3, 100, new(HostTurns))
	for range 10 {
		w.next(t)
	}
	var single [2 * crumbs]Turn
	got := 0
	for i := range single {
		if w.Take(&Flow{Host: new(HostTurns)}, &single[i], 1, 1) {
			got++
		}
	}
	if got != crumbs {
		t.Errorf("%d single calls of others have turns, want %d", got, crumbs)
	}
	for i := range single {
		w.End(&single[i])
	}
	if w.Take(&crowd[0].Flow, new(Turn), 1, 1) {
		t.Error("a call overtakes those that wait")
	}
	if w.Take(&Flow{Host: new(HostTurns)}, new(Turn), 2, 1) {
		t.Error("more than a single inline call begins without room")
	}
}
