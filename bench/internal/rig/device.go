//go:build linux

package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// A Device is a loop device on an image. Its blocks have all been written once, so that writing one again changes
// nothing in the file system below, and a barrier of the device is one fsync of the image whoever asks for it. The loop
// device goes past the page cache (O_DIRECT) if the file system below allows: what a file system does not cache itself
// comes from the disk.
type Device struct {
	Image, Node string // paths
	Bytes       int64
	Direct      bool // the loop device goes past the page cache
}

// NewDevice makes one of size bytes, whose image is in dir.
func NewDevice(ctx context.Context, dir string, size int64) (d *Device, err error) {
	d = &Device{Image: filepath.Join(dir, "device.img"), Bytes: size}
	if err := Fill(ctx, d.Image, size); err != nil {
		return nil, err
	}
	// A losetup that is killed might leave a device that nobody knows of.
	if d.Node, err = Command(context.Background(), "losetup", "--direct-io=on", "-f", "--show", d.Image); err != nil {
		if d.Node, err = Command(context.Background(), "losetup", "-f", "--show", d.Image); err != nil {
			return nil, err
		}
	}
	queue := filepath.Join("/sys/block", filepath.Base(d.Node))
	dio, _ := os.ReadFile(filepath.Join(queue, "loop/dio"))
	d.Direct = strings.TrimSpace(string(dio)) == "1"
	return d, nil
}

// Fill makes an image of size bytes, all of them written.
func Fill(ctx context.Context, path string, size int64) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	zeros := make([]byte, 1<<20)
	for off := int64(0); off < size && ctx.Err() == nil; off += int64(len(zeros)) {
		if _, err := f.Write(zeros); err != nil {
			return err
		}
	}
	return errors.Join(ctx.Err(), f.Sync())
}

// Close takes the device away; the image stays.
func (d *Device) Close() error {
	_, err := Command(context.Background(), "losetup", "-d", d.Node)
	return err
}

// String says what it is.
func (d *Device) String() string {
	past := "past"
	if !d.Direct {
		past = "through"
	}
	return fmt.Sprintf("a loop device of %d GiB, %s the page cache of the file system below", d.Bytes>>30, past)
}
