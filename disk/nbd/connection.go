package nbd

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// inFlight is how many requests wait for their replies at most.
const inFlight = 64

// ErrDisconnected: the connection to the server is lost. What was written since the last barrier may be lost with it.
var ErrDisconnected = errors.New("the connection to the NBD server is lost")

// connection is a negotiated connection. Requests go out one after the other; replies come in any order, and one
// goroutine takes them all, which never waits for anything but the server. So who sends may wait until the server takes
// it, and no two wait for each other.
type connection struct {
	c     net.Conn
	raw   net.Conn      // what c is by TLS, or c
	slots chan struct{} // a request in flight each

	sending sync.Mutex
	w       *bufio.Writer // for TLS; nil: c takes vectors

	mu      sync.Mutex
	waiting map[uint64]*call // by handle
	handle  uint64           // the last
	err     error            // why it ended, for good

	ended    chan struct{} // closed with err
	received chan struct{} // closed at the end of receive
}

// call is a request.
type call struct {
	into [][]byte    // for what is read
	done chan error  // of one
	then func(error) // called in place of that, by who must not wait; or nil
}

func (k *call) end(err error) {
	if k.then != nil {
		k.then(err)
	} else {
		k.done <- err
	}
}

func newConnection(raw, c net.Conn) *connection {
	n := &connection{
		c: c, raw: raw, slots: make(chan struct{}, inFlight), waiting: map[uint64]*call{},
		ended: make(chan struct{}), received: make(chan struct{}),
	}
	if c != raw {
		n.w = bufio.NewWriterSize(c, 64<<10)
	}
	go n.receive()
	return n
}

// start sends a request, with the blocks from for one that writes; what it reads goes to the blocks into. It waits
// until fewer than inFlight are under way. The result is to be waited for, whatever happens, or then is called with it.
func (n *connection) start(
	command, flags uint16, off uint64, length uint32, from, into [][]byte, then func(error),
) *call {
	k := &call{into: into, done: make(chan error, 1), then: then}
	select {
	case n.slots <- struct{}{}:
	case <-n.ended:
		k.end(n.end())
		return k
	}
	n.mu.Lock()
	if n.err != nil {
		k.end(n.err)
		n.mu.Unlock()
		return k
	}
	n.handle++
	handle := n.handle
	n.waiting[handle] = k
	n.mu.Unlock()
	if err := n.send(command, flags, handle, off, length, from); err != nil {
		// What the server said last tells more, such as that it wants another certificate.
		n.raw.SetReadDeadline(time.Now().Add(farewell))
		<-n.received
		n.lose(hungUp(err))
	}
	return k
}

// do sends a request and waits for its end.
func (n *connection) do(command uint16, off uint64, length uint32) error {
	return <-n.start(command, 0, off, length, nil, nil, nil).done
}

func (n *connection) send(command, flags uint16, handle, off uint64, length uint32, from [][]byte) error {
	head := make([]byte, requestSize)
	binary.BigEndian.PutUint32(head[0:], magicRequest)
	binary.BigEndian.PutUint16(head[4:], flags)
	binary.BigEndian.PutUint16(head[6:], command)
	binary.BigEndian.PutUint64(head[8:], handle)
	binary.BigEndian.PutUint64(head[16:], off)
	binary.BigEndian.PutUint32(head[24:], length)
	n.sending.Lock()
	defer n.sending.Unlock()
	if n.w == nil {
		all := append(net.Buffers{head}, from...)
		_, err := all.WriteTo(n.c)
		return err
	}
	n.w.Write(head) // an error is kept for Flush
	for _, b := range from {
		n.w.Write(b)
	}
	return n.w.Flush()
}

// receive takes replies until the end of the connection.
func (n *connection) receive() {
	defer close(n.received)
	r := bufio.NewReaderSize(n.c, 256<<10)
	for {
		if err := n.reply(r); err != nil {
			n.lose(hungUp(err))
			return
		}
	}
}

// reply takes one reply. Its error is one after which nothing is known of what follows.
func (n *connection) reply(r io.Reader) error {
	var head [replySize]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return err
	}
	if binary.BigEndian.Uint32(head[:]) != magicReply {
		return errMalformed
	}
	handle := binary.BigEndian.Uint64(head[8:])
	n.mu.Lock()
	k := n.waiting[handle]
	delete(n.waiting, handle) // from here on it is ours to end, and into ours to fill
	n.mu.Unlock()
	if k == nil {
		return errors.New("the server replies to what was not asked for")
	}
	if e := binary.BigEndian.Uint32(head[4:]); e != 0 {
		k.end(serverError(e))
		<-n.slots
		return nil
	}
	for _, b := range k.into {
		if _, err := io.ReadFull(r, b); err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			n.lose(hungUp(err))
			k.end(n.end())
			return err
		}
	}
	k.end(nil)
	<-n.slots
	return nil
}

// serverError is the error with a number of the protocol: those of Linux, of which it knows these.
func serverError(e uint32) error {
	err := syscall.EIO
	if known, ok := map[uint32]syscall.Errno{
		1: syscall.EPERM, 12: syscall.ENOMEM, 22: syscall.EINVAL, 28: syscall.ENOSPC,
		75: syscall.EOVERFLOW, 95: syscall.EOPNOTSUPP, 108: syscall.ESHUTDOWN,
	}[e]; ok {
		err = known
	}
	return fmt.Errorf("error of the NBD server: %w", err)
}

// lose ends the connection for that reason.
func (n *connection) lose(why error) {
	n.finish(fmt.Errorf("%w: %w", ErrDisconnected, why))
	n.raw.Close()
}

// finish fails what is in flight and whatever comes, with the first err that it is called with.
func (n *connection) finish(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.err != nil {
		return
	}
	n.err = err
	close(n.ended)
	for _, k := range n.waiting {
		k.end(err)
	}
	n.waiting = nil
}

// end is why the connection ended, or nil.
func (n *connection) end() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.err
}

// farewell is how long the server has at the end, to take that it is the end, or to say why.
const farewell = time.Second

// close ends the connection, and waits until nothing of it is left.
func (n *connection) close() {
	n.finish(os.ErrClosed)
	n.raw.SetWriteDeadline(time.Now().Add(farewell)) // also for a send that the server keeps waiting
	n.send(commandEnd, 0, 0, 0, 0, nil)              // it makes no difference if that fails
	n.raw.Close()
	<-n.received
}
