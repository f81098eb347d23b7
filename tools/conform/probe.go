package conform

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"
)

// UnfitError is the error for an address at which there is no server of a program that can be checked.
type UnfitError struct {
	Program string // NFS or MOUNT
	Addr    string // host:port
	Met     string // what was met there
}

func (e *UnfitError) Error() string { return e.Program + ": " + e.Met }

// fit makes a call without arguments to NFS and one to MOUNT. The error, of type *UnfitError, is that there is no such
// server. Whatever else is wrong with an answer is left to the checks.
func fit(cfg Config) error {
	for _, p := range []struct {
		name, addr string
		prog, vers uint32
	}{{"NFS", cfg.Addr, nfsProg, nfsVers}, {"MOUNT", cfg.MountAddr, mountProg, mountVers}} {
		if met := met(p.addr, newHeader(p.prog, p.vers, procNull, nil), cfg.Timeout); met != "" {
			return &UnfitError{p.name, p.addr, met}
		}
	}
	return nil
}

// peeked is a connection of which more may have been read than was taken.
type peeked struct {
	net.Conn
	r *bufio.Reader
}

func (p peeked) Read(b []byte) (int, error) { return p.r.Read(b) }

// replyStart is how a reply begins: the mark of a record, the number of the call, and that it is a reply. In bytes.
const replyStart = 12

// met says what answers a call in place of a server of its program, or "".
func met(addr string, h header, timeout time.Duration) string {
	c, err := dial(addr, timeout)
	if err != nil {
		return noConnection(err, timeout)
	}
	defer c.close()
	p := peeked{c.nc, bufio.NewReader(c.nc)}
	c.nc = p
	h.xid = 1
	sent := c.send(record(h, newArgs()))
	c.nc.SetReadDeadline(time.Now().Add(timeout))
	start, err := p.r.Peek(4)
	if err == nil && binary.BigEndian.Uint32(start)&^lastFragment <= maxReply { // else more may never come
		start, err = p.r.Peek(replyStart)
	}
	switch {
	case len(start) == replyStart && binary.BigEndian.Uint32(start[8:]) == msgReply:
		return otherProgram(c)
	case len(start) > 0:
		start, _ = p.r.Peek(p.r.Buffered())
		return notRPC(start)
	}
	if line := byHTTP(addr, timeout); line != nil {
		return notRPC(line)
	}
	if errors.Is(plain(err, timeout), errTimeout) && sent == nil {
		return fmt.Sprintf("a connection is taken, and nothing is answered within %v", timeout)
	}
	return "a connection is taken, and closed without an answer"
}

// noConnection says why there is none.
func noConnection(err error, timeout time.Duration) string {
	var failed *net.OpError
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nothing listens there (connection refused)"
	case errors.As(err, &failed) && failed.Timeout():
		return fmt.Sprintf("no connection within %v", timeout)
	case failed != nil:
		return failed.Err.Error()
	}
	return err.Error()
}

// otherProgram takes the reply to a call, and says that the server has not its program, or is "".
func otherProgram(c *conn) string {
	r, err := c.reply()
	if err == nil && !r.denied && (r.stat == progUnavail || r.stat == progMismatch) {
		return "the server there has RPC, and not this program in version 3: " + r.String()
	}
	return ""
}

// shownBytes is how much is shown of an answer.
const shownBytes = 60

// notRPC says what was answered that is no reply.
func notRPC(answer []byte) string {
	line, _, _ := bytes.Cut(answer, []byte("\n"))
	line = bytes.TrimRight(line, "\r")
	what := "what is no reply of RPC"
	if bytes.HasPrefix(line, []byte("HTTP/")) {
		what = "as an HTTP server"
	}
	return fmt.Sprintf("it answers %s: %q", what, line[:min(len(line), shownBytes)])
}

// httpWait is how long an HTTP server is waited for at most, which answers at once.
const httpWait = 2 * time.Second

// byHTTP is how an HTTP server begins its answer, or nil if there is none. Most wait for the end of what they take for
// a request, and answer no call.
func byHTTP(addr string, timeout time.Duration) []byte {
	timeout = min(timeout, httpWait)
	c, err := dial(addr, timeout)
	if err != nil {
		return nil
	}
	defer c.close()
	if c.send([]byte("GET / HTTP/1.0\r\n\r\n")) != nil {
		return nil
	}
	c.nc.SetReadDeadline(time.Now().Add(timeout))
	r := bufio.NewReader(c.nc)
	if start, err := r.Peek(len("HTTP/1.0")); err != nil || !bytes.HasPrefix(start, []byte("HTTP/")) {
		return nil
	}
	line, _ := r.Peek(r.Buffered())
	return line
}
