// Package oncrpc serves remote procedure calls (RFC 5531) over TCP, and small ones over UDP (PacketServer).
//
// A Server holds Programs, which are tables of procedures. Each connection has a goroutine that cuts the stream into
// records (recordReader) and the records into calls. It runs cheap procedures (Proc.Inline) itself, and answers all
// calls that came in one packet with one write. Other procedures run on goroutines of their own. So many calls of one
// connection are in progress at a time, and they are answered in the order in which they finish. A call that comes
// alone, or one of a procedure that is mostly brief (Proc.Brief), runs without a goroutine of its own (lone.go).
//
// Nothing that a peer sends makes the server fail, and no peer keeps it from the others. Limits bound the connections
// of all peers and of each (hosts.go), the calls in progress, and the memory. Over all connections, large records count
// until they are carried out, and calls with their results count until the peer has taken these. Package fair shares
// that memory out, and pace.go judges the pace of a peer. Each connection has a small receive buffer besides, and the
// replies of inline calls.
//
// A connection that is over its share is not read until it is below it. While a peer does not take what is being
// written to it, none of its calls is started. Large arguments lie in the receive buffer, which is not used again
// before the procedure has returned; small ones are copied.
package oncrpc

import "net"

// Program is one version of a set of procedures.
type Program struct {
	Name            string // in statistics; "NUMBER/VERSION" if it is empty
	Number, Version uint32
	Procs           []Proc // by number; one without Serve is not available
}

// Proc is a procedure.
type Proc struct {
	Name string

	// Inline procedures mostly take microseconds. The goroutine of the connection
	// runs them, and meanwhile reads nothing. When they do wait, say for a device
	// because what they read is not cached, it runs them like all others for a while.
	Inline bool

	// Brief procedures mostly take microseconds, too, but their results take memory (Weight). The goroutine of the
	// connection runs them, unless such calls have lately taken long.
	Brief bool

	// Changes procedures change something, or wait until that is durable. Those of one host do not keep up
	// those of others (fair.Changes). None of them is Inline.
	Changes bool

	// Serve decodes c.Args and encodes the result into c.Reply. Anything but
	// Success discards what was encoded. It may be called concurrently and must
	// not keep c or anything that c.Args returned.
	Serve func(c *Call) Accept

	// Stream procedures have results that grow with what the server knows. They are served over connections alone: over
	// UDP, where a sender's address can be anybody's, they would send a victim many times what they were sent.
	Stream bool

	// Weight, if not nil, estimates the memory in bytes that the result will
	// take, for results of more than a few KiB. It sees the first 2 KiB of the arguments,
	// and so does Serve.
	Weight func(args Decoder) int

	// Partial procedures may answer with less than is asked for; they keep to Call.Limit.
	Partial bool

	stats *procStats
}

// Call is one call in progress.
type Call struct {
	Args  Decoder
	Reply Encoder
	Cred  *Cred // shared between calls: not to be changed
	Peer  net.Addr
	Local net.Addr // that the peer called; nil for a packet
	XID   uint32   // transaction number

	// Security is what protects the connection; nil: nothing does. It is shared between calls: not to be changed.
	Security *Security

	// Status is for Serve to tell a status that is no success, for statistics.
	Status uint32

	// Deny, if Serve sets it to something else than AuthOK, refuses the call: all that was encoded is discarded, and the
	// caller learns this reason (RFC 5531, section 9).
	Deny AuthStat

	// Limit is how many bytes the result may carry, if it is not 0: memory is scarce,
	// and the peer slow or not known. Only procedures that are Partial have one.
	Limit int

	// Scratch is memory for Serve, whose content means nothing.
	Scratch [64]byte

	link    *link    // the connection; nil for a packet or an inline call
	receipt *Receipt // nil: nobody has asked for it
}

// NullProc is procedure 0 of every program.
var NullProc = Proc{Name: "NULL", Inline: true, Serve: func(*Call) Accept { return Success }}

// target finds the procedure a header asks for.
func target(programs []Program, h *header) (*Proc, Accept, [2]uint32) {
	var low, high uint32
	known := false
	for i := range programs {
		p := &programs[i]
		if p.Number != h.prog {
			continue
		}
		if p.Version != h.vers {
			if !known || p.Version < low {
				low = p.Version
			}
			if !known || p.Version > high {
				high = p.Version
			}
			known = true
			continue
		}
		if uint64(h.proc) >= uint64(len(p.Procs)) || p.Procs[h.proc].Serve == nil {
			return nil, ProcUnavail, [2]uint32{}
		}
		return &p.Procs[h.proc], Success, [2]uint32{}
	}
	if known {
		return nil, ProgMismatch, [2]uint32{low, high}
	}
	return nil, ProgUnavail, [2]uint32{}
}
