package floor

import (
	"context"
	"os"
	"path/filepath"

	"tansy/bench/internal/rig"
	"tansy/disk"
)

// volumeDevice makes what the volume of a server is to lie on, unless that is an ordinary file. The server and its log
// are in dir. end takes it away, and is never nil.
func (o *options) volumeDevice(ctx context.Context, dir string) (end func(), err error) {
	if !o.device.Device() {
		return func() {}, nil
	}
	d, err := o.newDevice(ctx, filepath.Join(dir, "device"))
	if err != nil {
		return func() {}, err
	}
	o.volume = d.Node
	return func() { d.Close() }, nil
}

// floorFolder makes the folder for the floors: on such a device as the volume, with ext4, or else dir.
func (o *options) floorFolder(ctx context.Context, dir string) (folder string, end func(), err error) {
	if !o.device.Device() {
		return dir, func() {}, nil
	}
	d, err := o.newDevice(ctx, filepath.Join(dir, "floor-device"))
	if err != nil {
		return "", func() {}, err
	}
	end = func() { d.Close() }
	folder = filepath.Join(dir, "floor")
	if err = os.Mkdir(folder, 0o700); err == nil {
		err = d.Mounted(ctx, folder)
	}
	return folder, end, err
}

func (o *options) newDevice(ctx context.Context, dir string) (*rig.Device, error) {
	size, err := parseSize(o.size)
	if err != nil {
		return nil, err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	return rig.NewDevice(ctx, o.device, dir, int64(size)/disk.BlockSize*disk.BlockSize)
}
