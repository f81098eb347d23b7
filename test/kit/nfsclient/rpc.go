// Package nfsclient is a small NFSv3 client for tests and benchmarks. Conn makes
// calls of any form, right or wrong; Client is an fs.FileSystem whose files are
// on the server at the other end of a Conn, so that whatever can be done to a
// file system, such as comparing it with the model, can be done through a socket.
package nfsclient

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"

	"tansy/fs"
	"tansy/nfs/oncrpc"
)

// Conn is a connection on which any number of calls may be in progress.
type Conn struct {
	nc io.ReadWriteCloser

	wmu sync.Mutex // writing

	mu      sync.Mutex
	xid     uint32
	waiting map[uint32]chan reply
	err     error // the connection is gone
}

type reply struct {
	body []byte // after the xid
	err  error
}

// RPCError is a call the server did not carry out.
type RPCError struct {
	Denied bool   // else Stat is an accept_stat
	Stat   uint32 // accept_stat or reject_stat
	// Rest is what follows: lowest and highest version, or auth_stat.
	Rest []byte
}

func (e *RPCError) Error() string {
	if e.Denied {
		return fmt.Sprintf("call denied: %d % x", e.Stat, e.Rest)
	}
	return fmt.Sprintf("call not carried out: %d % x", e.Stat, e.Rest)
}

// Dial connects to a server.
func Dial(addr string) (*Conn, error) {
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	return NewConn(nc), nil
}

// NewConn makes a Conn of a connection. The numbers of its calls begin anywhere, as those of other clients do: with the
// same numbers a new client's calls would be taken for those of an earlier one that come again. Each call is written at
// once.
func NewConn(nc io.ReadWriteCloser) *Conn {
	c := &Conn{nc: nc, xid: rand.Uint32(), waiting: map[uint32]chan reply{}}
	go c.read()
	return c
}

// Close ends the calls in progress with an error.
func (c *Conn) Close() error { return c.nc.Close() }

// ReadRecord reads one record, however fragmented.
func ReadRecord(r io.Reader) ([]byte, error) {
	var rec []byte
	for {
		var mark [4]byte
		if _, err := io.ReadFull(r, mark[:]); err != nil {
			return nil, err
		}
		m := binary.BigEndian.Uint32(mark[:])
		n := int(m &^ (1 << 31))
		if n > 4<<20 {
			return nil, errors.New("reply of more than 4 MiB")
		}
		old := len(rec)
		rec = append(rec, make([]byte, n)...)
		if _, err := io.ReadFull(r, rec[old:]); err != nil {
			return nil, err
		}
		if m>>31 == 1 {
			return rec, nil
		}
	}
}

func (c *Conn) read() {
	r := bufio.NewReaderSize(c.nc, 64<<10)
	for {
		rec, err := ReadRecord(r)
		if err == nil && len(rec) < 4 {
			err = errors.New("short reply")
		}
		c.mu.Lock()
		if err != nil {
			c.err = err
			for xid, ch := range c.waiting {
				delete(c.waiting, xid)
				ch <- reply{err: err}
			}
			c.mu.Unlock()
			return
		}
		xid := binary.BigEndian.Uint32(rec)
		ch := c.waiting[xid]
		delete(c.waiting, xid)
		c.mu.Unlock()
		if ch != nil {
			ch <- reply{body: rec[4:]}
		}
	}
}

// Mark puts a record mark in front of a record.
func Mark(rec []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, 1<<31|uint32(len(rec))), rec...)
}

// PutAuth encodes credentials of a machine, and an empty verifier; nil is AUTH_NONE.
func PutAuth(e *oncrpc.Encoder, machine string, cred *fs.Cred) {
	if cred == nil {
		e.Uint32(uint32(oncrpc.AuthNone))
		e.Uint32(0)
	} else {
		b := oncrpc.NewEncoder(nil)
		b.Uint32(0)
		b.Opaque([]byte(machine))
		b.Uint32(cred.UID)
		b.Uint32(cred.GID)
		b.Uint32(uint32(len(cred.GIDs)))
		for _, g := range cred.GIDs {
			b.Uint32(g)
		}
		e.Uint32(uint32(oncrpc.AuthSys))
		e.Opaque(b.Bytes())
	}
	e.Uint32(uint32(oncrpc.AuthNone))
	e.Uint32(0)
}

// Header encodes a call up to its arguments.
func Header(xid, prog, vers, proc uint32, cred *fs.Cred) oncrpc.Encoder {
	return HeaderFrom("client", xid, prog, vers, proc, cred)
}

// HeaderFrom is Header for a machine that gives itself that name.
func HeaderFrom(machine string, xid, prog, vers, proc uint32, cred *fs.Cred) oncrpc.Encoder {
	e := oncrpc.NewEncoder(make([]byte, 0, 256))
	for _, w := range []uint32{xid, 0, 2, prog, vers, proc} {
		e.Uint32(w)
	}
	PutAuth(&e, machine, cred)
	return e
}

// Go starts a call; wait returns its result. args encodes the arguments and may
// be nil.
func (c *Conn) Go(
	prog, vers, proc uint32, cred *fs.Cred, args func(*oncrpc.Encoder),
) (wait func() (*oncrpc.Decoder, error)) {
	ch := make(chan reply, 1)
	c.mu.Lock()
	if err := c.err; err != nil {
		c.mu.Unlock()
		return func() (*oncrpc.Decoder, error) { return nil, err }
	}
	c.xid++
	xid := c.xid
	c.waiting[xid] = ch
	c.mu.Unlock()

	e := Header(xid, prog, vers, proc, cred)
	if args != nil {
		args(&e)
	}
	if err := c.Send(Mark(e.Bytes())); err != nil {
		return func() (*oncrpc.Decoder, error) { return nil, err }
	}
	return func() (*oncrpc.Decoder, error) {
		r := <-ch
		if r.err != nil {
			return nil, r.err
		}
		return ParseReply(r.body)
	}
}

// Send writes raw bytes.
func (c *Conn) Send(b []byte) error {
	c.wmu.Lock()
	defer c.wmu.Unlock()
	_, err := c.nc.Write(b)
	return err
}

// Call makes a call and waits for its result.
func (c *Conn) Call(prog, vers, proc uint32, cred *fs.Cred, args func(*oncrpc.Encoder)) (*oncrpc.Decoder, error) {
	return c.Go(prog, vers, proc, cred, args)()
}

// ParseReply takes the header off a reply, which starts behind its xid.
func ParseReply(body []byte) (*oncrpc.Decoder, error) {
	d := oncrpc.NewDecoder(body)
	kind, stat := d.Uint32(), d.Uint32()
	denied := stat == 1
	if !denied {
		d.Uint32()
		d.Opaque(400)
		stat = d.Uint32()
	} else {
		stat = d.Uint32()
	}
	if !d.Ok() || kind != 1 {
		return nil, errors.New("malformed reply")
	}
	if denied || stat != 0 {
		return nil, &RPCError{Denied: denied, Stat: stat, Rest: d.Rest()}
	}
	return &d, nil
}
