package portmap

import (
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"tansy/nfs/callout"
	"tansy/nfs/oncrpc"
)

// Socket is where rpcbind of Linux takes registrations from any user.
const Socket = "/run/rpcbind.sock"

// callTime is how long a port mapper on this host may take for an answer.
const callTime = 5 * time.Second

// Registration is what a running port mapper was told.
type Registration struct {
	dial    func() (*client, error)
	version uint32
	entries []Entry
}

// Dial connects to a port mapper: network is "unix", "tcp", or "udp".
type Dial struct{ Network, Address string }

// Local are the ways to the port mapper of this host, in the order to try them. Most port mappers take registrations
// from a local socket. From loopback they take them only if the port is below 1024.
func Local(port int) []Dial {
	loopback := fmt.Sprintf("127.0.0.1:%d", port)
	list := []Dial{{"tcp", loopback}, {"udp", loopback}}
	if port == Port {
		list = append([]Dial{{"unix", Socket}}, list...)
	}
	return list
}

// Register registers entries at the first port mapper that answers. It speaks rpcbind's version 4, else 3, else the
// port mapper's 2, which knows no IPv6. If an entry is refused, those before it are removed again, and the error says
// which one.
func Register(ways []Dial, entries []Entry) (*Registration, error) {
	r, w, err := find(ways)
	if err != nil {
		return nil, err
	}
	if err = r.set(entries); err == nil {
		return r, nil
	}
	return nil, errors.Join(fmt.Errorf("port mapper at %s: %w", w.Address, err), r.Close())
}

// Answers returns nil if a port mapper answers.
func Answers(ways []Dial) error {
	_, _, err := find(ways)
	return err
}

// find returns a registration of nothing with the first port mapper that answers.
func find(ways []Dial) (*Registration, Dial, error) {
	var failed error
	for _, w := range ways {
		r := &Registration{dial: func() (*client, error) { return dial(w) }}
		c, err := r.dial()
		if err == nil {
			r.version, err = c.newest()
			c.Close()
		}
		if err == nil {
			return r, w, nil
		}
		failed = errors.Join(failed, fmt.Errorf("%s: %w", w.Address, err))
	}
	return nil, Dial{}, fmt.Errorf("no port mapper answers: %w", failed)
}

// set registers entries one after the other.
func (r *Registration) set(entries []Entry) error {
	c, err := r.dial()
	if err != nil {
		return err
	}
	defer c.Close()
	for _, e := range entries {
		if r.version == 2 && protoOf(e.Netid) == 0 {
			continue
		}
		ok, err := c.change(r.version, ProcSet, e)
		if err != nil {
			return err
		}
		if !ok {
			return fmt.Errorf("program %d version %d over %s was refused: "+
				"another server has registered it (rpcinfo -p shows what), or registering needs root",
				e.Program, e.Version, e.Netid)
		}
		r.entries = append(r.entries, e)
	}
	return nil
}

// Close removes what was registered.
func (r *Registration) Close() error {
	if len(r.entries) == 0 {
		return nil
	}
	c, err := r.dial()
	if err != nil {
		return err
	}
	defer c.Close()
	for len(r.entries) > 0 {
		last := len(r.entries) - 1
		e := r.entries[last]
		r.entries = r.entries[:last]
		if _, err := c.change(r.version, ProcUnset, e); err != nil {
			return err
		}
	}
	return nil
}

// protoOf is the protocol number of version 2, 0 where there is none.
func protoOf(netid string) uint32 {
	switch netid {
	case "tcp":
		return protoTCP
	case "udp":
		return protoUDP
	}
	return 0
}

// client makes one call after the other.
type client struct{ *callout.Client }

func dial(w Dial) (*client, error) {
	var nc net.Conn
	var err error
	if w.Network == "tcp" { // root can call from where root alone can
		for port := 1023; port > 1023-32 && nc == nil; port-- {
			d := net.Dialer{Timeout: callTime, LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port}}
			if nc, err = d.Dial(w.Network, w.Address); errors.Is(err, os.ErrPermission) {
				break
			}
		}
	}
	if nc == nil {
		nc, err = net.DialTimeout(w.Network, w.Address, callTime)
	}
	if err != nil {
		return nil, err
	}
	return &client{callout.NewClient(nc, w.Network == "udp", callTime)}, nil
}

// newest finds out the newest version that the port mapper has.
func (c *client) newest() (version uint32, err error) {
	for version = 4; version >= 2; version-- {
		if _, err = c.Call(Program, version, ProcNull, nil); err == nil || !errors.Is(err, callout.ErrMismatch) {
			return version, err
		}
	}
	return 0, err
}

// change calls SET or UNSET.
func (c *client) change(version, proc uint32, e Entry) (bool, error) {
	d, err := c.Call(Program, version, proc, func(x *oncrpc.Encoder) {
		if version == 2 {
			for _, w := range []uint32{e.Program, e.Version, protoOf(e.Netid), uint32(e.Addr.Port())} {
				x.Uint32(w)
			}
			return
		}
		r := rpcb{e.Program, e.Version, e.Netid, universal(e.Addr), owner}
		r.put(x)
	})
	if err != nil {
		return false, err
	}
	ok := d.Bool()
	if !d.Ok() {
		return false, callout.ErrReply
	}
	return ok, nil
}
