package nlm

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"tansy/nfs/callout"
	"tansy/nfs/exports"
	"tansy/nfs/nfs3"
	"tansy/nfs/oncrpc"
	"tansy/nfs/reclaim"
)

// What happens to locks when the server starts again: see package reclaim. Here the hosts are told (NOTIFY of NSM), and
// calls for locks are admitted.

// noticing bounds what is under way to tell hosts that the server has started.
var noticing = callout.Limits{AtOnce: 64, PerHost: 1, Queued: 64, Hosts: 1 << 16, Time: 10 * time.Second}

// Hosts that do not answer are told so often, with at most lastPause between: for a quarter of an hour.
const (
	notices   = 20
	lastPause = time.Minute
)

// openKept reads what is kept of hosts, and makes the state number of this server durable.
func (s *Service) openKept(cfg Config) {
	s.kept = map[[8]byte]*reclaim.Volume{}
	last := uint32(0)
	for id, store := range cfg.Kept {
		v, err := reclaim.Open(reclaim.Config{
			Store: store, Grace: cfg.Grace, Hosts: cfg.Limits.Hosts, Holding: s.table.Addresses, Log: s.log,
		})
		if err != nil {
			s.log.Error("nobody gets locks on a volume, as it cannot be read which clients had some", unread(err)...)
		} else {
			last = max(last, v.State())
		}
		s.kept[id] = v
	}
	s.state = nextState(last)
	for _, v := range s.kept {
		if v == nil {
			continue
		}
		if err := v.Next(s.state); err != nil {
			s.log.Warn("clients may not believe that this server has started, as the number of its start is not durable",
				"state", s.state, "err", err)
		}
	}
}

// unread are the attributes of a message that it cannot be read which clients had locks.
func unread(err error) []any {
	if errors.Is(err, reclaim.ErrNote) {
		return []any{"err", err, "advice", "stop the server; tansy repair takes it away, and nobody can reclaim locks then"}
	}
	return []any{"err", err}
}

// nextState is the state number after another, which is odd: those of machines that are down are even (X/Open C702).
func nextState(last uint32) uint32 { return (last + 1) | 1 }

// Start begins the time in which clients reclaim locks, and tells those that had any. Nothing waits for them. It is
// called when clients can be answered, and does nothing when called again.
func (s *Service) Start() {
	s.started.Do(func() {
		told := map[reclaim.Host]bool{}
		for _, v := range s.kept {
			if v == nil {
				continue
			}
			for _, h := range v.Start() {
				if !told[h] {
					told[h] = true
					s.tellStart(h, s.notify, notices)
				}
			}
		}
		if len(told) > 0 {
			s.log.Info("clients that had locks are told that the server has started", "clients", len(told), "state", s.state)
		}
	})
}

// tellStart tells a host that this server has started, so many times, with a time between.
func (s *Service) tellStart(h reclaim.Host, pause time.Duration, left int) {
	s.notices.Do(h.Addr, func(ctx context.Context) {
		err := s.sayStart(ctx, h)
		switch {
		case err == nil:
			s.log.Debug("a client that had locks knows that the server has started", "client", h.Addr)
		case ctx.Err() == context.Canceled:
		case left > 1:
			time.AfterFunc(pause, func() { s.tellStart(h, min(2*pause, lastPause), left-1) })
		default:
			s.log.Warn("a client that had locks does not answer that it knows that the server has started",
				"client", h.Addr, "err", err)
		}
	})
}

// sayStart makes the calls NOTIFY: for each name that the host may know this server by. The first has to be answered:
// for a name that it does not know, a host may ask other machines, in vain and for long.
func (s *Service) sayStart(ctx context.Context, h reclaim.Host) error {
	b := back{at: h.Addr, version: StatusVersion}
	var names []string
	if h.Local.IsValid() {
		b.local = fromHere(h.Local)
		names = append(names, h.Local.String())
	}
	if s.ownName != "" {
		names = append(names, s.ownName)
	}
	c, err := s.connect(ctx, b, StatusProgram, "udp", "tcp")
	if err != nil {
		return err
	}
	defer c.Close()
	for i, name := range names {
		_, err := c.Call(StatusProgram, StatusVersion, StatusNotify, func(e *oncrpc.Encoder) {
			e.Opaque([]byte(name))
			e.Uint32(s.state)
		})
		if err != nil && i == 0 {
			return fmt.Errorf("NOTIFY: %w", err)
		}
	}
	return nil
}

// fromHere is an address that calls may come from, or nil if it is not this machine's any more: any one then.
func fromHere(a netip.Addr) net.IP {
	pc, err := net.ListenPacket("udp", netip.AddrPortFrom(a, 0).String())
	if err != nil {
		return nil
	}
	pc.Close()
	return a.AsSlice()
}

// admit decides whether the caller may have locks of a file now. If so, release has to be called when the table knows
// of them.
func (s *Service) admit(c *oncrpc.Call, f nfs3.File, again bool) (release func(), status uint32) {
	v, kept := s.kept[f.Volume]
	switch {
	case !kept && again:
		return nil, Denied
	case !kept:
		return func() {}, Granted
	case v == nil:
		return nil, DeniedRoom
	}
	at, _ := netip.AddrFromSlice(local(c))
	release, answer := v.Admit(reclaim.Host{Addr: exports.Address(c.Peer), Local: at.Unmap()}, again)
	return release, admissions[answer]
}

// admissions are the statuses of answers. A lock that cannot be reclaimed is denied, and not for the grace period:
// to ask again does not help.
var admissions = map[reclaim.Answer]uint32{
	reclaim.Admitted: Granted, reclaim.InGrace: DeniedGrace, reclaim.NotYours: Denied, reclaim.NoRoom: DeniedRoom,
}
