// Package portmap speaks the protocol that says on which port a program is: the port
// mapper (version 2 of program 100000) and rpcbind (versions 3 and 4), RFC 1833. A
// Service answers for a fixed list of programs, on hosts that have no port mapper; Register
// tells a running one.
//
// A Service carries out what clients ask to find a program: GETPORT, GETADDR, GETVERSADDR,
// DUMP, and GETTIME. SET and UNSET answer false, as nobody else registers here. The
// procedures that call others (CALLIT, BCAST, INDIRECT) are not there: they make a
// port mapper a relay for whoever wants to hide. DUMP is not there over UDP.
package portmap

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"tansy/nfs/oncrpc"
)

// Program and port.
const (
	Program = 100000
	Port    = 111
)

// Versions are those of the port mapper, 2, and of rpcbind, 3 and 4.
var Versions = []uint32{2, 3, 4}

// Procedure numbers of version 2, and of versions 3 and 4 (RFC 1833).
const (
	ProcNull        = 0
	ProcSet         = 1
	ProcUnset       = 2
	ProcGetport     = 3 // version 2
	ProcGetaddr     = 3 // versions 3 and 4
	ProcDump        = 4
	ProcGettime     = 6 // versions 3 and 4
	ProcGetversaddr = 9 // version 4
)

// Protocol numbers of version 2.
const (
	protoTCP = 6
	protoUDP = 17
)

// maxString bounds the strings in arguments, in bytes.
const maxString = 1024

// Entry is one version of a program that is served at an address.
type Entry struct {
	Program, Version uint32
	Netid            string // "tcp", "udp", "tcp6", "udp6"
	Addr             netip.AddrPort
}

// Entries are those of a program on the address of a listener: one for each version and family. An address that stands
// for all of the host is of IPv4 and of IPv6.
func Entries(program uint32, addr net.Addr, versions ...uint32) (list []Entry) {
	var proto string
	var at netip.AddrPort
	switch a := addr.(type) {
	case *net.TCPAddr:
		proto, at = "tcp", a.AddrPort()
	case *net.UDPAddr:
		proto, at = "udp", a.AddrPort()
	default:
		return nil
	}
	ip := at.Addr().Unmap().WithZone("")
	for _, v := range versions {
		if ip.Is4() || ip == netip.IPv6Unspecified() {
			four := ip
			if !ip.Is4() {
				four = netip.IPv4Unspecified()
			}
			list = append(list, Entry{program, v, proto, netip.AddrPortFrom(four, at.Port())})
		}
		if ip.Is6() {
			list = append(list, Entry{program, v, proto + "6", netip.AddrPortFrom(ip, at.Port())})
		}
	}
	return list
}

// Service answers for a list of entries.
type Service struct{ entries []Entry }

// New makes a Service.
func New(entries []Entry) *Service { return &Service{entries} }

// Programs are the tables of procedures of all versions.
func (s *Service) Programs() []oncrpc.Program {
	no := func(name string, decode func(*oncrpc.Decoder)) oncrpc.Proc {
		return oncrpc.Proc{Name: name, Inline: true, Serve: func(c *oncrpc.Call) oncrpc.Accept {
			decode(&c.Args)
			if !c.Args.Ok() {
				return oncrpc.GarbageArgs
			}
			c.Reply.Bool(false)
			return oncrpc.Success
		}}
	}
	getaddr := func(name string, exact bool) oncrpc.Proc {
		return oncrpc.Proc{Name: name, Inline: true, Serve: func(c *oncrpc.Call) oncrpc.Accept {
			return s.getaddr(c, exact)
		}}
	}
	mapping, rpcb := func(d *oncrpc.Decoder) { getMapping(d) }, func(d *oncrpc.Decoder) { getRpcb(d) }
	two := []oncrpc.Proc{
		ProcNull: oncrpc.NullProc, ProcSet: no("SET", mapping), ProcUnset: no("UNSET", mapping),
		ProcGetport: {Name: "GETPORT", Inline: true, Serve: s.getport},
		ProcDump:    {Name: "DUMP", Inline: true, Stream: true, Serve: s.dump2},
	}
	three := []oncrpc.Proc{
		ProcNull: oncrpc.NullProc, ProcSet: no("SET", rpcb), ProcUnset: no("UNSET", rpcb),
		ProcGetaddr: getaddr("GETADDR", false),
		ProcDump:    {Name: "DUMP", Inline: true, Stream: true, Serve: s.dump},
		ProcGettime: {Name: "GETTIME", Inline: true, Serve: gettime},
	}
	four := append(append([]oncrpc.Proc(nil), three...), make([]oncrpc.Proc, ProcGetversaddr+1-len(three))...)
	four[ProcGetversaddr] = getaddr("GETVERSADDR", true)
	return []oncrpc.Program{
		{Number: Program, Version: 2, Procs: two},
		{Number: Program, Version: 3, Procs: three},
		{Number: Program, Version: 4, Procs: four},
	}
}

// find returns the entry of a program. Without one of this version any will do, unless it has
// to be exact: the program itself then says which versions it has.
func (s *Service) find(program, version uint32, netid string, exact bool) (found Entry, ok bool) {
	for _, e := range s.entries {
		if e.Program != program || e.Netid != netid {
			continue
		}
		if e.Version == version {
			return e, true
		}
		if !exact && !ok {
			found, ok = e, true
		}
	}
	return found, ok
}

// mapping is an entry of the port mapper's version 2.
type mapping struct{ program, version, proto, port uint32 }

func getMapping(d *oncrpc.Decoder) mapping {
	return mapping{d.Uint32(), d.Uint32(), d.Uint32(), d.Uint32()}
}

func (s *Service) getport(c *oncrpc.Call) oncrpc.Accept {
	m := getMapping(&c.Args)
	if !c.Args.Ok() {
		return oncrpc.GarbageArgs
	}
	netid := map[uint32]string{protoTCP: "tcp", protoUDP: "udp"}[m.proto]
	e, _ := s.find(m.program, m.version, netid, false)
	c.Reply.Uint32(uint32(e.Addr.Port())) // 0: none
	return oncrpc.Success
}

func (s *Service) dump2(c *oncrpc.Call) oncrpc.Accept {
	for _, e := range s.entries {
		proto := map[string]uint32{"tcp": protoTCP, "udp": protoUDP}[e.Netid]
		if proto == 0 {
			continue
		}
		c.Reply.Bool(true)
		for _, w := range []uint32{e.Program, e.Version, proto, uint32(e.Addr.Port())} {
			c.Reply.Uint32(w)
		}
	}
	c.Reply.Bool(false)
	return oncrpc.Success
}

// rpcb is what versions 3 and 4 have instead.
type rpcb struct {
	program, version   uint32
	netid, addr, owner string
}

func getRpcb(d *oncrpc.Decoder) rpcb {
	text := func() string { return string(d.Opaque(maxString)) }
	return rpcb{program: d.Uint32(), version: d.Uint32(), netid: text(), addr: text(), owner: text()}
}

func (r *rpcb) put(e *oncrpc.Encoder) {
	e.Uint32(r.program)
	e.Uint32(r.version)
	e.Opaque([]byte(r.netid))
	e.Opaque([]byte(r.addr))
	e.Opaque([]byte(r.owner))
}

// getaddr returns the universal address of a program on the transport that the call came by (RFC
// 1833, section 2.2.1: the netid in the arguments is ignored). A program that is served at every
// address of this host is at the one that the caller says it called, if it says so.
func (s *Service) getaddr(c *oncrpc.Call, exact bool) oncrpc.Accept {
	r := getRpcb(&c.Args)
	if !c.Args.Ok() {
		return oncrpc.GarbageArgs
	}
	e, ok := s.find(r.program, r.version, netidOf(c.Peer), exact)
	if !ok {
		c.Reply.Opaque(nil)
		return oncrpc.Success
	}
	at := e.Addr
	called, err := parseUniversal(r.addr)
	if err == nil && at.Addr().IsUnspecified() && called.Addr().Is4() == at.Addr().Is4() {
		at = netip.AddrPortFrom(called.Addr(), at.Port())
	}
	c.Reply.Opaque([]byte(universal(at)))
	return oncrpc.Success
}

func (s *Service) dump(c *oncrpc.Call) oncrpc.Accept {
	for _, e := range s.entries {
		c.Reply.Bool(true)
		r := rpcb{e.Program, e.Version, e.Netid, universal(e.Addr), owner}
		r.put(&c.Reply)
	}
	c.Reply.Bool(false)
	return oncrpc.Success
}

// owner is whom entries belong to.
const owner = "tansy"

func gettime(c *oncrpc.Call) oncrpc.Accept {
	c.Reply.Uint32(uint32(time.Now().Unix()))
	return oncrpc.Success
}

// netidOf is the transport of a peer.
func netidOf(peer net.Addr) string {
	var netid string
	var at netip.Addr
	switch a := peer.(type) {
	case *net.TCPAddr:
		netid, at = "tcp", a.AddrPort().Addr()
	case *net.UDPAddr:
		netid, at = "udp", a.AddrPort().Addr()
	}
	if at.Unmap().Is6() {
		netid += "6"
	}
	return netid
}

// universal is an address as RFC 5665 writes it: the port's two bytes behind the host.
func universal(a netip.AddrPort) string {
	return fmt.Sprintf("%s.%d.%d", a.Addr(), a.Port()>>8, a.Port()&255)
}

// parseUniversal reads what universal writes.
func parseUniversal(s string) (at netip.AddrPort, err error) {
	host, low, _ := cutLast(s)
	host, high, ok := cutLast(host)
	addr, err := netip.ParseAddr(host)
	if err != nil || !ok || addr.Zone() != "" {
		return at, fmt.Errorf("%q is no universal address", s)
	}
	var h, l uint8
	if h, err = number8(high); err == nil {
		l, err = number8(low)
	}
	return netip.AddrPortFrom(addr, uint16(h)<<8|uint16(l)), err
}

func cutLast(s string) (before, after string, ok bool) {
	i := strings.LastIndexByte(s, '.')
	if i < 0 {
		return "", s, false
	}
	return s[:i], s[i+1:], true
}

func number8(s string) (uint8, error) {
	n, err := strconv.ParseUint(s, 10, 8)
	return uint8(n), err
}
