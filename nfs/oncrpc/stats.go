package oncrpc

import (
	"fmt"
	"math/bits"
	"sync/atomic"
	"time"
)

// What a server counts. The counters of calls and bytes are atomic and belong to one
// procedure or one connection each: to count takes no lock and no memory.

// Latencies are counted by powers of two: latency i is at most LatencyBound(i), and the
// last is any longer one.
const (
	LatencyBuckets = 23
	leastLatency   = 8 * time.Microsecond
)

// LatencyBound is the longest latency of bucket i, which is not the last.
func LatencyBound(i int) time.Duration { return leastLatency << i }

// latencyBucket is where a latency is counted.
func latencyBucket(d time.Duration) int {
	return min(bits.Len64(uint64(max(d-1, 0)/leastLatency)), LatencyBuckets-1)
}

// procStats counts the calls of a procedure.
type procStats struct {
	latency  [LatencyBuckets]atomic.Uint64
	time     atomic.Int64 // nanoseconds
	failed   [SystemErr + 1]atomic.Uint64
	statuses [maxStatuses]statusCount
}

// A statusCount has how many calls ended with a status. None of them has status 0 as long as nobody has taken it.
type statusCount struct{ status, n atomic.Uint64 }

// is says whether c is of a status. If it is of none yet, it is of that from now on.
func (c *statusCount) is(status uint64) bool {
	if c.status.Load() == 0 {
		c.status.CompareAndSwap(0, status)
	}
	return c.status.Load() == status
}

// maxStatuses is how many statuses of a procedure are told apart. NFS has 29.
const maxStatuses = 32

// count counts a call. status is that of the program, if the call was a success.
func (p *procStats) count(took time.Duration, accept Accept, status uint32) {
	p.latency[latencyBucket(took)].Add(1)
	p.time.Add(int64(took))
	switch {
	case accept != Success:
		p.failed[min(accept, SystemErr)].Add(1)
	case status != 0:
		for i := range p.statuses {
			if s := &p.statuses[i]; s.is(uint64(status)) {
				s.n.Add(1)
				return
			}
		}
	}
}

// ProcStats are the numbers of a procedure. A call is counted when its result is known,
// which is before its reply is sent.
type ProcStats struct {
	Program  string // its name
	Name     string
	Calls    uint64
	Errors   uint64                 // of these, however they failed
	Time     time.Duration          // that all together took, from when they were started
	Latency  [LatencyBuckets]uint64 // calls by latency
	Failed   [SystemErr + 1]uint64  // calls that were accepted and not carried out, by accept_stat
	Statuses map[uint32]uint64      // calls by status of the program, without 0
}

// numbers returns the present numbers.
func (p *procStats) numbers() (s ProcStats) {
	for i := range p.latency {
		s.Latency[i] = p.latency[i].Load()
		s.Calls += s.Latency[i]
	}
	s.Time = time.Duration(p.time.Load())
	for i := range p.failed {
		s.Failed[i] = p.failed[i].Load()
		s.Errors += s.Failed[i]
	}
	for i := range p.statuses {
		if n := p.statuses[i].n.Load(); n > 0 {
			if s.Statuses == nil {
				s.Statuses = map[uint32]uint64{}
			}
			s.Statuses[uint32(p.statuses[i].status.Load())] += n
			s.Errors += n
		}
	}
	return s
}

// ConnStats are the numbers of an open connection.
type ConnStats struct {
	ID             uint64 // of this connection and no other
	Peer           string // address and port
	Since          time.Time
	Calls          uint64
	Received, Sent uint64 // bytes
	InProgress     int    // calls
	Queued         int    // replies to be sent, in bytes, but those of calls that are in progress still
	Transport      string // what protects it: "none", "tls", or "mtls", as in exports(5)
}

// Stats are the numbers of a Server since it was made. They are not all of one moment.
type Stats struct {
	Procs []ProcStats
	Conns []ConnStats // open now

	Accepted     uint64    // connections
	RefusedConns uint64    // that were too many: not accepted, or closed to make room for another
	RefusedCalls uint64    // that are for no procedure, or with credentials that are not taken
	Handshakes   [2]uint64 // of TLS that came to their end: without and with a certificate of the client
	FailedShakes uint64    // handshakes that did not
	Received     uint64    // bytes, over all connections
	Sent         uint64

	CallMemory      int // bytes held by calls in progress and their replies: Config.ReplyBytes
	ReceivingMemory int // bytes held by large calls being received or carried out: Config.RecordBytes
}

// counters are those of a Server beside its procedures.
type counters struct {
	accepted, refusedConns, refusedCalls atomic.Uint64
	shaken                               [2]atomic.Uint64 // as Stats.Handshakes
	failedShakes                         atomic.Uint64
	received, sent                       atomic.Uint64 // of connections that ended
}

// withStats returns programs with counters for every procedure.
func withStats(programs []Program) []Program {
	all := append([]Program(nil), programs...)
	for i := range all {
		p := &all[i]
		if p.Name == "" {
			p.Name = fmt.Sprintf("%d/%d", p.Number, p.Version)
		}
		p.Procs = append([]Proc(nil), p.Procs...)
		for k := range p.Procs {
			p.Procs[k].stats = new(procStats)
		}
	}
	return all
}

// procs returns the present numbers of the procedures.
func (s *Server) procs() (all []ProcStats) {
	for i := range s.cfg.Programs {
		p := &s.cfg.Programs[i]
		for k := range p.Procs {
			if proc := &p.Procs[k]; proc.Serve != nil {
				n := proc.stats.numbers()
				n.Program, n.Name = p.Name, proc.Name
				all = append(all, n)
			}
		}
	}
	return all
}

// Procs are the numbers of the procedures.
func (p *PacketServer) Procs() []ProcStats { return p.s.procs() }

// Add counts the calls that another server has carried out among those of the same procedures.
func (st *Stats) Add(procs []ProcStats) {
	for i := range procs {
		for k := range st.Procs {
			if st.Procs[k].Program == procs[i].Program && st.Procs[k].Name == procs[i].Name {
				st.Procs[k].add(&procs[i])
			}
		}
	}
}

func (p *ProcStats) add(o *ProcStats) {
	p.Calls += o.Calls
	p.Errors += o.Errors
	p.Time += o.Time
	for i, n := range o.Latency {
		p.Latency[i] += n
	}
	for i, n := range o.Failed {
		p.Failed[i] += n
	}
	for status, n := range o.Statuses {
		if p.Statuses == nil {
			p.Statuses = map[uint32]uint64{}
		}
		p.Statuses[status] += n
	}
}

// Stats returns the present numbers.
func (s *Server) Stats() Stats {
	st := Stats{
		Accepted:        s.count.accepted.Load(),
		RefusedConns:    s.count.refusedConns.Load(),
		RefusedCalls:    s.count.refusedCalls.Load(),
		Handshakes:      [2]uint64{s.count.shaken[0].Load(), s.count.shaken[1].Load()},
		FailedShakes:    s.count.failedShakes.Load(),
		CallMemory:      s.calls.Held(),
		ReceivingMemory: s.records.Held() + s.small.Held(),
	}
	st.Procs = s.procs()
	s.mu.Lock()
	conns := make([]*conn, 0, len(s.conns))
	for c := range s.conns {
		conns = append(conns, c)
	}
	st.Received, st.Sent = s.count.received.Load(), s.count.sent.Load()
	s.mu.Unlock()
	for _, c := range conns {
		n := c.numbers()
		st.Received += n.Received
		st.Sent += n.Sent
		st.Conns = append(st.Conns, n)
	}
	return st
}

// tally is what a connection counts.
type tally struct {
	id       uint64 // of the server's connections
	since    time.Time
	calls    atomic.Uint64
	received atomic.Uint64                   // bytes
	link     *link                           // which counts those that were sent
	counted  struct{ received, sent uint64 } // of these in Server.count; guarded by Server.mu
}

// countEnded counts what a connection did that is not in the table any more. It is called when
// the connection leaves the table and when it has ended. The caller has s.mu.
func (s *Server) countEnded(c *conn) {
	received, sent := c.received.Load(), c.link.sent.Load()
	s.count.received.Add(received - c.counted.received)
	s.count.sent.Add(sent - c.counted.sent)
	c.counted.received, c.counted.sent = received, sent
}

// numbers returns the numbers of a connection.
func (c *conn) numbers() ConnStats {
	n := ConnStats{
		ID: c.id, Peer: c.call.Peer.String(), Since: c.since,
		Calls: c.calls.Load(), Received: c.received.Load(), Sent: c.link.sent.Load(),
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	n.InProgress, n.Queued, n.Transport = c.inFlight, c.queued, c.security.String()
	for _, o := range c.queue {
		n.Queued += len(o.buf.b) + lenOf(o.data) - o.inline()
	}
	return n
}
