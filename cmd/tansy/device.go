package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"tansy/disk"
	"tansy/disk/nbd"
	"tansy/disk/rbd"
	"tansy/internal/volumeend"
	"tansy/mount"
	volbackup "tansy/offline/backup"
)

// device is what a volume lies on: an image, a block device, an export of an NBD server, or an image of Ceph.
type device interface {
	disk.Disk
	Path() string
	Check() error // as that of disk.File
	Discards() bool
}

// remote tells whether name is that of something a server has: it is there or not, and has a size of its own.
func remote(name string) bool { return nbd.IsName(name) || rbd.IsName(name) }

// openDevice opens what name names.
func openDevice(name string, o disk.FileOptions) (device, error) {
	if err := strange(name); err != nil {
		return nil, err
	}
	if rbd.IsName(name) {
		d, err := rbd.Open(context.Background(), name, rbd.Options{ReadOnly: o.ReadOnly})
		if err != nil {
			return nil, err
		}
		return d, nil
	}
	if nbd.IsName(name) {
		d, err := nbd.Open(name, nbd.Options{ReadOnly: o.ReadOnly, WriteBehind: true})
		if err != nil {
			return nil, err
		}
		return d, nil
	}
	if volbackup.Is(name) {
		return openBackup(name, o)
	}
	if err := noVolume(name); err != nil {
		return nil, err
	}
	d, err := disk.OpenFile(name, o)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w%s", err, didYouMean(similar(name)))
	}
	if err != nil {
		return nil, err
	}
	return d, nil
}

// openVolume opens a device with a volume on it: where the device is larger, the part of it that the volume uses, with
// a word about that for o.Warn.
func openVolume(name string, o disk.FileOptions) (device, error) {
	d, err := openDevice(name, o)
	if err != nil {
		return nil, err
	}
	return volumeOn(d, o.Warn), nil
}

// volumeOn is the part of d that its volume uses, or d.
func volumeOn(d device, warn func(error)) device {
	end, _ := volumeend.Find(d)
	return partOf(d, end, warn)
}

// partOf is the first blocks of d, up to end.
func partOf(d device, end uint64, warn func(error)) device {
	if end == d.Size() {
		return d
	}
	return part{volumeend.Part(d, end, func(err error) { warn(fmt.Errorf("%s: %w", d.Path(), err)) }), d}
}

// part is the first blocks of a device.
type part struct {
	*disk.Prefix
	whole device
}

// Path returns the path of the whole device. Check and Discards are those of the whole device, too.
func (p part) Path() string { return p.whole.Path() }

// Check implements device.
func (p part) Check() error { return p.whole.Check() }

// Discards implements device.
func (p part) Discards() bool { return p.whole.Discards() }

// missing tells that there is nothing of that name: a volume may be made there. What a server has is never missing in
// this sense.
func missing(name string) bool {
	if remote(name) {
		return false
	}
	_, err := os.Stat(name)
	return errors.Is(err, os.ErrNotExist)
}

// anywhere is name as it means the same from any working directory.
func anywhere(name string) (string, error) {
	if err := strange(name); err != nil { // it has no scheme any more when it is absolute
		return "", err
	}
	if remote(name) {
		return name, nil
	}
	return filepath.Abs(name)
}

// sameFile tells whether two names are of one file or device.
func sameFile(a, b string) bool {
	x, err1 := os.Stat(a)
	y, err2 := os.Stat(b)
	return a == b || err1 == nil && err2 == nil && os.SameFile(x, y)
}

// mountedOn returns an error for the directory of a mounted volume, in the place of the volume.
func mountedOn(dir string) error {
	at, err := mount.On(resolve(dir))
	if err != nil || !at.Ours() {
		return nil
	}
	return fmt.Errorf("%s is the directory on which the volume %s is mounted: tansy umount %s, and give the volume",
		dir, at.Source, quoted(dir))
}

// noVolume returns an error for a directory, or for what is neither a file nor a block device, in the place of a
// volume.
func noVolume(name string) error {
	st, err := os.Stat(name)
	if err != nil {
		return nil // which others say
	}
	switch kind := st.Mode().Type(); {
	case kind.IsDir():
		if err := mountedOn(name); err != nil {
			return err
		}
		return fmt.Errorf("%s is a directory: give an image file or a block device", name)
	case kind.IsRegular() || kind&(os.ModeDevice|os.ModeCharDevice) == os.ModeDevice:
		return nil
	}
	return fmt.Errorf("%s is neither a file nor a block device, which a volume can be on", name)
}
