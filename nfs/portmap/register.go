package portmap

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"tansy/nfs/oncrpc"
)

// Socket is where rpcbind of Linux takes registrations from any user.
const Socket = "/run/rpcbind.sock"

// callTime is how long a port mapper on this host may take for an answer.
const callTime = 5 * time.Second

// maxReply bounds the answer of a port mapper, in bytes.
const maxReply = 4096

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
			c.close()
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
	defer c.close()
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
	defer c.close()
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
type client struct {
	nc     net.Conn
	packet bool
	xid    uint32
}

func dial(w Dial) (*client, error) {
	c := &client{packet: w.Network == "udp", xid: uint32(time.Now().UnixNano())}
	var err error
	if w.Network == "tcp" { // root can call from where root alone can
		for port := 1023; port > 1023-32 && c.nc == nil; port-- {
			d := net.Dialer{Timeout: callTime, LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port}}
			if c.nc, err = d.Dial(w.Network, w.Address); errors.Is(err, os.ErrPermission) {
				break
			}
		}
	}
	if c.nc == nil {
		c.nc, err = net.DialTimeout(w.Network, w.Address, callTime)
	}
	return c, err
}

func (c *client) close() { c.nc.Close() }

// errMismatch: the port mapper does not have this version.
var errMismatch = errors.New("another version")

// newest finds out the newest version that the port mapper has.
func (c *client) newest() (version uint32, err error) {
	for version = 4; version >= 2; version-- {
		if _, err = c.call(version, ProcNull, nil); err == nil || !errors.Is(err, errMismatch) {
			return version, err
		}
	}
	return 0, err
}

// change calls SET or UNSET.
func (c *client) change(version, proc uint32, e Entry) (bool, error) {
	d, err := c.call(version, proc, func(x *oncrpc.Encoder) {
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
		return false, errReply
	}
	return ok, nil
}

var errReply = errors.New("the port mapper's reply is malformed")

// call makes a call as AUTH_NONE and returns its result.
func (c *client) call(version, proc uint32, args func(*oncrpc.Encoder)) (*oncrpc.Decoder, error) {
	c.xid++
	e := oncrpc.NewEncoder(nil)
	const last = 1 << 31 // fragment of the record, which is the only one
	for _, w := range []uint32{0, c.xid, 0, 2, Program, version, proc, 0, 0, 0, 0} {
		e.Uint32(w)
	}
	if args != nil {
		args(&e)
	}
	b := e.Bytes()
	binary.BigEndian.PutUint32(b, last|uint32(len(b)-4))
	if c.packet {
		b = b[4:]
	}
	c.nc.SetDeadline(time.Now().Add(callTime))
	if _, err := c.nc.Write(b); err != nil {
		return nil, err
	}
	for {
		b, err := c.receive()
		if err != nil {
			return nil, err
		}
		xid, d, err := parseReply(b)
		if err == nil && xid != c.xid || errors.Is(err, errReply) && c.packet {
			continue // to an earlier call
		}
		return d, err
	}
}

// receive reads one record or datagram.
func (c *client) receive() ([]byte, error) {
	if c.packet {
		b := make([]byte, maxReply)
		n, err := c.nc.Read(b)
		return b[:n], err
	}
	var all []byte
	for {
		var mark [4]byte
		if _, err := io.ReadFull(c.nc, mark[:]); err != nil {
			return nil, err
		}
		m := binary.BigEndian.Uint32(mark[:])
		n := int(m &^ (1 << 31))
		if len(all)+n > maxReply {
			return nil, errReply
		}
		part := make([]byte, n)
		if _, err := io.ReadFull(c.nc, part); err != nil {
			return nil, err
		}
		if all = append(all, part...); m>>31 == 1 {
			return all, nil
		}
	}
}

// parseReply takes the header off a reply (RFC 5531, section 9).
func parseReply(b []byte) (xid uint32, result *oncrpc.Decoder, err error) {
	d := oncrpc.NewDecoder(b)
	xid = d.Uint32()
	kind, denied, stat := d.Uint32(), d.Uint32(), uint32(0)
	if denied == 0 {
		d.Uint32()
		d.Opaque(400)
	}
	stat = d.Uint32()
	switch {
	case !d.Ok() || kind != 1 || denied > 1:
		return xid, nil, errReply
	case denied == 1 && stat == 1:
		return xid, nil, fmt.Errorf("the port mapper denies the call: AUTH_ERROR, reason %d", d.Uint32())
	case denied == 1:
		return xid, nil, errors.New("the port mapper denies the call: RPC_MISMATCH")
	case stat == uint32(oncrpc.ProgMismatch):
		return xid, nil, errMismatch
	case stat != uint32(oncrpc.Success):
		return xid, nil, fmt.Errorf("the port mapper does not carry out the call: %v", oncrpc.Accept(stat))
	}
	return xid, &d, nil
}
