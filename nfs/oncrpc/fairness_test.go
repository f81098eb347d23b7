package oncrpc

import (
	"io"
	"net"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"tansy/nfs/fair"
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
	l.length(1 + fair.MostChanges)
	other := connectFrom(t, addr, 3)
	for i := range calls {
		other.send(call(1))
		<-came
		if i == 0 {
			s.changes.Begin(&hostAt(s, 3).changes, nil) // as for one that is always there, however long these take
			l.leave()
		}
		other.receive()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if ahead[0] > 1+fair.MostChanges {
		t.Errorf("%d calls were ahead of the first one", ahead[0])
	}
	if most := slices.Max(ahead[1:]); most > fair.FewChanges {
		t.Errorf("%d calls were ahead of a later one, want at most %d: %v", most, fair.FewChanges, ahead)
	}
}

// hostAt is the host with address 127.0.0.n.
func hostAt(s *Server, n byte) *host {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hosts[hostOf(&net.TCPAddr{IP: net.IPv4(127, 0, 0, n)})]
}

// TestTurnWhileSending: a call may cost more than there is room for. Who sends its reply has a turn, but not
// while the peer does not take it: another call goes on.
func TestTurnWhileSending(t *testing.T) {
	s, addr := patient(t, Config{})
	s.turns.Hold(fair.RoomPerProcessor)
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
	s.turns.Hold(fair.BatchRoom)
	addr := listen(t, s)
	waiting := func(n int) {
		for s.turns.Waiting() != n {
			runtime.Gosched()
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
	if n := <-before; n > 2*fair.BatchRoom {
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
	s.turns.Hold(0)
	waiting := func(n int) {
		for s.turns.Waiting() != n {
			runtime.Gosched()
		}
	}
	const crowd = 3
	for i := range crowd {
		connectFrom(t, addr, 1).send(readCall(1, 256<<10))
		waiting(i + 1)
	}
	known.send(readCall(1, 256<<10))
	waiting(crowd + 1)
	if s.turns.Next() != &s.of(known).flow {
		t.Error("data for those of whom nothing is known comes first")
	}
	s.turns.Hold(1 << 20)
	known.receive()
}
