package oncrpc

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

func TestLatencyBuckets(t *testing.T) {
	for d, want := range map[time.Duration]int{
		-1: 0, 0: 0, 1: 0, 8 * time.Microsecond: 0, 8*time.Microsecond + 1: 1, 16 * time.Microsecond: 1,
		16*time.Microsecond + 1:          2,
		LatencyBound(LatencyBuckets - 2): LatencyBuckets - 2, LatencyBound(LatencyBuckets-2) + 1: LatencyBuckets - 1,
		1 << 62: LatencyBuckets - 1,
	} {
		if got := latencyBucket(d); got != want {
			t.Errorf("%v in bucket %d, want %d", d, got, want)
		}
	}
	if longest := LatencyBound(LatencyBuckets - 2); longest < 10*time.Second || longest > time.Minute {
		t.Errorf("the longest latency told apart is %v", longest)
	}
}

// statuses is a program that returns the status it is sent, after it panicked for 99 and found fault with 98.
var statuses = Program{Name: "test", Number: 77, Version: 1, Procs: []Proc{
	NullProc,
	{Name: "STATUS", Inline: true, Serve: func(c *Call) Accept {
		c.Status = c.Args.Uint32()
		switch c.Status {
		case 99:
			panic("as asked")
		case 98:
			return GarbageArgs
		}
		c.Reply.Uint32(c.Status)
		return Success
	}},
	{},
}}

func TestStats(t *testing.T) {
	s := NewServer(Config{Programs: []Program{statuses, {Number: 78, Version: 2, Procs: []Proc{NullProc}}},
		Log: quiet, MaxConns: 2})
	addr := listen(t, s)
	p, q := connect(t, addr), connect(t, addr)
	sent, received := 0, 0
	call := func(b []byte) {
		m := mark(b)
		p.send(m)
		_, raw := p.receive()
		sent, received = sent+4+len(raw), received+len(m)
	}
	for _, status := range []uint32{0, 0, 5, 7, 5, 98, 99} {
		call(words(1, 0, 2, 77, 1, 1, 0, 0, 0, 0, status))
	}
	call(words(1, 0, 2, 77, 1, 0, 0, 0, 0, 0))
	call(words(1, 0, 2, 77, 1, 2, 0, 0, 0, 0))         // no procedure
	call(words(1, 0, 2, 99, 1, 0, 0, 0, 0, 0))         // no program
	call(words(1, 0, 2, 77, 1, 0, 6, 0, 0, 0))         // credentials of a kind that is not taken
	q.send(mark(words(1, 0, 2, 78, 2, 0, 0, 0, 0, 0))) // so that both are accepted
	q.receive()
	s.pass(-time.Hour) // they are in the midst of their calls
	connect(t, addr).closed("one too many")
	st := s.Stats()
	busy := func() bool {
		return slices.ContainsFunc(st.Conns, func(c ConnStats) bool { return c.Queued+c.InProgress > 0 })
	}
	for deadline := time.Now().Add(10 * time.Second); (st.Sent < uint64(sent)+28 || busy()) && time.Now().Before(deadline); st = s.Stats() {
		time.Sleep(time.Millisecond) // a reply counts as sent a moment after the peer has it
	}
	if st.Accepted != 2 || st.RefusedConns != 1 || st.RefusedCalls != 3 {
		t.Errorf("%d connections accepted, %d refused, %d calls refused", st.Accepted, st.RefusedConns, st.RefusedCalls)
	}
	if len(st.Conns) != 2 || st.Sent != uint64(sent)+28 || st.Received != uint64(received)+44 {
		t.Errorf("%d connections, %d bytes sent, %d received; %d, %d", len(st.Conns), st.Sent, st.Received, sent, received)
	}
	for _, c := range st.Conns {
		if mine := c.Peer == p.LocalAddr().String(); mine != (c.Calls == 11) || c.ID == 0 || c.InProgress != 0 || c.Queued != 0 || c.Since.IsZero() {
			t.Errorf("%+v", c)
		}
	}
	var names []string
	for _, x := range st.Procs {
		names = append(names, x.Program+" "+x.Name)
		n := uint64(0)
		for _, k := range x.Latency {
			n += k
		}
		if n != x.Calls {
			t.Errorf("%d calls, %d latencies", x.Calls, n)
		}
		if x.Name == "NULL" && x.Errors != 0 {
			t.Errorf("NULL failed %d times, with the status of others: %v", x.Errors, x.Statuses)
		}
		if x.Name == "STATUS" && (x.Calls != 7 || x.Errors != 5 || x.Time <= 0 || fmt.Sprint(x.Statuses) != "map[5:2 7:1]" || x.Failed[GarbageArgs] != 1 || x.Failed[SystemErr] != 1) {
			t.Errorf("%+v", x)
		}
	}
	if fmt.Sprint(names) != "[test NULL test STATUS 78/2 NULL]" {
		t.Error(names)
	}

	s.pass(2 * time.Hour)
	s.idle(p)
	s.idle(q)
	connect(t, addr) // in place of p; what that did still counts
	p.closed("the longest idle")
	for s.Stats().Accepted != 3 {
		time.Sleep(time.Millisecond) // it is counted after it was made room for
	}
	for range 100 {
		if end := s.Stats(); end.Sent != st.Sent || end.Received != st.Received || end.Accepted != 3 || end.RefusedConns != 2 {
			t.Fatalf("%d bytes sent, %d received, %d connections accepted, %d refused, after one made room",
				end.Sent, end.Received, end.Accepted, end.RefusedConns)
		}
		time.Sleep(100 * time.Microsecond)
	}
	q.Close()
	for len(s.Stats().Conns) > 1 {
		time.Sleep(time.Millisecond)
	}
	if end := s.Stats(); end.Sent != st.Sent || end.Received != st.Received {
		t.Errorf("%d bytes sent, %d received, after the end", end.Sent, end.Received)
	}
}

// More statuses than are told apart, from many goroutines, lose no call.
func TestStatusesAtOnce(t *testing.T) {
	var p procStats
	done := make(chan bool)
	for g := range 4 {
		go func() {
			for i := range uint32(1000) {
				p.count(time.Duration(g), Success, i%(2*maxStatuses))
			}
			done <- true
		}()
	}
	for range 4 {
		<-done
	}
	n := p.numbers()
	if n.Calls != 4000 || len(n.Statuses) != maxStatuses {
		t.Errorf("%d calls, %d statuses", n.Calls, len(n.Statuses))
	}
	for s, k := range n.Statuses {
		if k < 60 || k > 64 {
			t.Errorf("status %d: %d", s, k)
		}
	}
}

// To count takes no memory.
func TestCountAllocates(t *testing.T) {
	var p procStats
	if n := testing.AllocsPerRun(100, func() { p.count(time.Millisecond, Success, 2) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
