// Package nbd is a disk.Disk at the other end of a connection: an export of an NBD server (network block device).
//
// It speaks the fixed newstyle protocol with simple replies, by TCP or a Unix socket, with or without TLS:
//
//	nbd://HOST:PORT/EXPORT                nbds://HOST:PORT/EXPORT?tls-certificates=DIR
//	nbd+unix:///EXPORT?socket=PATH        nbds+unix:///EXPORT?socket=PATH&tls-hostname=NAME&tls-certificates=DIR
//
// Up to 64 requests are in flight over one connection. A connection that is lost is lost for good: what was
// written since the last barrier may be lost as well, and only who recovers the volume can tell. So nothing here
// connects again; what is in flight then fails, and all that follows.
//
// Nothing locks an export against a second client: see docs/guide/nbd.md.
package nbd

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"tansy/disk"
)

// Options are options for Open.
type Options struct {
	// ReadOnly opens without the right to write. Only so can a read-only export be opened.
	ReadOnly bool
	// Timeout is how long connecting and negotiating may take together; 0 is DefaultTimeout.
	Timeout time.Duration
	// WriteBehind has writes return when they are sent, so that one who writes and writes keeps the server busy. Reads
	// see what was written. A write that fails has all later ones fail, and all barriers.
	WriteBehind bool
}

// DefaultTimeout is enough for a server that is far away and busy.
const DefaultTimeout = 15 * time.Second

// settling is how long the flush at the beginning may take. The server may have much to write, from earlier.
const settling = 2 * time.Minute

// requestBlocks is the length of a request at most: what is longer is sent as several, which the server can do side by
// side.
const requestBlocks = 1 << 20 / disk.BlockSize

// Device is an open export. It is a disk.Disk and a disk.Discarder.
type Device struct {
	name     string
	size     uint64 // blocks
	readOnly bool
	zeroes   bool // the server can write zeros that take no room
	most     int  // blocks of a request
	n        *connection
	writes   writes
	closed   atomic.Bool
}

// Open connects to an export, and flushes it: a volume must not be recovered from data that the server may still lose.
// An export without FLUSH is refused, unless it is opened to be read only.
func Open(name string, o Options) (*Device, error) {
	d, err := open(name, o)
	if err != nil {
		return nil, &disk.Error{Op: "open", Path: name, Err: err}
	}
	return d, nil
}

func open(name string, o Options) (*Device, error) {
	t, err := parse(name)
	if err != nil {
		return nil, err
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	late := time.Now().Add(o.Timeout)
	dialer := net.Dialer{Deadline: late, KeepAliveConfig: net.KeepAliveConfig{
		Enable: true, Idle: 15 * time.Second, Interval: 15 * time.Second, Count: 3,
	}}
	raw, err := dialer.Dial(t.network, t.addr) // without delay, as Go does
	if err != nil {
		return nil, err
	}
	raw.SetDeadline(late)
	c, x, err := negotiate(raw, t)
	if err == nil {
		err = x.refused(o.ReadOnly)
	}
	if err != nil {
		raw.Close()
		return nil, err
	}
	raw.SetDeadline(time.Time{})
	d := &Device{
		name: name, size: x.size / disk.BlockSize, readOnly: o.ReadOnly, zeroes: x.flags&hasWriteZeroes != 0,
		most: min(requestBlocks, int(x.most/disk.BlockSize)), n: newConnection(raw, c),
	}
	d.writes.init(x.flags&hasFUA != 0, o.WriteBehind)
	if x.flags&hasFlush != 0 {
		if err := d.settle(settling); err != nil {
			d.Close()
			return nil, err
		}
	}
	return d, nil
}

// refused says why an export cannot be used, if so.
func (x *export) refused(readOnly bool) error {
	switch {
	case readOnly:
		return nil
	case x.flags&isReadOnly != 0:
		return fmt.Errorf("the export can only be read: %w", syscall.EROFS)
	case x.flags&hasFlush == 0:
		return errors.New("the server has no FLUSH for this export: nothing written there could be known to be durable")
	}
	return nil
}

// settle has the server make durable what earlier clients wrote.
func (d *Device) settle(patience time.Duration) error {
	t := time.AfterFunc(patience, func() { d.n.lose(fmt.Errorf("no answer to a flush for %v", patience)) })
	defer t.Stop()
	err := d.n.do(commandFlush, 0, 0)
	if d.readOnly && errors.Is(err, syscall.EPERM) {
		err = nil // nothing can have been written
	}
	return err
}

// ReadAt implements disk.Disk.
func (d *Device) ReadAt(a uint64, bufs [][]byte) (err error) {
	if err := disk.CheckTransfer("read", d.name, d.size, a, bufs); err != nil {
		return err
	}
	d.writes.settle(a, uint64(len(bufs)))
	var calls []*call
	d.parts(a, uint64(len(bufs)), func(at uint64, n int) {
		off, length := at*disk.BlockSize, uint32(n*disk.BlockSize)
		calls = append(calls, d.n.start(commandRead, 0, off, length, nil, bufs[at-a:][:n], nil))
	})
	for i, k := range calls {
		if e := <-k.done; err == nil && e != nil {
			err = d.error("read", a+uint64(i*d.most), e)
		}
	}
	return err
}

// WriteAt implements disk.Disk.
func (d *Device) WriteAt(a uint64, bufs [][]byte) error {
	if d.readOnly {
		return d.error("write", a, disk.ErrReadOnly)
	}
	if err := disk.CheckTransfer("write", d.name, d.size, a, bufs); err != nil {
		return err
	}
	if d.writes.behind {
		if err := cmp.Or(d.writes.failure(), d.n.end()); err != nil {
			return d.error("write", a, err)
		}
	}
	behind := d.writes.behind
	w := d.change(commandWrite, a, uint64(len(bufs)), bufs, behind)
	if behind {
		return nil
	}
	if at, err := d.writes.wait(w); err != nil {
		return d.error("write", at, err)
	}
	return nil
}

// change sends the requests of a write, of bufs, or of zeros. Of its end who waits for it is told, or if it is unheard,
// all that comes later.
func (d *Device) change(command uint16, a, n uint64, bufs [][]byte, unheard bool) *write {
	w := d.writes.begin(a, n, int((n+uint64(d.most)-1)/uint64(d.most)), command == commandWrite)
	flags := uint16(0)
	if w.Fua {
		flags = fua
	}
	d.parts(a, n, func(at uint64, n int) {
		var from [][]byte
		if bufs != nil {
			from = bufs[at-a:][:n]
		}
		d.n.start(command, flags, at*disk.BlockSize, uint32(n*disk.BlockSize), from, nil, func(err error) {
			if err != nil && unheard {
				err = d.error("write", at, err)
			}
			d.writes.end(w, at, err, unheard)
		})
	})
	return w
}

// parts cuts n blocks from a on into what a request takes.
func (d *Device) parts(a, n uint64, each func(at uint64, n int)) {
	for at := a; at < a+n; at += uint64(d.most) {
		each(at, int(min(uint64(d.most), a+n-at)))
	}
}

// Barrier implements disk.Disk. A failed Barrier is final: all later ones return its error.
func (d *Device) Barrier() error {
	if d.readOnly {
		return d.error("barrier", 0, disk.ErrReadOnly)
	}
	if err := d.n.end(); err != nil { // also where there is nothing to flush
		return d.error("barrier", 0, err)
	}
	if err := d.writes.barrier(func() error { return d.n.do(commandFlush, 0, 0) }); err != nil {
		return d.error("barrier", 0, err)
	}
	return nil
}

// Discards tells whether Discard is worth a try.
func (d *Device) Discards() bool { return d.zeroes && !d.readOnly }

// Discard implements disk.Discarder, by WRITE_ZEROES, for which the server may make holes. TRIM is no way to
// do it: after that anything may be read.
func (d *Device) Discard(a, n uint64) error {
	switch {
	case a > d.size || n > d.size-a:
		return d.error("discard", a, disk.ErrRange)
	case d.readOnly:
		return d.error("discard", a, disk.ErrReadOnly)
	case !d.zeroes:
		return d.error("discard", a, disk.ErrNoDiscard)
	}
	at, err := d.writes.wait(d.change(commandZeroes, a, n, nil, false))
	if errors.Is(err, syscall.EOPNOTSUPP) {
		err = errors.Join(disk.ErrNoDiscard, err)
	}
	if err != nil {
		return d.error("discard", at, err)
	}
	return nil
}

// Check looks whether the connection is there. If not, its error wraps ErrDisconnected.
func (d *Device) Check() error {
	if err := d.n.end(); err != nil {
		return d.error("check", 0, err)
	}
	return nil
}

// Size implements disk.Disk.
func (d *Device) Size() uint64 { return d.size }

// Path is the name that the export was opened with.
func (d *Device) Path() string { return d.name }

// Close implements disk.Disk. What is in flight fails.
func (d *Device) Close() error {
	if d.closed.Swap(true) {
		return d.error("close", 0, os.ErrClosed)
	}
	d.n.close()
	return nil
}

func (d *Device) error(op string, a uint64, err error) error {
	var e *disk.Error
	switch {
	case errors.As(err, &e): // of an earlier write, which says more
		return e
	case d.closed.Load() && errors.Is(err, ErrDisconnected):
		err = os.ErrClosed
	}
	if errors.Is(err, syscall.ENOSPC) && !errors.Is(err, disk.ErrNoRoom) {
		err = fmt.Errorf("%w: %w", disk.ErrNoRoom, err)
	}
	return &disk.Error{Op: op, Path: d.name, Block: a, Err: err}
}
