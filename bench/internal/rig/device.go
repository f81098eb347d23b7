//go:build linux

package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// A Device is a block device that is the same for all who are measured: their volumes and file systems lie on it.
type Device struct {
	Node   string // path
	Bytes  int64
	Direct bool // of a loop device: it goes past the page cache

	kind Kind
	end  []func() error
}

// NewDevice makes one of the size in bytes. What it needs of files lies in dir. A device of memory takes as much of
// that as was written to it.
func NewDevice(ctx context.Context, kind Kind, dir string, size int64) (d *Device, err error) {
	d = &Device{Bytes: size, kind: kind}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.Close())
		}
	}()
	switch kind.name {
	case Zram.name:
		return d, d.zram()
	case Memory.name:
		if dir, err = d.inMemory(dir); err == nil && kind.barrier > 0 {
			dir, err = d.slowed(dir)
		}
		if err == nil {
			err = d.loop(dir, func(image string) error { return sparse(image, size) })
		}
		return d, err
	}
	return d, d.loop(dir, func(image string) error { return Fill(ctx, image, size) })
}

// loop makes a loop device on an image in dir, which create makes. It goes past the page cache (O_DIRECT) if the file
// system below allows: what a file system does not cache itself comes from the disk.
func (d *Device) loop(dir string, create func(image string) error) error {
	image := filepath.Join(dir, "device.img")
	if err := create(image); err != nil {
		return err
	}
	// A losetup that is killed might leave a device that nobody knows of.
	ctx := context.Background()
	node, err := Command(ctx, "losetup", "--direct-io=on", "-f", "--show", image)
	if err != nil {
		node, err = Command(ctx, "losetup", "-f", "--show", image)
	}
	if err != nil {
		return err
	}
	d.Node = node
	d.end = append(d.end, func() error {
		_, err := Command(ctx, "losetup", "-d", node)
		return err
	})
	dio, _ := os.ReadFile(filepath.Join("/sys/block", filepath.Base(node), "loop/dio"))
	d.Direct = strings.TrimSpace(string(dio)) == "1"
	return nil
}

// zram makes a device of compressed memory: a new one, so that none is touched that is in use.
func (d *Device) zram() error {
	const control = "/sys/class/zram-control/"
	number, err := os.ReadFile(control + "hot_add")
	if err != nil {
		return fmt.Errorf("no zram here: %w", err)
	}
	name := "zram" + strings.TrimSpace(string(number))
	queue := filepath.Join("/sys/block", name)
	d.Node = "/dev/" + name
	d.end = append(d.end, func() error {
		return errors.Join(os.WriteFile(queue+"/reset", []byte("1"), 0),
			os.WriteFile(control+"hot_remove", []byte(strings.TrimPrefix(name, "zram")), 0))
	})
	return os.WriteFile(queue+"/disksize", fmt.Append(nil, d.Bytes), 0)
}

// inMemory makes a folder in dir whose files are in memory.
func (d *Device) inMemory(dir string) (string, error) {
	at := filepath.Join(dir, "memory")
	if err := os.Mkdir(at, 0o700); err != nil {
		return "", err
	}
	if err := unix.Mount("tansy-bench", at, "tmpfs", 0, fmt.Sprintf("size=%d", d.Bytes+(16<<20))); err != nil {
		return "", fmt.Errorf("mount tmpfs: %w", err)
	}
	d.end = append(d.end, func() error { return Unmount(at) })
	return at, nil
}

func sparse(image string, size int64) error {
	f, err := os.OpenFile(image, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(size), f.Close())
}

// Fill makes an image of size bytes, all of them written once, so that writing one again changes nothing in the file
// system below, and a barrier of a loop device on it is one fsync of the image whoever asks for it.
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

// Close takes the device away, what was made last first; an image on a disk stays.
func (d *Device) Close() (err error) {
	for len(d.end) > 0 {
		last := len(d.end) - 1
		err = errors.Join(err, d.end[last]())
		d.end = d.end[:last]
	}
	return err
}

// String says what it is.
func (d *Device) String() string {
	size := fmt.Sprintf("%d GiB", d.Bytes>>30)
	if d.Bytes%(1<<30) != 0 {
		size = fmt.Sprintf("%d MiB", d.Bytes>>20)
	}
	switch d.kind.name {
	case Zram.name:
		return "a zram device (compressed memory) of " + size
	case Memory.name:
		if d.kind.barrier > 0 {
			return fmt.Sprintf("a loop device of %s in memory, whose barriers take %v longer", size, d.kind.barrier)
		}
		return fmt.Sprintf("a loop device of %s in memory", size)
	}
	past := "past"
	if !d.Direct {
		past = "through"
	}
	return fmt.Sprintf("a loop device of %s, %s the page cache of the file system below", size, past)
}
