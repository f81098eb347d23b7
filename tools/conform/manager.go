package conform

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// manager is this program as a client machine: the lock manager that the server calls back, and the port mapper by
// which it finds that. Both are on one port, over TCP and UDP, and nothing is registered anywhere.
type manager struct {
	events chan event
	port   uint32
	answer func(e event) lockStatus // to GRANTED
	// result makes the call that answers a GRANTED_MSG.
	result func(e event, st lockStatus)

	mu     sync.Mutex
	closed bool
	open   []io.Closer
	busy   sync.WaitGroup
}

// event is a call of the server.
type event struct {
	vers, proc uint32
	cookie     string
	status     lockStatus // of a result
	held       *holder    // of a result of TEST that was denied
	exclusive  bool       // of GRANTED, as what follows
	file       fh
	svid       uint32
	oh         string
	span
}

// clientMachine has the check's client be called back, or skips it. It takes what is granted.
func (t *T) clientMachine() {
	t.clientThat(func(event) lockStatus { return lockGranted })
}

// clientThat is clientMachine, with another answer to GRANTED.
func (t *T) clientThat(answer func(event) lockStatus) {
	local, isTCP := t.nlmConn().nc.LocalAddr().(*net.TCPAddr)
	if !isTCP || local.IP.To4() == nil {
		t.skip("calls back are listened for at IPv4 addresses alone")
	}
	port := t.s.cfg.CallbackPort
	if port == 0 {
		port = 111
	}
	m := &manager{events: make(chan event, 64), port: uint32(port), answer: answer, result: t.answerMessage}
	at := net.JoinHostPort(local.IP.String(), fmt.Sprint(port))
	stream, err := net.Listen("tcp", at)
	if err != nil {
		t.skip("the server looks for its clients by their port mapper, and this program cannot be one: %v", err)
	}
	packets, err := net.ListenPacket("udp", at)
	if err != nil {
		stream.Close()
		t.skip("the server looks for its clients by their port mapper, and this program cannot be one: %v", err)
	}
	m.open = []io.Closer{stream, packets}
	m.busy.Go(func() { m.accept(stream) })
	m.busy.Go(func() { m.receive(packets) })
	t.locks.manager = m
}

// answerMessage makes the call GRANTED_RES.
func (t *T) answerMessage(e event, st lockStatus) {
	addr, none := t.s.lookFor(nlmProg, nlmVers, t.s.cfg.LockAddr)
	if none == "" {
		a := newArgs().opaque("cookie", e.cookie).u32("stat", uint32(st))
		t.s.cfg.ask(addr, newHeader(nlmProg, e.vers, procGrantedRes, super), a.b)
	}
}

// close ends all that the manager has open, and returns when nothing runs any more.
func (m *manager) close() {
	m.mu.Lock()
	m.closed = true
	for _, c := range m.open {
		c.Close()
	}
	m.mu.Unlock()
	m.busy.Wait()
}

func (m *manager) accept(l net.Listener) {
	for {
		nc, err := l.Accept()
		if err != nil {
			return
		}
		m.mu.Lock()
		if m.closed {
			nc.Close()
		}
		m.open = append(m.open, nc)
		m.mu.Unlock()
		m.busy.Go(func() {
			defer nc.Close()
			c := &conn{nc: nc, timeout: time.Minute}
			for {
				rec, err := c.recv()
				if err != nil {
					return
				}
				reply, after := m.serve(rec)
				if reply != nil && c.send(mark(reply)) != nil {
					return
				}
				after()
			}
		})
	}
}

func (m *manager) receive(pc net.PacketConn) {
	b := make([]byte, 64<<10)
	for {
		n, from, err := pc.ReadFrom(b)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		reply, after := m.serve(bytes.Clone(b[:n]))
		if reply != nil {
			pc.WriteTo(reply, from)
		}
		after()
	}
}

// serve answers a call; nil: not at all. after is to be done when the reply is on its way.
func (m *manager) serve(rec []byte) (reply []byte, after func()) {
	after = func() {}
	r := &reader{b: rec}
	xid, kind, rpc := r.u32(), r.u32(), r.u32()
	prog, vers, proc := r.u32(), r.u32(), r.u32()
	for range 2 { // credentials and verifier
		r.u32()
		r.opaque(400)
	}
	if r.err != "" || kind != msgCall || rpc != 2 {
		return nil, after
	}
	a := newArgs()
	stat := uint32(success)
	switch {
	case prog != portmapProg && prog != nlmProg:
		stat = progUnavail
	case prog == portmapProg && vers != portmapVers:
		stat = progMismatch
		a.u32("low", portmapVers).u32("high", portmapVers)
	case proc == procNull:
	case prog == portmapProg && proc == procGetport:
		a.u32("port", m.getport(r))
	case prog == nlmProg && proc <= procGrantedRes:
		stat, after = m.called(vers, proc, r, a)
	default:
		stat = procUnavail
	}
	b := binary.BigEndian.AppendUint32(nil, xid)
	for _, w := range []uint32{msgReply, accepted, authNone, 0, stat} {
		b = binary.BigEndian.AppendUint32(b, w)
	}
	return append(b, a.b...), after
}

// getport is the port of a program: NLM is here, and nothing else is.
func (m *manager) getport(r *reader) uint32 {
	if r.u32() == nlmProg {
		return m.port
	}
	return 0
}

// called takes a call of NLM, and appends its result.
func (m *manager) called(vers, proc uint32, r *reader, result *args) (stat uint32, after func()) {
	e := event{vers: vers, proc: proc, cookie: r.opaque(1024)}
	switch {
	case proc == procLockGranted || proc == procGrantedMsg:
		e.exclusive = r.bool()
		r.opaque(1024) // its own name for this machine
		e.file, e.oh, e.svid = fh(r.opaque(1024)), r.opaque(1024), r.u32()
		if vers >= 4 {
			e.span = span{r.u64(), r.u64()}
		} else {
			e.span = span{uint64(r.u32()), uint64(r.u32())}
		}
	case proc >= procLockTestRes:
		e.status = lockStatus(r.u32())
		if proc == procLockTestRes {
			e.held = r.testHolder(vers, e.status)
		}
	}
	if r.end(); r.err != "" {
		return garbageArgs, func() {}
	}
	after = func() {
		select {
		case m.events <- e:
		default: // nobody waits for that many
		}
	}
	switch st := m.answer(e); proc {
	case procLockGranted:
		result.opaque("cookie", e.cookie).u32("stat", uint32(st))
	case procGrantedMsg:
		told := after
		after = func() { m.busy.Go(func() { m.result(e, st); told() }) }
	}
	return success, after
}

// next is the next call of the server that match says yes to, within the time of a reply.
func (t *T) next(what string, match func(event) bool) event {
	m := t.locks.manager
	late := time.After(t.s.cfg.Timeout)
	for {
		select {
		case e := <-m.events:
			if match(e) {
				t.note("the server calls %s version %d svid=%d offset=%d len=%d status=%v",
					nlmNames[e.proc], e.vers, e.svid, e.offset, e.length, e.status)
				return e
			}
		case <-late:
			t.wrong(what, fmt.Sprintf("no call within %v", t.s.cfg.Timeout))
		}
	}
}

// granted waits for the call that an owner has a lock that it waited for, and checks what it says.
func (o *owner) granted(s span, exclusive bool) {
	e := o.t.next("GRANTED to "+o.oh, func(e event) bool {
		return (e.proc == procLockGranted || e.proc == procGrantedMsg) && e.file == o.file && e.svid == o.svid
	})
	same(o.t, "version of the call", e.vers, o.vers)
	same(o.t, "what is granted", e.span, s)
	same(o.t, "exclusive", e.exclusive, exclusive)
	o.t.text("owner", e.oh, o.oh)
}
