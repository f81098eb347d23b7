//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A device is a loop device on an image. Its blocks have all been written once, so that writing one again changes
// nothing in the file system below, and a barrier of the device is one fsync of the image whoever asks for it. The loop
// device goes past the page cache (O_DIRECT) if the file system below allows: what a file system does not cache itself comes from the disk.
type device struct {
	image, node string
	bytes       int64
	direct      bool // the loop device goes past the page cache
}

func newDevice(ctx context.Context, dir string, size int64) (d *device, err error) {
	d = &device{image: filepath.Join(dir, "device.img"), bytes: size}
	if err := fill(ctx, d.image, size); err != nil {
		return nil, err
	}
	// A losetup that is killed might leave a device that nobody knows of.
	if d.node, err = command(context.Background(), "losetup", "--direct-io=on", "-f", "--show", d.image); err != nil {
		if d.node, err = command(context.Background(), "losetup", "-f", "--show", d.image); err != nil {
			return nil, err
		}
	}
	queue := filepath.Join("/sys/block", filepath.Base(d.node))
	dio, _ := os.ReadFile(filepath.Join(queue, "loop/dio"))
	d.direct = strings.TrimSpace(string(dio)) == "1"
	return d, nil
}

// fill makes an image of size bytes, all of them written.
func fill(ctx context.Context, path string, size int64) error {
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

func (d *device) close() error {
	_, err := command(context.Background(), "losetup", "-d", d.node)
	return err
}

// command runs a program to its end and returns what it says. It is not told when somebody types Ctrl-C: the context tells it.
func command(ctx context.Context, name string, args ...string) (string, error) {
	c := exec.CommandContext(ctx, name, args...)
	c.SysProcAttr = apart
	return output(c)
}

// output runs c to its end and returns what it says, which is part of the error if it fails.
func output(c *exec.Cmd) (string, error) {
	out, err := c.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s", strings.Join(c.Args, " "), err, out)
	}
	return strings.TrimSpace(string(out)), err
}
