// Package nbdtest is an NBD server for tests. It exports a disk.Disk: with a disk.Sim it keeps what was not flushed
// apart, so that it can be lost and torn; with a disk.Fault requests fail. It can also hang up at any byte, answer in
// another order, send what the protocol forbids, or leave out what the protocol allows to leave out.
//
// It shares no code with disk/nbd, and knows the protocol's numbers by itself.
package nbdtest

import (
	"bufio"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"

	"tansy/disk"
)

// Flags of an export.
const (
	HasFlags    = 1 << 0
	ReadOnly    = 1 << 1
	Flush       = 1 << 2
	FUA         = 1 << 3
	Trim        = 1 << 5
	WriteZeroes = 1 << 6

	All = HasFlags | Flush | FUA | Trim | WriteZeroes
)

// Commands.
const (
	Read       = 0
	Write      = 1
	Disconnect = 2
	Flushing   = 3
	Trimming   = 4
	Zeroing    = 6
)

// A Request is one that came.
type Request struct {
	Command, Flags uint16
	Handle, Offset uint64
	Length         uint32
}

// Server is one. The fields are set before it serves.
type Server struct {
	Export string // its name
	Flags  uint16 // of the export; 0 is All
	Tail   uint64 // bytes behind the last block

	Least, Preferred, Most uint32 // block sizes; all 0: not told

	NoGo      bool        // it does not know the option
	OldFlags  bool        // it pads the answer to EXPORT_NAME
	TLS       *tls.Config // it knows STARTTLS
	WantsTLS  bool        // and nothing else before
	Conn      func(net.Conn) net.Conn
	Reply     func(Request, []byte) []byte // what is sent in place of a reply; nil hangs up
	OptionEnd func(option uint32, answer []byte) []byte

	mu     sync.Mutex
	disk   disk.Disk
	gather int
	seen   []Request
	most   int // requests in flight at a time, up to now
	now    int
	conns  map[net.Conn]bool
	closed bool
	wg     sync.WaitGroup
}

// Start serves d on a Unix socket until the end of the test, and returns the name of the export.
func (s *Server) Start(t testing.TB, d disk.Disk) string {
	path := filepath.Join(t.TempDir(), "nbd")
	s.Listen(t, d, "unix", path)
	u := url.URL{Scheme: "nbd+unix", Path: "/" + s.Export, RawQuery: "socket=" + url.QueryEscape(path)}
	return u.String()
}

// Listen serves d until the end of the test.
func (s *Server) Listen(t testing.TB, d disk.Disk, network, addr string) net.Addr {
	l, err := net.Listen(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	s.disk, s.conns = d, map[net.Conn]bool{}
	s.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.wg.Go(func() { s.Serve(c) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		s.mu.Lock()
		s.closed = true
		s.mu.Unlock()
		s.HangUp()
		s.wg.Wait()
	})
	return l.Addr()
}

// HangUp closes all connections.
func (s *Server) HangUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.Close()
	}
}

// Gather has n requests from now on wait for each other before they are answered, the last first.
func (s *Server) Gather(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gather = n
}

// SetDisk has the connections from now on export d.
func (s *Server) SetDisk(d disk.Disk) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.disk = d
}

// Requests returns those that came.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

// Count is how many of a command came.
func (s *Server) Count(command uint16) (n int) {
	for _, r := range s.Requests() {
		if r.Command == command {
			n++
		}
	}
	return n
}

// InFlight is how many there were at a time, at most.
func (s *Server) InFlight() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.most
}

// session is a connection.
type session struct {
	*Server
	c       net.Conn
	d       disk.Disk
	sending sync.Mutex
	wg      sync.WaitGroup

	gathered []func() // answers that wait for each other
}

// Serve serves a connection until its end.
func (s *Server) Serve(raw net.Conn) {
	s.mu.Lock()
	d := s.disk
	if s.closed {
		raw.Close()
	}
	if s.conns == nil {
		s.conns = map[net.Conn]bool{}
	}
	s.conns[raw] = true
	s.mu.Unlock()
	defer func() {
		raw.Close()
		s.mu.Lock()
		delete(s.conns, raw)
		s.mu.Unlock()
	}()
	c := raw
	if s.Conn != nil {
		c = s.Conn(c)
	}
	x := &session{Server: s, c: c, d: d}
	if x.negotiate() == nil {
		x.requests()
	}
	raw.Close()
	x.wg.Wait()
}

func (x *session) write(b []byte) error {
	x.sending.Lock()
	defer x.sending.Unlock()
	_, err := x.c.Write(b)
	return err
}

func (x *session) flags() uint16 {
	if x.Flags == 0 {
		return All
	}
	return x.Flags
}

func (x *session) size() uint64 { return x.d.Size()*disk.BlockSize + x.Tail }

var errEnd = errors.New("end")

func (x *session) negotiate() error {
	be := binary.BigEndian
	hello := append([]byte("NBDMAGICIHAVEOPT"), 0, 3)
	if x.OldFlags {
		hello[17] = 1
	}
	if err := x.write(hello); err != nil {
		return err
	}
	var flags [4]byte
	if _, err := io.ReadFull(x.c, flags[:]); err != nil {
		return err
	}
	secure := false
	for {
		var head [16]byte
		if _, err := io.ReadFull(x.c, head[:]); err != nil {
			return err
		}
		option := be.Uint32(head[8:])
		data := make([]byte, be.Uint32(head[12:]))
		if _, err := io.ReadFull(x.c, data); err != nil {
			return err
		}
		answer := func(kind uint32, body []byte) error {
			b := be.AppendUint64(nil, 0x3e889045565a9)
			b = be.AppendUint32(b, option)
			b = be.AppendUint32(b, kind)
			b = append(be.AppendUint32(b, uint32(len(body))), body...)
			if x.OptionEnd != nil {
				b = x.OptionEnd(option, b)
			}
			if b == nil {
				return errEnd
			}
			return x.write(b)
		}
		const refused = 1 << 31
		var err error
		switch {
		case option == 5 && x.TLS != nil && !secure:
			if err = answer(1, nil); err == nil {
				c := tls.Server(x.c, x.TLS)
				x.c, secure, err = c, true, c.Handshake()
			}
		case x.WantsTLS && !secure:
			err = answer(refused|5, []byte("TLS, please"))
		case option == 1:
			if string(data) != x.Export {
				return errEnd
			}
			b := be.AppendUint16(be.AppendUint64(nil, x.size()), x.flags())
			if x.OldFlags {
				b = append(b, make([]byte, 124)...)
			}
			return x.write(b)
		case option == 7 && !x.NoGo:
			n := be.Uint32(data)
			if string(data[4:4+n]) != x.Export {
				err = answer(refused|6, []byte("no such export"))
				break
			}
			b := be.AppendUint64([]byte{0, 0}, x.size())
			if err = answer(3, be.AppendUint16(b, x.flags())); err == nil && x.Most != 0 {
				b := be.AppendUint32([]byte{0, 3}, x.Least)
				b = be.AppendUint32(b, x.Preferred)
				err = answer(3, be.AppendUint32(b, x.Most))
			}
			if err == nil {
				err = answer(3, []byte{0, 1, 'a'}) // its name, which nobody asked for
			}
			if err == nil {
				return answer(1, nil)
			}
		default:
			err = answer(refused|1, nil)
		}
		if err != nil {
			return err
		}
	}
}

// requests serves them, each by itself.
func (x *session) requests() {
	be := binary.BigEndian
	in := bufio.NewReaderSize(x.c, 256<<10)
	for {
		var head [28]byte
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return
		}
		r := Request{be.Uint16(head[4:]), 0, be.Uint64(head[8:]), be.Uint64(head[16:]), be.Uint32(head[24:])}
		r.Flags, r.Command = r.Command, be.Uint16(head[6:])
		x.mu.Lock()
		x.seen = append(x.seen, r)
		x.mu.Unlock()
		if be.Uint32(head[:]) != 0x25609513 || r.Command == Disconnect {
			return
		}
		var data []byte
		if r.Command == Write {
			data = make([]byte, r.Length)
			if _, err := io.ReadFull(in, data); err != nil {
				return
			}
		}
		x.count(1)
		x.wg.Go(func() {
			x.answer(r, x.perform(r, data))
		})
	}
}

func (x *session) count(n int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.now += n
	x.most = max(x.most, x.now)
}

// answer sends the reply, perhaps when others are ready, too.
func (x *session) answer(r Request, reply []byte) {
	send := func() {
		x.count(-1)
		if x.Reply != nil {
			reply = x.Reply(r, reply)
		}
		if reply == nil || x.write(reply) != nil {
			x.c.Close()
		}
	}
	x.mu.Lock()
	x.gathered = append(x.gathered, send)
	var ready []func()
	if len(x.gathered) >= x.gather {
		ready, x.gathered = x.gathered, nil
	}
	x.mu.Unlock()
	for _, send := range slices.Backward(ready) {
		send()
	}
}

// perform does what is asked for, and returns the reply.
func (x *session) perform(r Request, data []byte) []byte {
	const block = disk.BlockSize
	a, n := r.Offset/block, uint64(r.Length)/block
	head := binary.BigEndian.AppendUint32(nil, 0x67446698)
	done := func(err error) []byte {
		b := binary.BigEndian.AppendUint32(head, number(err))
		b = binary.BigEndian.AppendUint64(b, r.Handle)
		if err == nil && r.Command == Read {
			b = append(b, data...)
		}
		return b
	}
	flags := x.flags()
	if r.Offset%block != 0 || r.Length%block != 0 || r.Flags&1 != 0 && flags&FUA == 0 {
		return done(syscall.EINVAL)
	}
	if x.Most != 0 && (r.Command == Read || r.Command == Write) && r.Length > x.Most {
		return done(syscall.EOVERFLOW)
	}
	if flags&ReadOnly != 0 && r.Command != Read {
		return done(syscall.EPERM)
	}
	switch {
	case r.Command == Read:
		data = make([]byte, r.Length)
		return done(x.d.ReadAt(a, blocks(data)))
	case r.Command == Write && r.Flags&1 != 0:
		return done(x.through(a, blocks(data)))
	case r.Command == Write:
		return done(x.d.WriteAt(a, blocks(data)))
	case r.Command == Flushing && flags&Flush != 0:
		return done(x.d.Barrier())
	case r.Command == Zeroing && flags&WriteZeroes != 0:
		return done(x.d.WriteAt(a, blocks(make([]byte, n*block))))
	case r.Command == Trimming && flags&Trim != 0: // what is there then is nobody's business
		return done(x.d.WriteAt(a, blocks(slices.Repeat([]byte{0xee}, int(n*block)))))
	}
	return done(syscall.EINVAL)
}

// through writes with FUA: these blocks alone become durable, if the disk can do that.
func (x *session) through(a uint64, bufs [][]byte) error {
	if s, ok := x.d.(interface {
		WriteThrough(uint64, [][]byte) error
	}); ok {
		return s.WriteThrough(a, bufs)
	}
	return errors.Join(x.d.WriteAt(a, bufs), x.d.Barrier())
}

func blocks(data []byte) (bufs [][]byte) {
	for b := range slices.Chunk(data, disk.BlockSize) {
		bufs = append(bufs, b)
	}
	return bufs
}

// number is what the protocol calls an error.
func number(err error) uint32 {
	var e syscall.Errno
	switch {
	case err == nil:
		return 0
	case errors.As(err, &e):
		return uint32(e)
	case errors.Is(err, disk.ErrRange):
		return 22
	}
	return 5
}

// CutAfter returns a connection that is closed when it has sent n bytes.
func CutAfter(c net.Conn, n int) net.Conn { return &cut{Conn: c, left: n} }

type cut struct {
	net.Conn
	left int
}

func (c *cut) Write(b []byte) (int, error) {
	if len(b) < c.left {
		c.left -= len(b)
		return c.Conn.Write(b)
	}
	n, _ := c.Conn.Write(b[:c.left])
	c.left = 0
	c.Conn.Close()
	return n, net.ErrClosed
}
