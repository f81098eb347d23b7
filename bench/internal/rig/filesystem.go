//go:build linux

package rig

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// MakeExt4 makes ext4 on the device: all of it now, not in the background while something is measured.
func (d *Device) MakeExt4(ctx context.Context) error {
	_, err := Command(ctx, "mkfs.ext4", "-q", "-F", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0", d.Node)
	return err
}

// Mounted makes ext4 on the device, and mounts it on dir until Close.
func (d *Device) Mounted(ctx context.Context, dir string) error {
	if err := d.MakeExt4(ctx); err != nil {
		return err
	}
	if err := unix.Mount(d.Node, dir, "ext4", unix.MS_NOATIME, ""); err != nil {
		return fmt.Errorf("mount ext4: %w", err)
	}
	d.end = append(d.end, func() error { return Unmount(dir) })
	return nil
}

// Unmount waits for those who still use the files: they are ending.
func Unmount(dir string) error {
	err := unix.Unmount(dir, 0)
	for wait := time.Millisecond; errors.Is(err, unix.EBUSY) && wait < 20*time.Second; wait *= 2 {
		time.Sleep(wait)
		err = unix.Unmount(dir, 0)
	}
	if err != nil {
		err = fmt.Errorf("unmount %s: %w", dir, err)
	}
	return err
}
