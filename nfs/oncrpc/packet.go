package oncrpc

import (
	"errors"
	"net"
	"sync"
)

// Sizes of datagrams, in bytes. A reply is one packet of an Ethernet, so that nobody can have a
// victim, whose address they give as their own, sent much more than they send themselves.
const (
	maxPacketCall  = 8 << 10
	maxPacketReply = 1400
)

// packetWorkers is how many calls of one PacketServer are carried out at a time.
const packetWorkers = 8

// PacketServer answers calls in datagrams, one call in each (RFC 5531, section 8). It is for procedures with small
// results: a larger result is answered with SYSTEM_ERR, and procedures with results of any size (Proc.Stream) are not
// served. Calls beyond packetWorkers wait in the socket, or are lost, as datagrams may be.
type PacketServer struct {
	s *Server // for its programs and its log

	mu     sync.Mutex
	closed bool
	conns  map[net.PacketConn]struct{}
}

// NewPacketServer makes a server that listens nowhere yet. Of the configuration only
// Programs, Log and MayReply matter.
func NewPacketServer(cfg Config) *PacketServer {
	return &PacketServer{s: NewServer(cfg), conns: map[net.PacketConn]struct{}{}}
}

// Serve answers on pc until Stop, when it returns ErrClosed, or until pc fails. It closes pc,
// and returns when no call is in progress any more.
func (p *PacketServer) Serve(pc net.PacketConn) error {
	defer pc.Close()
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return ErrClosed
	}
	p.conns[pc] = struct{}{}
	p.mu.Unlock()
	failed := make(chan error, packetWorkers)
	for range packetWorkers {
		go func() { failed <- p.loop(pc) }()
	}
	err := <-failed
	pc.Close()
	for range packetWorkers - 1 {
		<-failed
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, pc)
	if p.closed {
		return ErrClosed
	}
	return err
}

// Stop closes all sockets. Calls in progress come to their end, unanswered.
func (p *PacketServer) Stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for pc := range p.conns {
		pc.Close()
	}
}

// maxPacketErrors is how many errors one after the other mean that a socket is of no use.
const maxPacketErrors = 100

// loop answers one call after the other. Some systems tell of one peer that cannot be
// reached as an error of the socket, which goes on to work.
func (p *PacketServer) loop(pc net.PacketConn) error {
	in, out := make([]byte, maxPacketCall+1), make([]byte, 0, maxPacketReply)
	for errs := 0; ; {
		n, peer, err := pc.ReadFrom(in)
		if err != nil {
			if errs++; errs > maxPacketErrors || errors.Is(err, net.ErrClosed) {
				return err
			}
			continue
		}
		errs = 0
		if n > maxPacketCall {
			continue
		}
		if reply := p.answer(in[:n], peer, out[:0]); reply != nil && p.s.mayReply() {
			pc.WriteTo(reply, peer) // whoever does not get it asks again
		}
	}
}

// answer returns the reply to a datagram, in buf if that is large enough, or nil if it is no call.
func (p *PacketServer) answer(packet []byte, peer net.Addr, buf []byte) []byte {
	d := NewDecoder(packet)
	h, fault := parseHeader(&d)
	c := Call{Reply: NewEncoder(buf), Peer: peer, Cred: new(Cred)}
	e := &c.Reply
	decline := func(stat Accept, words ...uint32) {
		e.Truncate(0)
		beginReply(e, h.xid, stat)
		for _, w := range words {
			e.Uint32(w)
		}
	}
	const mark = 4 // of a record, which a datagram does not have
	switch fault {
	case headerOK:
	case headerAlien:
		return nil
	case headerMismatch:
		refuse(e, h.xid, rejectMismatch, rpcVersion, rpcVersion)
		return e.b[mark:]
	case headerCred:
		refuse(e, h.xid, rejectAuth, uint32(AuthBadCred))
		return e.b[mark:]
	case headerVerf:
		refuse(e, h.xid, rejectAuth, uint32(AuthBadVerf))
		return e.b[mark:]
	default:
		decline(GarbageArgs)
		return e.b[mark:]
	}
	if stat := parseCred(h.flavor, h.cred, c.Cred); stat != AuthOK {
		refuse(e, h.xid, rejectAuth, uint32(stat))
		return e.b[mark:]
	}
	proc, accept, versions := target(p.s.cfg.Programs, &h)
	if accept == Success && proc.Stream {
		accept = ProcUnavail
	}
	switch accept {
	case Success:
		c.Args = d
		execute(p.s, proc, &c, h.xid)
		whole := e.Whole()
		e.Truncate(0)
		if len(whole)-mark <= maxPacketReply {
			return whole[mark:]
		}
		decline(SystemErr)
	case ProgMismatch:
		decline(accept, versions[0], versions[1])
	default:
		decline(accept)
	}
	return e.b[mark:]
}
