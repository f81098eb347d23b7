package oncrpc

import (
	"io"
	"testing"
	"time"
)

// A reply has arrived when all up to its end has, whatever is under way behind it; and it counts as that while the peer
// is there.
func TestReceipt(t *testing.T) {
	const big, some = 16 << 20, 4 << 10 // more than sockets take, and little
	receipts, enter, leave := make(chan *Receipt, 1<<16), make(chan bool), make(chan bool)
	p := Program{Name: "test", Number: 77, Version: 1, Procs: []Proc{
		{Name: "INLINE", Inline: true, Serve: func(c *Call) Accept {
			if c.Receipt() != nil {
				return SystemErr
			}
			return Success
		}},
		{Name: "SMALL", Serve: func(c *Call) Accept {
			receipts <- c.Receipt()
			return Success
		}},
		{Name: "LATE", Serve: func(c *Call) Accept {
			r := c.Receipt()
			enter <- true
			<-leave
			receipts <- r
			return Success
		}},
		{Name: "BIG", Serve: func(c *Call) Accept {
			c.Reply.Data(Bytes(make([]byte, big)))
			return Success
		}},
		{Name: "SOME", Serve: func(c *Call) Accept {
			receipts <- c.Receipt()
			c.Reply.Data(Bytes(make([]byte, some)))
			return Success
		}},
	}}
	s := NewServer(Config{Programs: []Program{p}, Log: quiet, ReplyBytes: 8 * big})
	addr := listen(t, s)
	c := connect(t, addr)
	call := func(proc uint32) { c.send(mark(words(1, 0, 2, 77, 1, proc, 0, 0, 0, 0))) }
	becomes := func(what string, r *Receipt, want bool) {
		t.Helper()
		for deadline := time.Now().Add(10 * time.Second); r.Delivered() != want; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s: delivered: %v", what, !want)
			}
		}
	}
	call(0)
	if w, _ := c.receive(); w[5] != uint32(Success) {
		t.Errorf("an inline call has a receipt: %v", w)
	}
	call(1)
	first := <-receipts
	becomes("the first reply", first, true)
	call(2)
	<-enter
	call(3)
	conn := s.of(c)
	until := func(state func() bool) {
		for ok := false; !ok; {
			conn.mu.Lock()
			ok = state()
			conn.mu.Unlock()
		}
	}
	until(func() bool { return conn.blocked })
	leave <- true
	late := <-receipts
	until(func() bool { return len(conn.queue) > 0 })
	if late.Delivered() || !first.Delivered() {
		t.Errorf("while a reply is under way, delivered: %v behind it, %v before it", late.Delivered(), first.Delivered())
	}
	if first.Connection() != late.Connection() {
		t.Error("two connections")
	}
	if _, err := io.CopyN(io.Discard, c, 28+28+4+big+28); err != nil {
		t.Fatal(err)
	}
	becomes("the last reply", late, true)

	// Of what was written, the last is not read yet.
	written := func(r *Receipt) bool { return r.ends.Load() != 0 && r.ends.Load() <= r.link.sent.Load() }
	var on []*Receipt
	for blocked := false; !blocked; {
		call(4)
		r := <-receipts
		on = append(on, r)
		until(func() bool { blocked = conn.blocked; return blocked || written(r) })
	}
	onItsWay := 0
	for i, r := range on {
		if written(r) && !r.Delivered() {
			onItsWay++
		}
		if r.Delivered() && i > 0 && !on[i-1].Delivered() {
			t.Errorf("reply %d has arrived before the one before it", i)
		}
	}
	if onItsWay == 0 {
		t.Errorf("of %d replies, all that were written have arrived, but none was read", len(on))
	}
	late = on[len(on)-1]
	if _, err := io.CopyN(io.Discard, c, int64(len(on)*(28+4+some))); err != nil {
		t.Fatal(err)
	}
	becomes("the last reply of many", late, true)
	call(2)
	<-enter
	c.Close()
	becomes("the last reply, when the peer is gone, and a call of it under way", late, false)
	leave <- true
}
