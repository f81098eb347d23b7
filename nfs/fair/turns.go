package fair

import (
	"container/heap"
	"time"

	"tansy/internal/lockorder"
)

// Processor time is shared out by turns. A call begins when it has a turn, and only so many
// are under way at a time. Were all begun as they come, the call of one client would wait behind
// the thousands of others that have nothing to do with it, until the scheduler of Go comes to it.
//
// Who waits is served by weighted fair queueing: first the turn that would end first if all
// hosts with somebody who waits were served at the same time, each at the same speed, and of each host
// all connections. So whoever asks for less than that gets it soon, cheap calls before those
// that move much, and nobody gets more by asking for much, or with many connections. What is not
// used is not saved up.
//
// A call that waits itself, for the device, a lock, or its peer, would keep others from a
// processor that it does not use. So a turn ends by itself while others wait, when it is not because
// the processors are busy that it lasts: when as many that began after it as there are have ended, or
// none has for a while.

// The cost of a call, in units of some ten microseconds. A call that may wait takes as much room as it costs. Several
// inline calls that came together take more room, because they use a processor all the time: with two such batches for
// each processor, the next caller does not wait for long.
const (
	CallCost  = 4
	BatchRoom = 96
	MaxBatch  = 16      // inline calls of one turn, and what these cost
	UnitBytes = 8 << 10 // moved by a call cost 1

	RoomPerProcessor = 192

	// crumbs is room for single inline calls of those whose turn it is, when there is no other.
	crumbs = 16

	turnTime = 3 * time.Millisecond
)

// Turns shares the processor's time of a server out among its hosts.
type Turns struct {
	later func(func()) // calls a function after turnTime
	Soon  func() bool  // has lookAround called; no: it cannot

	mu      lockorder.Mutex[lockorder.Turns]
	free    int    // room
	clock   uint64 // what a connection could have had by now, if it had its share, in 1/tickUnit units
	order   uint64
	hosts   int // of those that wait
	waiting turnQueue
	running []*Turn
	ended   uint64 // turns
	atTick  uint64 // of these at the last one
	ticking bool
	looking bool
}

// HostTurns is the part of a host, guarded by turns.mu.
type HostTurns struct{ waiting int }

// Flow is what a connection has for its turns, guarded by turns.mu.
type Flow struct {
	Host *HostTurns
	end  uint64 // of its last turn, on the clock
}

// Turn is a turn of a flow, which may be taken again and again. One goroutine at a time takes and ends it.
type Turn struct {
	flow       *Flow
	room, cost int

	// By the clock, if it got its share and no more.
	start, end uint64
	order      uint64 // of those that end at the same time
	ready      chan struct{}

	at    int    // its place among those that run, and 1; 0: it has ended
	since uint64 // how many had ended when it began
	old   bool   // it was there at the last tick
}

// Reset makes an ended turn as good as new.
func (w *Turn) Reset() { *w = Turn{ready: w.ready} }

// tickUnit is the unit of the clock.
const tickUnit = 1 << 10

func NewTurns(room int) *Turns {
	return &Turns{
		later: func(f func()) { time.AfterFunc(turnTime, f) },
		Soon:  func() bool { return false },
		free:  room,
	}
}

// Take begins a turn of a flow if that is possible at once without overtaking a flow that waits.
func (t *Turns) Take(f *Flow, w *Turn, room, cost int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	free := t.free
	if t.crowded() {
		if _, end := t.due(f, cost); end >= t.waiting[0].end {
			return false
		}
		if room == 1 {
			free += crumbs
		}
	}
	if free < room {
		return false
	}
	t.enter(f, w, room, cost)
	t.begin(w)
	return true
}

// Wait begins a turn when it is the turn of the flow.
func (t *Turns) Wait(f *Flow, w *Turn, room, cost int) {
	t.queue(f, w, room, cost)
	lockorder.Wait[lockorder.Turn]()
	<-w.ready
}

// queue has w wait for its turn; w.ready tells when it has begun.
func (t *Turns) queue(f *Flow, w *Turn, room, cost int) {
	if w.ready == nil {
		w.ready = make(chan struct{}, 1)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if f.Host.waiting++; f.Host.waiting == 1 {
		t.hosts++
	}
	t.enter(f, w, room, cost)
	heap.Push(&t.waiting, w)
	if !t.looking {
		t.admit()
	}
	if t.crowded() && !t.ticking {
		t.ticking = true
		t.later(t.tick)
	}
}

// enter puts the time on a turn.
func (t *Turns) enter(f *Flow, w *Turn, room, cost int) {
	t.order++
	w.flow, w.room, w.cost, w.order = f, room, cost, t.order
	w.start, w.end = t.due(f, cost)
	f.end = w.end
}

// due is when the flow's next turn starts and ends, by the clock.
func (t *Turns) due(f *Flow, cost int) (start, end uint64) {
	start = max(f.end, t.clock)
	return start, start + uint64(cost*tickUnit*max(1, f.Host.waiting))
}

func (t *Turns) begin(w *Turn) {
	t.free -= w.room
	t.clock = max(t.clock+uint64(w.cost*tickUnit/max(1, t.hosts)), w.start)
	t.running = append(t.running, w)
	w.at, w.since, w.old = len(t.running), t.ended, false
}

// End ends a turn that has not ended by itself.
func (t *Turns) End(w *Turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if w.at == 0 {
		return
	}
	t.finish(w)
	if t.crowded() && !t.looking {
		if t.looking = t.Soon(); !t.looking {
			t.admit()
		}
	}
}

// LookAround gives turns to those that wait, after the scheduler has looked at the network.
func (t *Turns) LookAround() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.looking = false
	t.admit()
}

func (t *Turns) finish(w *Turn) {
	t.free += w.room
	last := t.running[len(t.running)-1]
	t.running[w.at-1], last.at = last, w.at
	t.running[len(t.running)-1] = nil
	t.running = t.running[:len(t.running)-1]
	w.at = 0
	t.ended++
}

// admit gives turns to those that wait, as far as there is room.
func (t *Turns) admit() {
	for t.crowded() && t.free >= t.waiting[0].room {
		w := heap.Pop(&t.waiting).(*Turn)
		t.begin(w)
		if w.flow.Host.waiting--; w.flow.Host.waiting == 0 {
			t.hosts--
		}
		w.ready <- struct{}{}
	}
}

// tick ends the turns of calls that wait themselves, as long as somebody waits for a turn.
func (t *Turns) tick() {
	t.mu.Lock()
	defer t.mu.Unlock()
	ended, stuck := t.ended, t.ended == t.atTick
	others := uint64(len(t.running))
	for i := len(t.running) - 1; i >= 0; i-- {
		if w := t.running[i]; w.old && (stuck || ended-w.since >= others) {
			t.finish(w)
		} else {
			w.old = true
		}
	}
	t.atTick = t.ended
	t.admit()
	if t.ticking = t.crowded(); t.ticking {
		t.later(t.tick)
	}
}

// crowded tells if somebody waits.
func (t *Turns) crowded() bool { return len(t.waiting) > 0 }

// turnQueue is a heap of turns that are waited for.
type turnQueue []*Turn

func (q turnQueue) Len() int { return len(q) }
func (q turnQueue) Less(i, k int) bool {
	return q[i].end < q[k].end || q[i].end == q[k].end && q[i].order < q[k].order
}
func (q turnQueue) Swap(i, k int) { q[i], q[k] = q[k], q[i] }
func (q *turnQueue) Push(x any)   { *q = append(*q, x.(*Turn)) }
func (q *turnQueue) Pop() any {
	last := len(*q) - 1
	w := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	return w
}

// Waiting is how many wait.
func (t *Turns) Waiting() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.waiting)
}

// Next is the flow that has the next turn, nil if none waits.
func (t *Turns) Next() *Flow {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.crowded() {
		return nil
	}
	return t.waiting[0].flow
}

// Hold is for tests: there is so much room as soon as the turns under way have ended, and no turn ends by itself any
// more.
func (t *Turns) Hold(room int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.free, t.later = room, func(func()) {}
	for _, w := range t.running {
		t.free -= w.room
	}
	t.admit()
}
