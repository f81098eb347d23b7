package conform

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"tansy/tools/starttls"
)

// Remote procedure calls (RFC 5531) over TCP, one at a time or as raw bytes.

// Numbers of RFC 5531, section 9.
const (
	msgCall  = 0
	msgReply = 1

	accepted = 0
	denied   = 1

	success      = 0
	progUnavail  = 1
	progMismatch = 2
	procUnavail  = 3
	garbageArgs  = 4
	systemErr    = 5

	rpcMismatch = 0
	authError   = 1

	authNone  = 0
	authSys   = 1
	authShort = 2
	rpcsecGSS = 6
	authTLS   = 7
)

const (
	lastFragment = 1 << 31
	maxReply     = 64 << 20 // bytes; more is not a reply to anything asked here
)

// cred is who calls: AUTH_SYS with these numbers, or AUTH_NONE for nil.
type cred struct {
	uid, gid uint32
	gids     []uint32
}

func (c *cred) String() string {
	switch {
	case c == nil:
		return "AUTH_NONE"
	case len(c.gids) > 0:
		return fmt.Sprintf("uid %d gid %d groups %v", c.uid, c.gid, c.gids)
	}
	return fmt.Sprintf("uid %d gid %d", c.uid, c.gid)
}

// body is the opaque part of AUTH_SYS credentials.
func (c *cred) body() []byte {
	var a args
	a.word(0) // stamp
	a.bytes("tansy-conform")
	a.word(c.uid)
	a.word(c.gid)
	a.word(uint32(len(c.gids)))
	for _, g := range c.gids {
		a.word(g)
	}
	return a.b
}

// header is a call up to its arguments; every field can be wrong.
type header struct {
	xid, kind, rpcvers, prog, vers, proc uint32
	flavor                               uint32
	cred                                 []byte
	verfFlavor                           uint32
	verf                                 []byte

	who *cred // for the report
}

// newHeader is a header without a mistake.
func newHeader(prog, vers, proc uint32, c *cred) header {
	h := header{kind: msgCall, rpcvers: 2, prog: prog, vers: vers, proc: proc, who: c}
	if c != nil {
		h.flavor, h.cred = authSys, c.body()
	}
	return h
}

func (h header) encode() []byte {
	var a args
	for _, w := range []uint32{h.xid, h.kind, h.rpcvers, h.prog, h.vers, h.proc, h.flavor} {
		a.word(w)
	}
	a.bytes(string(h.cred))
	a.word(h.verfFlavor)
	a.bytes(string(h.verf))
	return a.b
}

// mark puts a record mark in front of a record, which makes it one fragment.
func mark(rec []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, lastFragment|uint32(len(rec))), rec...)
}

// record is a call as it is sent.
func record(h header, a *args) []byte { return mark(append(h.encode(), a.b...)) }

// fragments cuts a record into fragments of at most n bytes.
func fragments(rec []byte, n int) (b []byte) {
	for len(rec) > n {
		b = binary.BigEndian.AppendUint32(b, uint32(n))
		b = append(b, rec[:n]...)
		rec = rec[n:]
	}
	return append(b, mark(rec)...)
}

// rpcReply is the header of a reply; body follows it.
type rpcReply struct {
	xid       uint32
	denied    bool
	verf      uint32 // flavor of the verifier
	verfText  string
	stat      uint32 // accept_stat or reject_stat
	low, high uint32 // of a mismatch
	auth      uint32 // auth_stat
	body      []byte
}

func (r *rpcReply) String() string {
	if !r.denied {
		switch r.stat {
		case success:
			return fmt.Sprintf("SUCCESS with %d bytes", len(r.body))
		case progUnavail:
			return "PROG_UNAVAIL"
		case progMismatch:
			return fmt.Sprintf("PROG_MISMATCH (%d to %d)", r.low, r.high)
		case procUnavail:
			return "PROC_UNAVAIL"
		case garbageArgs:
			return "GARBAGE_ARGS"
		case systemErr:
			return "SYSTEM_ERR"
		}
		return fmt.Sprintf("accept_stat %d", r.stat)
	}
	if r.stat == rpcMismatch {
		return fmt.Sprintf("denied, RPC_MISMATCH (%d to %d)", r.low, r.high)
	}
	if name := authNames[r.auth]; name != "" {
		return "denied, " + name
	}
	return fmt.Sprintf("denied, AUTH_ERROR %d", r.auth)
}

// authNames are the reasons why credentials are refused (auth_stat; RFC 5531, section 9).
var authNames = map[uint32]string{
	1: "AUTH_BADCRED", 2: "AUTH_REJECTEDCRED", 3: "AUTH_BADVERF", 4: "AUTH_REJECTEDVERF", 5: "AUTH_TOOWEAK",
	6: "AUTH_INVALIDRESP", 7: "AUTH_FAILED", 13: "RPCSEC_GSS_CREDPROBLEM", 14: "RPCSEC_GSS_CTXPROBLEM",
}

// parseReply takes a record apart.
func parseReply(rec []byte) (*rpcReply, error) {
	r := reader{b: rec}
	p := &rpcReply{xid: r.u32()}
	if kind := r.u32(); kind != msgReply {
		r.bad("msg_type is %d, not REPLY", kind)
	}
	switch stat := r.u32(); stat {
	case accepted:
		p.verf = r.u32()
		p.verfText = r.opaque(400)
		p.stat = r.u32()
		switch p.stat {
		case success:
			p.body, r.b = r.b, nil
		case progMismatch:
			p.low, p.high = r.u32(), r.u32()
		case progUnavail, procUnavail, garbageArgs, systemErr:
		default:
			r.bad("accept_stat is %d", p.stat)
		}
	case denied:
		p.denied = true
		p.stat = r.u32()
		switch p.stat {
		case rpcMismatch:
			p.low, p.high = r.u32(), r.u32()
		case authError:
			p.auth = r.u32()
		default:
			r.bad("reject_stat is %d", p.stat)
		}
	default:
		r.bad("reply_stat is %d", stat)
	}
	r.end()
	if r.err != "" {
		return nil, fmt.Errorf("malformed reply header: %s", r.err)
	}
	return p, nil
}

// conn is a connection, used by one goroutine.
type conn struct {
	nc      net.Conn
	timeout time.Duration // for each send and each reply
	broken  bool
}

// dial connects to a server of the configuration, with TLS if that says so: to MOUNT on a port of its own without.
func (cfg *Config) dial(addr string) (*conn, error) {
	c, err := dial(addr, cfg.Timeout)
	if err == nil && cfg.TLS != nil && addr == cfg.Addr {
		secure, err := starttls.Start(c.nc, nfsProg, nfsVers, cfg.TLS, cfg.Timeout)
		if err != nil {
			c.close()
			return nil, err
		}
		c.nc = secure
	}
	return c, err
}

// dial connects to a server in the clear.
func dial(addr string, timeout time.Duration) (*conn, error) {
	nc, err := net.DialTimeout("tcp", addr, timeout)
	if err != nil {
		return nil, err
	}
	return &conn{nc: nc, timeout: timeout}, nil
}

func (c *conn) close() { c.nc.Close() }

// send writes raw bytes.
func (c *conn) send(b []byte) error {
	c.nc.SetWriteDeadline(time.Now().Add(c.timeout))
	_, err := c.nc.Write(b)
	if err != nil {
		c.broken = true
	}
	return plain(err, c.timeout)
}

// recv reads one record, of any number of fragments.
func (c *conn) recv() ([]byte, error) {
	c.nc.SetReadDeadline(time.Now().Add(c.timeout))
	var rec []byte
	for {
		var m [4]byte
		if _, err := io.ReadFull(c.nc, m[:]); err != nil {
			c.broken = true
			return nil, plain(err, c.timeout)
		}
		w := binary.BigEndian.Uint32(m[:])
		n := int(w &^ lastFragment)
		if n > maxReply-len(rec) {
			c.broken = true
			return nil, fmt.Errorf("a reply of more than %d bytes", maxReply)
		}
		have := len(rec)
		rec = append(rec, make([]byte, n)...)
		if _, err := io.ReadFull(c.nc, rec[have:]); err != nil {
			c.broken = true
			return nil, plain(err, c.timeout)
		}
		if w&lastFragment != 0 {
			return rec, nil
		}
	}
}

// reply reads one record and takes its header apart.
func (c *conn) reply() (*rpcReply, error) {
	rec, err := c.recv()
	if err != nil {
		return nil, err
	}
	p, err := parseReply(rec)
	if err != nil {
		c.broken = true
	}
	return p, err
}

// call sends a record in one fragment and waits for the reply with its xid.
func (c *conn) call(h header, args []byte) (*rpcReply, error) {
	if err := c.send(mark(append(h.encode(), args...))); err != nil {
		return nil, err
	}
	p, err := c.reply()
	if err == nil && p.xid != h.xid {
		c.broken = true
		return nil, fmt.Errorf("the reply's xid is %#x, the call's %#x", p.xid, h.xid)
	}
	return p, err
}

var (
	errClosed  = errors.New("the server closed the connection")
	errTimeout = errors.New("no reply")
)

// plain gives network errors the words of the report.
func plain(err error, timeout time.Duration) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("%w within %v", errTimeout, timeout)
	}
	return errClosed
}
