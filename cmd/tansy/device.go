package main

import (
	"errors"
	"os"
	"path/filepath"

	"tansy/disk"
	"tansy/disk/nbd"
)

// device is what a volume lies on: an image, a block device, or an export of an NBD server.
type device interface {
	disk.Disk
	Path() string
	Check() error // as that of disk.File
	Discards() bool
}

// openDevice opens what name names.
func openDevice(name string, o disk.FileOptions) (device, error) {
	if nbd.IsName(name) {
		d, err := nbd.Open(name, nbd.Options{ReadOnly: o.ReadOnly})
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

// missing tells that there is nothing of that name: a volume may be made there. An export is never missing in this sense.
func missing(name string) bool {
	if nbd.IsName(name) {
		return false
	}
	_, err := os.Stat(name)
	return errors.Is(err, os.ErrNotExist)
}

// anywhere is name as it means the same from any working directory.
func anywhere(name string) (string, error) {
	if nbd.IsName(name) {
		return name, nil
	}
	return filepath.Abs(name)
}
