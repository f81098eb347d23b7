package nfsclient

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"sync"
	"time"
)

// redial is how long a Hard connection waits after an attempt that failed.
const redial = 50 * time.Millisecond

// Hard is a connection that is made again whenever it ends, as those of mounts with the option hard are: calls without
// a reply are then sent again, with their numbers. NewConn and MountOn take it, and close it.
type Hard struct {
	dial    func() (net.Conn, error)
	replies *io.PipeReader
	stop    chan struct{}
	once    sync.Once

	mu     sync.Mutex
	conn   net.Conn  // nil while there is none
	calls  []callOut // without a reply, in their order
	closed bool
	made   int
}

type callOut struct {
	xid    uint32
	record []byte
}

// NewHard calls dial, from now on and whenever it has no connection.
func NewHard(dial func() (net.Conn, error)) *Hard {
	r, w := io.Pipe()
	h := &Hard{dial: dial, replies: r, stop: make(chan struct{})}
	go h.run(w)
	return h
}

// Made is how many connections there were.
func (h *Hard) Made() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.made
}

// Read returns replies, each as a record of one fragment.
func (h *Hard) Read(b []byte) (int, error) { return h.replies.Read(b) }

// Write sends one call, which is a record of one fragment.
func (h *Hard) Write(record []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return 0, net.ErrClosed
	}
	h.calls = append(h.calls, callOut{binary.BigEndian.Uint32(record[4:]), bytes.Clone(record)})
	if h.conn != nil {
		h.send(record)
	}
	return len(record), nil
}

// send sends a record. If that fails the reader learns of it.
func (h *Hard) send(record []byte) {
	if _, err := h.conn.Write(record); err != nil {
		h.conn.Close()
	}
}

// Close ends the connection, and all attempts.
func (h *Hard) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	h.once.Do(func() { close(h.stop) })
	h.replies.Close()
	if h.conn != nil {
		return h.conn.Close()
	}
	return nil
}

func (h *Hard) run(replies *io.PipeWriter) {
	defer replies.Close()
	for {
		if conn, err := h.dial(); err == nil {
			if !h.begin(conn) {
				conn.Close()
				return
			}
			h.pass(conn, replies)
			conn.Close()
		}
		select {
		case <-h.stop:
			return
		case <-time.After(redial):
		}
	}
}

// begin uses a new connection, unless this one is closed.
func (h *Hard) begin(conn net.Conn) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false
	}
	h.conn = conn
	h.made++
	for _, c := range h.calls {
		h.send(c.record)
	}
	return true
}

// pass passes replies on to the end of a connection. One that was there already, as its call was sent twice, is left
// out.
func (h *Hard) pass(conn net.Conn, replies io.Writer) {
	defer func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.conn = nil
	}()
	for {
		reply, err := ReadRecord(conn)
		if err != nil || len(reply) < 4 {
			return
		}
		h.mu.Lock()
		i := slices.IndexFunc(h.calls, func(c callOut) bool { return c.xid == binary.BigEndian.Uint32(reply) })
		if i >= 0 {
			h.calls = slices.Delete(h.calls, i, i+1)
		}
		h.mu.Unlock()
		if i >= 0 {
			if _, err := replies.Write(Mark(reply)); err != nil {
				return
			}
		}
	}
}
