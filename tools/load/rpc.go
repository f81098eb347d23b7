package load

import (
	"bufio"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"time"

	"tansy/tools/starttls"
)

// Conn is an RPC connection that keeps several calls in flight. It belongs to one goroutine. The methods named Start
// queue a call. Wait sends what is queued, and handles replies, in whatever order they come.
type Conn struct {
	c       stream
	r       *bufio.Reader
	w       []byte // calls not sent yet
	xid     uint32
	pending map[uint32]pending
	cred    []byte // AUTH_SYS credential and empty verifier, encoded
	record  []byte // the reply at hand
}

// pending is a call in flight. done decodes the results.
type pending struct {
	prog, proc uint32
	done       func(*decoder) error
}

// replyTimeout bounds the time without any reply; a server that hangs ends the run.
const replyTimeout = 60 * time.Second

// maxRecord bounds a reply in bytes.
const maxRecord = 2 << 20

// Dial connects. The only connection of a workload is to be a blocking one.
func Dial(addr string, alone bool) (*Conn, error) {
	tcp, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	var c stream = tcp
	if alone {
		if c, err = blocking(tcp.(*net.TCPConn)); err != nil {
			return nil, err
		}
	}
	return NewConn(c), nil
}

// DialTLS connects with TLS (RFC 9289). A server that refuses is an error.
func DialTLS(addr string, cfg *tls.Config) (*Conn, error) {
	tcp, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	secure, err := starttls.Start(tcp, nfsProgram, 3, cfg, replyTimeout)
	if err != nil {
		tcp.Close()
		return nil, err
	}
	return NewConn(secure), nil
}

// NewConn makes a Conn of a connection that is there; nil will do to encode calls.
func NewConn(s stream) *Conn {
	var body encoder
	body.u32(0) // stamp
	body.opaque([]byte("bench"))
	body.u32(uint32(os.Getuid()))
	body.u32(uint32(os.Getgid()))
	body.u32(0) // no further groups
	var cred encoder
	cred.u32(1) // AUTH_SYS
	cred.opaque(body)
	cred.u32(0) // verifier AUTH_NONE
	cred.u32(0)
	return &Conn{c: s, r: bufio.NewReaderSize(s, 256<<10), xid: rand.Uint32(), pending: map[uint32]pending{}, cred: cred}
}

// Close ends the connection.
func (c *Conn) Close() { c.c.Close() }

// Queued are the calls that Wait would send, as they are on the wire.
func (c *Conn) Queued() []byte { return c.w }

// start queues a call of version 3 of a program; done is called with the
// results from within Wait. Neither keeps what it is given.
func (c *Conn) start(prog, proc uint32, args func(*encoder), done func(*decoder) error) {
	c.xid++
	c.pending[c.xid] = pending{prog, proc, done}
	e := encoder(c.w)
	mark := len(e)
	for _, v := range [...]uint32{0, c.xid, 0, 2, prog, 3, proc} { // mark, xid, CALL, RPC version ...
		e.u32(v)
	}
	e = append(e, c.cred...)
	if args != nil {
		args(&e)
	}
	binary.BigEndian.PutUint32(e[mark:], 1<<31|uint32(len(e)-mark-4)) // one fragment, the last
	c.w = e
}

// Wait handles replies until at most n calls are in flight.
func (c *Conn) Wait(n int) error {
	for len(c.pending) > n {
		if c.r.Buffered() == 0 || len(c.w) > 128<<10 {
			if err := c.flush(); err != nil {
				return err
			}
		}
		if err := c.receive(); err != nil {
			return err
		}
	}
	return nil
}

// call is start and Wait for one call alone.
func (c *Conn) call(prog, proc uint32, args func(*encoder), done func(*decoder) error) error {
	c.start(prog, proc, args, done)
	return c.Wait(0)
}

func (c *Conn) flush() error {
	if len(c.w) == 0 {
		return nil
	}
	_, err := c.c.Write(c.w)
	c.w = c.w[:0]
	return err
}

func (c *Conn) receive() error {
	if c.r.Buffered() == 0 { // about to sleep; else not worth a system call
		c.c.SetReadDeadline(time.Now().Add(replyTimeout)) // a blocking stream has its own
	}
	if err := c.readRecord(); err != nil {
		return fmt.Errorf("reading a reply: %w", err)
	}
	d := &decoder{b: c.record}
	xid := d.u32()
	p, ok := c.pending[xid]
	if !ok {
		return fmt.Errorf("reply to no call (xid %d)", xid)
	}
	delete(c.pending, xid)
	if err := acceptReply(d); err != nil {
		return fmt.Errorf("program %d procedure %d: %w", p.prog, p.proc, err)
	}
	if p.done != nil {
		if err := p.done(d); err != nil {
			return err
		}
		if d.short || len(d.b) > 0 {
			return fmt.Errorf("program %d procedure %d: malformed results", p.prog, p.proc)
		}
	}
	return nil
}

func (c *Conn) readRecord() error {
	c.record = c.record[:0]
	for {
		var mark [4]byte
		if _, err := io.ReadFull(c.r, mark[:]); err != nil {
			return err
		}
		m := binary.BigEndian.Uint32(mark[:])
		n, have := int(m&^(1<<31)), len(c.record)
		if have+n > maxRecord {
			return errors.New("record too long")
		}
		if cap(c.record) < have+n {
			c.record = append(make([]byte, 0, have+n), c.record...)
		}
		c.record = c.record[:have+n]
		if _, err := io.ReadFull(c.r, c.record[have:]); err != nil {
			return err
		}
		if m>>31 == 1 {
			return nil
		}
	}
}

// acceptReply reads the reply header after the xid.
func acceptReply(d *decoder) error {
	if d.u32() != 1 {
		return errors.New("not a reply")
	}
	if stat := d.u32(); stat != 0 {
		reason := d.u32()
		return denied(reason, d.u32())
	}
	d.u32() // verifier
	d.opaque()
	stat := d.u32()
	if d.short {
		return errors.New("a reply that ends in the middle of its header")
	}
	if stat != 0 {
		return fmt.Errorf("the call was not carried out: %s", named(acceptStatus, "", stat))
	}
	return nil
}

// encoder appends XDR.
type encoder []byte

func (e *encoder) u32(v uint32) { *e = binary.BigEndian.AppendUint32(*e, v) }
func (e *encoder) u64(v uint64) { *e = binary.BigEndian.AppendUint64(*e, v) }
func (e *encoder) opaque(b []byte) {
	e.u32(uint32(len(b)))
	*e = append(*e, b...)
	*e = append(*e, make([]byte, -len(b)&3)...)
}

// decoder reads XDR; past the end it yields zeros and sets short.
type decoder struct {
	b     []byte
	short bool
}

func (d *decoder) take(n uint32) []byte {
	if uint64(n) > uint64(len(d.b)) {
		d.short, d.b = true, nil
		return nil
	}
	b := d.b[:n:n]
	d.b = d.b[n:]
	return b
}

func (d *decoder) u32() uint32 {
	if b := d.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (d *decoder) u64() uint64 {
	hi := d.u32()
	return uint64(hi)<<32 | uint64(d.u32())
}

// opaque returns variable-length data, valid until the next reply.
func (d *decoder) opaque() []byte {
	n := d.u32()
	b := d.take(n)
	d.take(-n & 3)
	return b
}
