package nlm

import (
	"net/netip"
	"strings"

	"tansy/nfs/advisory"
	"tansy/nfs/exports"
	"tansy/nfs/oncrpc"
)

// status is NSM. A client that has started says so (NOTIFY), which ends its locks. To watch other hosts is for the lock
// manager of the machine that asks, and nobody else is served so.
func (s *Service) status() oncrpc.Program {
	refuse := func(c *oncrpc.Call) oncrpc.Accept {
		c.Reply.Uint32(1) // STAT_FAIL
		c.Reply.Uint32(s.state)
		return oncrpc.Success
	}
	number := func(c *oncrpc.Call) oncrpc.Accept {
		c.Reply.Uint32(s.state)
		return oncrpc.Success
	}
	procs := make([]oncrpc.Proc, StatusNotify+1)
	procs[StatusNull] = oncrpc.NullProc
	procs[StatusStat] = oncrpc.Proc{Name: "STAT", Inline: true, Serve: refuse}
	procs[StatusMon] = oncrpc.Proc{Name: "MON", Inline: true, Serve: refuse}
	procs[StatusUnmon] = oncrpc.Proc{Name: "UNMON", Inline: true, Serve: number}
	procs[StatusUnmonAll] = oncrpc.Proc{Name: "UNMON_ALL", Inline: true, Serve: number}
	procs[StatusNotify] = oncrpc.Proc{Name: "NOTIFY", Serve: s.freeAll}
	return oncrpc.Program{Name: "nsm", Number: StatusProgram, Version: StatusVersion, Procs: procs}
}

// freeAll is NOTIFY of NSM and FREE_ALL of NLM, which have the same arguments: the host of that name has started, so
// that none of its processes is there any more. Only the address whose locks they are may say so.
func (s *Service) freeAll(c *oncrpc.Call) oncrpc.Accept {
	name := string(c.Args.Opaque(maxObject))
	c.Args.Uint32() // its state
	if !c.Args.Ok() {
		return oncrpc.GarbageArgs
	}
	at := exports.Address(c.Peer)
	n := s.table.Free(func(h advisory.Host) bool { return h.Addr == at && called(h.Name, name, at) })
	s.log.Info("a client has started: its locks are free", "peer", c.Peer, "name", name, "owners", n)
	return oncrpc.Success
}

// called tells whether a host that calls itself own in locks is meant by a name: the same up to the case, or one the
// first label of the other, or the host's address.
func called(own, name string, at netip.Addr) bool {
	own, name = strings.ToLower(own), strings.ToLower(name)
	if a, err := netip.ParseAddr(name); err == nil {
		return a.Unmap() == at
	}
	return own == name || strings.HasPrefix(own, name+".") || strings.HasPrefix(name, own+".")
}
