package callout

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"tansy/nfs/oncrpc"
)

// MaxReply bounds a reply, in bytes.
const MaxReply = 4096

// Client makes calls, one after the other, as AUTH_NONE. It is for one goroutine.
type Client struct {
	nc      net.Conn
	packet  bool
	timeout time.Duration
	xid     uint32
}

// NewClient makes calls over nc, in records, or if packet is true in datagrams. Each call may take as long as timeout.
func NewClient(nc net.Conn, packet bool, timeout time.Duration) *Client {
	return &Client{nc: nc, packet: packet, timeout: timeout, xid: uint32(time.Now().UnixNano())}
}

// Dial connects to a server: network is "unix", "tcp", or "udp". The calls come from the address local, unless that is
// nil. Connecting, and each call, may take as long as timeout.
func Dial(ctx context.Context, network, address string, local net.IP, timeout time.Duration) (*Client, error) {
	d := net.Dialer{Timeout: timeout}
	switch {
	case local == nil:
	case network == "tcp":
		d.LocalAddr = &net.TCPAddr{IP: local}
	case network == "udp":
		d.LocalAddr = &net.UDPAddr{IP: local}
	}
	nc, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c := NewClient(nc, network == "udp", timeout)
	return c, nil
}

// Close ends the connection, and the call in progress.
func (c *Client) Close() error { return c.nc.Close() }

// ErrMismatch says that the server has the program, and not this version of it.
var ErrMismatch = errors.New("the server has other versions of the program")

// ErrReply says that what came is no reply.
var ErrReply = errors.New("the reply is malformed")

// Send makes a call, and does not wait for its reply. args may be nil.
func (c *Client) Send(program, version, proc uint32, args func(*oncrpc.Encoder)) error {
	c.xid++
	e := oncrpc.NewEncoder(nil)
	const last = 1 << 31 // fragment of the record, which is the only one
	for _, w := range []uint32{0, c.xid, 0, 2, program, version, proc, 0, 0, 0, 0} {
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
	c.nc.SetDeadline(time.Now().Add(c.timeout))
	_, err := c.nc.Write(b)
	return err
}

// Call makes a call and returns its result. args may be nil.
func (c *Client) Call(program, version, proc uint32, args func(*oncrpc.Encoder)) (*oncrpc.Decoder, error) {
	if err := c.Send(program, version, proc, args); err != nil {
		return nil, err
	}
	for {
		b, err := c.receive()
		if err != nil {
			return nil, err
		}
		xid, d, err := parseReply(b)
		if err == nil && xid != c.xid || errors.Is(err, ErrReply) && c.packet {
			continue // to an earlier call
		}
		return d, err
	}
}

// receive reads one record or datagram.
func (c *Client) receive() ([]byte, error) {
	if c.packet {
		b := make([]byte, MaxReply)
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
		if len(all)+n > MaxReply {
			return nil, ErrReply
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
		return xid, nil, ErrReply
	case denied == 1 && stat == 1:
		return xid, nil, fmt.Errorf("the call is denied: AUTH_ERROR, reason %d", d.Uint32())
	case denied == 1:
		return xid, nil, errors.New("the call is denied: RPC_MISMATCH")
	case stat == uint32(oncrpc.ProgMismatch):
		return xid, nil, ErrMismatch
	case stat != uint32(oncrpc.Success):
		return xid, nil, fmt.Errorf("the call is not carried out: %v", oncrpc.Accept(stat))
	}
	return xid, &d, nil
}
