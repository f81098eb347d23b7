package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"tansy/disk"
	"tansy/disk/nbd"
	"tansy/disk/rbd"
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
	d, err := disk.OpenFile(name, o)
	if err != nil {
		return nil, err
	}
	return d, nil
}

// missing tells that there is nothing of that name: a volume may be made there. What a server has is never missing in this sense.
func missing(name string) bool {
	if remote(name) {
		return false
	}
	_, err := os.Stat(name)
	return errors.Is(err, os.ErrNotExist)
}

// anywhere is name as it means the same from any working directory.
func anywhere(name string) (string, error) {
	if remote(name) {
		return name, nil
	}
	if err := strange(name); err != nil { // it has no scheme any more when it is absolute
		return "", err
	}
	return filepath.Abs(name)
}
