package portmap

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"tansy/nfs/callout"
	"tansy/nfs/oncrpc"
)

// findTime is how long a connection to a port mapper elsewhere, and its answer, may take each.
const findTime = 3 * time.Second

// ErrNone says that a port mapper does not know the program.
var ErrNone = errors.New("the program is not registered")

// Find asks the port mapper at an address for the port of a program there on a network, "tcp" or "udp". The question
// comes from the address local, unless that is nil, over TCP, and else over UDP. The port mapper's version 2 is asked.
// At an IPv6 address, which that does not know, it is version 4, which answers for the network that the question comes
// by (RFC 1833, section 2.2.1).
func Find(
	ctx context.Context, at netip.AddrPort, local net.IP, program, version uint32, network string,
) (found uint16, failed error) {
	ways := []string{"tcp", "udp"}
	if !at.Addr().Is4() {
		ways = []string{network}
	}
	for _, way := range ways {
		c, err := callout.Dial(ctx, way, at.String(), local, findTime)
		if err == nil {
			var port uint16
			stop := context.AfterFunc(ctx, func() { c.Close() })
			port, err = ask(c, at.Addr(), program, version, network)
			stop()
			c.Close()
			if err == nil || errors.Is(err, ErrNone) {
				return port, err
			}
		}
		failed = errors.Join(failed, fmt.Errorf("port mapper at %v over %s: %w", at, way, err))
	}
	return 0, failed
}

// ask asks one question.
func ask(c *callout.Client, at netip.Addr, program, version uint32, network string) (port uint16, err error) {
	if at.Is4() {
		d, err := c.Call(Program, 2, ProcGetport, func(e *oncrpc.Encoder) {
			for _, w := range []uint32{program, version, protoOf(network), 0} {
				e.Uint32(w)
			}
		})
		if err != nil {
			return 0, err
		}
		n := d.Uint32()
		if !d.Ok() || n > 1<<16-1 {
			return 0, callout.ErrReply
		}
		if n == 0 {
			return 0, ErrNone
		}
		return uint16(n), nil
	}
	d, err := c.Call(Program, 4, ProcGetaddr, func(e *oncrpc.Encoder) {
		r := rpcb{program, version, network + "6", "", ""}
		r.put(e)
	})
	if err != nil {
		return 0, err
	}
	text := string(d.Opaque(maxString))
	if !d.Ok() {
		return 0, callout.ErrReply
	}
	if text == "" {
		return 0, ErrNone
	}
	a, err := parseUniversal(text)
	return a.Port(), err
}
