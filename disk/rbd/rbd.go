// Package rbd is a disk.Disk on an image of Ceph: rbd:POOL/IMAGE[?id=USER&conf=FILE&keyring=FILE].
//
// A process of its own, the helper (nbdkit with helper.py, or with plugin/helper.c if that is compiled), holds the
// image's exclusive lock and serves the image on a socket that nobody else can reach; package nbd is its client. The
// lock is in the mode that is not handed over when somebody asks for it. It goes to another when the owner gives it
// back, or is silent for longer than the cluster waits, or when it is taken by force; in the last two cases the helper
// is put on the cluster's blocklist first, and changes nothing from then on. What it is asked for fails, and so does
// the connection when the helper ends; both are final.
//
// The helper ends with this process, and gives the lock back when it can.
package rbd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tansy/disk"
	"tansy/disk/nbd"
)

// Options are options for Open.
type Options struct {
	// ReadOnly opens without the right to write. The lock is taken all the same: what another writes meanwhile cannot
	// be read.
	ReadOnly bool
	// Wait waits for an owner of the lock that lives, in place of an error.
	Wait bool
	// Take takes the lock from an owner that lives.
	Take bool
	// Patience, if not 0, is how long this process may ask for nothing before the helper ends it.
	Patience time.Duration
	// Waiting, if not nil, is told who has the lock when it is waited for.
	Waiting func(owner string)
}

// Device is an open image.
type Device struct {
	nbd    *nbd.Device
	name   string
	helper *helper
}

// Open takes the lock of an image and opens it. The end of ctx ends the waiting.
func Open(ctx context.Context, name string, o Options) (*Device, error) {
	d, err := open(ctx, name, o)
	if err != nil {
		return nil, &disk.Error{Op: "open", Path: name, Err: err}
	}
	return d, nil
}

func open(ctx context.Context, name string, o Options) (*Device, error) {
	t, err := parse(name)
	if err != nil {
		return nil, err
	}
	h, err := start(t, o)
	if err != nil {
		return nil, err
	}
	if err = h.locked(ctx, o.Waiting); err == nil {
		var n *nbd.Device
		if n, err = nbd.Open(h.export(), nbd.Options{ReadOnly: o.ReadOnly, WriteBehind: true}); err == nil {
			h.forgetFiles()
			return &Device{n, name, h}, nil
		}
		err = fmt.Errorf("%w%s", cause(err), h.lastWords())
	}
	h.stop()
	return nil, err
}

// cause is err without the name of the private socket.
func cause(err error) error {
	var e *disk.Error
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}

// named is err with the image's name in place of the socket's.
func (d *Device) named(err error) error {
	var e *disk.Error
	if errors.As(err, &e) {
		return &disk.Error{Op: e.Op, Path: d.name, Block: e.Block, Err: e.Err}
	}
	return err
}

// ReadAt implements disk.Disk.
func (d *Device) ReadAt(a uint64, bufs [][]byte) error { return d.named(d.nbd.ReadAt(a, bufs)) }

// WriteAt implements disk.Disk.
func (d *Device) WriteAt(a uint64, bufs [][]byte) error { return d.named(d.nbd.WriteAt(a, bufs)) }

// Barrier implements disk.Disk.
func (d *Device) Barrier() error { return d.named(d.nbd.Barrier()) }

// Discard implements disk.Discarder.
func (d *Device) Discard(a, n uint64) error { return d.named(d.nbd.Discard(a, n)) }

// Discards tells whether Discard is worth a try.
func (d *Device) Discards() bool { return d.nbd.Discards() }

// Size implements disk.Disk.
func (d *Device) Size() uint64 { return d.nbd.Size() }

// Path is the name that the image was opened with.
func (d *Device) Path() string { return d.name }

// Check looks whether the helper is there.
func (d *Device) Check() error { return d.named(d.nbd.Check()) }

// Close implements disk.Disk. It gives the lock back.
func (d *Device) Close() error {
	if err := d.nbd.Close(); err != nil {
		return d.named(err)
	}
	d.helper.stop()
	return nil
}
