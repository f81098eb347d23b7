package nlm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"

	"tansy/nfs/advisory"
	"tansy/nfs/callout"
	"tansy/nfs/exports"
	"tansy/nfs/oncrpc"
	"tansy/nfs/portmap"
)

// tries is how often a client is told that it has a lock. One that was told and did not answer may have it, and keeps
// it: it asks again by itself if it waits, and says so when it does not want it, or has started again.
const tries = 6

// callTime is how long one connection, or one call, may take.
const callTime = 5 * time.Second

// back is where a client is called back.
type back struct {
	at      netip.Addr
	local   net.IP // the address that it called, which it expects calls from; nil: any
	version uint32
}

func backTo(c *oncrpc.Call, version uint32) back {
	return back{exports.Address(c.Peer), local(c), version}
}

// grant is a lock that a client waits for, as it asked for it.
type grant struct {
	back
	exclusive bool
	lock      lock
}

func newGrant(c *oncrpc.Call, version uint32, a *lockArgs) *grant {
	l := a.lock
	l.caller, l.handle, l.owner = bytes.Clone(l.caller), bytes.Clone(l.handle), bytes.Clone(l.owner)
	return &grant{backTo(c, version), a.exclusive, l}
}

// offer tells a client, or who is on this machine, that it has a lock that it waited for.
func (s *Service) offer(o advisory.Offer) {
	if w, here := o.Data.(*localWait); here {
		w.offered(o)
		return
	}
	s.tell(o, s.retry, tries, false)
}

// tell is offer, so many times, with a time between. told says that the client may know of it.
func (s *Service) tell(o advisory.Offer, pause time.Duration, left int, told bool) {
	g := o.Data.(*grant)
	queued := s.calls.Do(g.at, func(ctx context.Context) {
		if !s.table.Stands(o) {
			return // it has asked meanwhile, or does not want it any more
		}
		taken, sent, err := s.grant(ctx, g)
		told = told || sent
		switch {
		case err == nil && taken:
			s.log.Debug("a client takes a lock that it waited for", "client", g.at, "host", string(g.lock.caller))
			s.table.Accept(o)
		case err == nil:
			s.table.Refuse(o)
		case left > 1 && ctx.Err() != context.Canceled:
			time.AfterFunc(pause, func() { s.tell(o, 2*pause, left-1, told) })
		case !told:
			s.log.Warn("a client waits for a lock and cannot be called", "client", g.at, "err", err)
			s.table.Refuse(o)
		default:
			s.log.Warn("a client does not answer whether it takes a lock; it is held for it", "client", g.at, "err", err)
		}
	})
	if !queued && !told {
		s.table.Refuse(o)
	}
}

// grant makes the call GRANTED. taken says that the client takes the lock. With an error, sent says that the client may
// have got the call.
func (s *Service) grant(ctx context.Context, g *grant) (taken, sent bool, err error) {
	c, err := s.connect(ctx, g.back, Program, "tcp", "udp")
	if err != nil {
		return false, false, err
	}
	defer c.Close()
	cookie := []byte{0, 0, 0, 0}
	d, err := c.Call(Program, g.version, ProcGranted, func(e *oncrpc.Encoder) {
		e.Opaque(cookie)
		e.Bool(g.exclusive)
		g.lock.put(e, g.version)
	})
	if err != nil {
		return false, !errors.Is(err, syscall.ECONNREFUSED), err
	}
	d.Opaque(maxObject)
	status := d.Uint32()
	if !d.Ok() {
		return false, true, callout.ErrReply
	}
	if status == DeniedGrace { // it has just started, and does not know
		return false, true, errors.New("the client is in its grace period")
	}
	return status == Granted, true, nil
}

// answer calls a client with the result of a message. Over UDP if it can, as the message is mostly sent.
func (s *Service) answer(c *oncrpc.Call, version, proc uint32, r result, cookie []byte) {
	b := backTo(c, version)
	s.calls.Do(b.at, func(ctx context.Context) {
		x, err := s.connect(ctx, b, Program, "udp", "tcp")
		if err != nil {
			s.log.Warn("the result of a lock cannot be sent", "client", b.at, "err", err)
			return
		}
		defer x.Close()
		x.Call(Program, version, proc, func(e *oncrpc.Encoder) { r.put(e, version, cookie) })
	})
}

// connect connects to a program of a client by the first of these networks that it is there on.
func (s *Service) connect(
	ctx context.Context, b back, program uint32, networks ...string,
) (*callout.Client, error) {
	var failed error
	for _, network := range networks {
		port, err := portmap.Find(ctx, netip.AddrPortFrom(b.at, s.port), b.local, program, b.version, network)
		if err == nil {
			var c *callout.Client
			at := netip.AddrPortFrom(b.at, port).String()
			if c, err = callout.Dial(ctx, network, at, b.local, callTime); err == nil {
				context.AfterFunc(ctx, func() { c.Close() })
				return c, nil
			}
		}
		failed = errors.Join(failed, fmt.Errorf("%s: %w", network, err))
	}
	return nil, failed
}
