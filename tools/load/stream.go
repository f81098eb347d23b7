package load

import (
	"io"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// stream is what a Conn needs of its connection.
type stream interface {
	io.ReadWriteCloser
	SetReadDeadline(time.Time) error
}

// blocking makes a stream of c whose reads sleep in the kernel, and takes c over. Go's
// own way wakes other threads besides for each reply: with several connections that pays
// off, but it costs one client that waits for every answer a tenth of its rate. That is
// the load generator's cost and not the server's: a client in the kernel does not have it.
func blocking(c *net.TCPConn) (stream, error) {
	defer c.Close()
	f, err := c.File()
	if err != nil {
		return nil, err
	}
	timeout := unix.NsecToTimeval(int64(replyTimeout))
	fd := int(f.Fd()) // this makes it blocking
	err = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout)
	if err := os.NewSyscallError("setsockopt", err); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
