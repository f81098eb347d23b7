package oncrpc

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

// What a call costs is in units of some ten microseconds. The room that it takes is as much, if it
// may wait; several inline calls that came together take more, as they use a processor all the time:
// with two of them for each, whoever comes next does not wait for long.
const (
	callCost  = 4
	batchRoom = 96
	maxBatch  = 16      // inline calls of one turn, and what these cost
	unitBytes = 8 << 10 // moved by a call cost 1

	roomPerProcessor = 192

	// crumbs is room for single inline calls of those whose turn it is, when there is no other.
	crumbs = 16

	turnTime = 3 * time.Millisecond
)

// turns are those of a server.
type turns struct {
	later func(func()) // calls a function after turnTime
	soon  func() bool  // has lookAround called; no: it cannot

	mu      lockorder.Mutex[lockorder.Turns]
	free    int    // room
	clock   uint64 // what a connection could have had by now, if it had its share, in 1/tickUnit units
	order   uint64
	hosts   int // of those that wait
	waiting turnQueue
	running []*turn
	ended   uint64 // turns
	atTick  uint64 // of these at the last one
	ticking bool
	looking bool
}

// queued is a part of a host, guarded by turns.mu.
type queued struct{ waiting int }

// flow is what a connection has for its turns, guarded by turns.mu.
type flow struct {
	host *queued
	end  uint64 // of its last turn, on the clock
}

// turn is one that may be taken, again and again. Whoever takes and ends it is one goroutine
// at a time.
type turn struct {
	flow       *flow
	room, cost int

	// By the clock, if it got its share and no more.
	start, end uint64
	order      uint64 // of those that end at the same time
	ready      chan struct{}

	at    int    // its place among those that run, and 1; 0: it has ended
	since uint64 // how many had ended when it began
	old   bool   // it was there at the last tick
}

// tickUnit is that of the clock.
const tickUnit = 1 << 10

func newTurns(room int) *turns {
	return &turns{
		later: func(f func()) { time.AfterFunc(turnTime, f) },
		soon:  func() bool { return false },
		free:  room,
	}
}

// take begins a turn of a flow, if that is possible at once, and overtakes nobody.
func (t *turns) take(f *flow, w *turn, room, cost int) bool {
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

// wait begins a turn when it is the flow's.
func (t *turns) wait(f *flow, w *turn, room, cost int) {
	t.queue(f, w, room, cost)
	lockorder.Wait[lockorder.Turn]()
	<-w.ready
}

// queue has w wait for its turn; w.ready tells when it has begun.
func (t *turns) queue(f *flow, w *turn, room, cost int) {
	if w.ready == nil {
		w.ready = make(chan struct{}, 1)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if f.host.waiting++; f.host.waiting == 1 {
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
func (t *turns) enter(f *flow, w *turn, room, cost int) {
	t.order++
	w.flow, w.room, w.cost, w.order = f, room, cost, t.order
	w.start, w.end = t.due(f, cost)
	f.end = w.end
}

// due is when the flow's next turn starts and ends, by the clock.
func (t *turns) due(f *flow, cost int) (start, end uint64) {
	start = max(f.end, t.clock)
	return start, start + uint64(cost*tickUnit*max(1, f.host.waiting))
}

func (t *turns) begin(w *turn) {
	t.free -= w.room
	t.clock = max(t.clock+uint64(w.cost*tickUnit/max(1, t.hosts)), w.start)
	t.running = append(t.running, w)
	w.at, w.since, w.old = len(t.running), t.ended, false
}

// end ends a turn, if it has not ended by itself.
func (t *turns) end(w *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if w.at == 0 {
		return
	}
	t.finish(w)
	if t.crowded() && !t.looking {
		if t.looking = t.soon(); !t.looking {
			t.admit()
		}
	}
}

// lookAround gives turns to those that wait, after the scheduler has looked at the network.
func (t *turns) lookAround() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.looking = false
	t.admit()
}

func (t *turns) finish(w *turn) {
	t.free += w.room
	last := t.running[len(t.running)-1]
	t.running[w.at-1], last.at = last, w.at
	t.running[len(t.running)-1] = nil
	t.running = t.running[:len(t.running)-1]
	w.at = 0
	t.ended++
}

// admit gives turns to those that wait, as far as there is room.
func (t *turns) admit() {
	for t.crowded() && t.free >= t.waiting[0].room {
		w := heap.Pop(&t.waiting).(*turn)
		t.begin(w)
		if w.flow.host.waiting--; w.flow.host.waiting == 0 {
			t.hosts--
		}
		w.ready <- struct{}{}
	}
}

// tick ends the turns of calls that wait themselves, as long as somebody waits for a turn.
func (t *turns) tick() {
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
func (t *turns) crowded() bool { return len(t.waiting) > 0 }

// turnQueue is a heap of turns that are waited for.
type turnQueue []*turn

func (q turnQueue) Len() int { return len(q) }
func (q turnQueue) Less(i, k int) bool {
	return q[i].end < q[k].end || q[i].end == q[k].end && q[i].order < q[k].order
}
func (q turnQueue) Swap(i, k int) { q[i], q[k] = q[k], q[i] }
func (q *turnQueue) Push(x any)   { *q = append(*q, x.(*turn)) }
func (q *turnQueue) Pop() any {
	last := len(*q) - 1
	w := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	return w
}

func (t *turns) someWait() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.crowded()
}
