package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"tansy/disk"
	volbackup "tansy/offline/backup"
	"tansy/ops/control"
)

// controlling is how other programs of this machine reach a volume that is open here: flags of serve and mount.
type controlling struct {
	at    string   // the folder of the sockets; "": the usual one
	spill byteSize // of what is kept for moments, on disk
}

// noControl is the value of --control for no sockets.
const noControl = "none"

func (c *controlling) flags(f *flagSet) {
	c.spill = disk.DefaultMomentSpill
	f.StringVar(&c.at, "control", "", "folder `DIR` for the socket of each volume, over which tansy backup, check, "+
		"grow, and label reach it while it is in use, or none (default /run/tansy for root, else that of the service "+
		"or the session)")
	f.Var(&c.spill, "moment-spill", "keep up to so much of what is overwritten while a check or a backup reads the "+
		"volume as it was, in a file in $TMPDIR or /var/tmp, after the first 64M; with more, that ends")
}

// wrong says what is wrong with the flags, or nothing.
func (c *controlling) wrong() string {
	if c.spill < disk.BlockSize {
		return fmt.Sprintf("--moment-spill %v is too little: give 1G, for instance", &c.spill)
	}
	return ""
}

// moments says what is kept for moments.
func (c *controlling) moments() disk.MomentOptions { return disk.MomentOptions{Spill: uint64(c.spill)} }

// serve has programs reach a volume. Where nobody has chosen the folder it is no error if it cannot be used.
func (c *controlling) serve(v *volume) error {
	dir := c.at
	if dir == "" {
		dir = control.Dir()
	}
	if dir == "" || dir == noControl || volbackup.Is(v.image) { // whose socket would be taken for that of its volume
		return nil
	}
	source := v.source()
	if absolute, err := filepath.Abs(v.image); err == nil && !remote(v.image) {
		source.Image = absolute // so that a copy, which has the same UUID, can be told from it
	}
	s, err := control.Serve(dir, control.Volume{
		ID: v.fs.VolumeID(), Take: v.fs.Moment, Label: v.fs, Source: source,
	}, v.log)
	switch {
	case err == nil:
		v.control = s
	case c.at != "":
		return fmt.Errorf("--control: %w", err)
	default:
		v.log.Warn("tansy check, backup, grow, and label cannot reach the volume while it is in use", "err", err)
	}
	return nil
}

// socketOf is the socket of the server of this machine that has a volume; ok: there is one that we may use.
func socketOf(name string) (socket string, ok bool) {
	if remote(name) {
		return "", false
	}
	id, err := control.VolumeOf(name)
	if err != nil {
		return "", false
	}
	return control.Find("", id)
}

// openToRead opens a volume as openVolume does, read-only. One that is in use on this machine it has as it is at one
// moment, from the program that uses it, with a word about that for warn.
func openToRead(ctx context.Context, name string, warn func(error)) (device, error) {
	d, err := openVolume(name, disk.FileOptions{ReadOnly: true, Warn: warn})
	id, none := [16]byte{}, error(nil)
	switch {
	case err == nil && remote(name): // which others may have open for all that
		id, none = control.VolumeOn(d)
	case errors.Is(err, disk.ErrLocked):
		id, none = control.VolumeOf(name)
	default:
		return d, err
	}
	socket, ok := control.Find("", id)
	if none != nil || !ok {
		return d, err
	}
	if err == nil {
		d.Close()
	}
	m, err := control.Take(ctx, socket)
	if err != nil {
		return nil, err
	}
	if m.Volume != id {
		return nil, errors.Join(fmt.Errorf("%s: the server on %s has another volume", name, socket), m.Close())
	}
	if copied(name, m.Image) {
		return nil, errors.Join(errCopied(name, socket, m.Image), m.Close())
	}
	warn(fmt.Errorf("%s is in use: what follows is about what it was at %s", name, m.When.Format("15:04:05")))
	return atMoment{m, name}, nil
}

// copied tells that two images are known to be two files: a copy of an image has its UUID.
func copied(name, served string) bool {
	one, err := os.Stat(name)
	other, err2 := os.Stat(served)
	return err == nil && err2 == nil && filepath.IsAbs(served) && one.Mode().IsRegular() && other.Mode().IsRegular() &&
		!os.SameFile(one, other)
}

func errCopied(name, socket, served string) error {
	return fmt.Errorf("%s is in use, and the server on %s has another image of the same volume: %s", name, socket, served)
}

// atMoment is a moment of a volume in use, as a device.
type atMoment struct {
	*control.Moment
	name string
}

// Path returns the name of the volume.
func (t atMoment) Path() string { return t.name }

// Check implements device. A moment that is lost says so when it is read.
func (t atMoment) Check() error { return nil }

// Discards implements device.
func (t atMoment) Discards() bool { return false }

// servedBy is the volume of the server on a socket, which is to be that in the image name.
func servedBy(socket, name string) (control.Served, error) {
	served, err := control.Which(socket)
	if err == nil && copied(name, served.Image) {
		err = errCopied(name, socket, served.Image)
	}
	return served, err
}

// askInUse has the program of this machine that has a volume open grow it; asked: there is one.
func (o *growth) askInUse(f *flagSet, name string) (code int, asked bool) {
	socket, ok := socketOf(name)
	if !ok {
		return 0, false
	}
	if _, err := servedBy(socket, name); err != nil {
		return fail("grow", err), true
	}
	return o.askAt(f, control.Client(socket), control.URL("/grow")), true
}
