//go:build linux

package mount

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"tansy/test/kit/mounttest"
)

// Requests of ioctl(2) for whole file systems, as linux/fs.h and linux/fiemap.h have them.
const (
	fifreeze   = 0xc0045877
	fitrim     = 0xc0185879
	fiemap     = 0xc020660b
	fsShutdown = 0x8004587d
	fsLabel    = 0x81009431
	fsUUID     = 0x80111500
)

// ioctl calls ioctl(2), with room for whatever the request gives back.
func ioctl(f *os.File, request uintptr) error {
	var room [512]byte
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), request, uintptr(unsafe.Pointer(&room)))
	if errno != 0 {
		return errno
	}
	return nil
}

// swapFile makes a file that could be swapped to, with all its blocks.
func swapFile(t *testing.T, path string) {
	t.Helper()
	const pages = 64
	b := make([]byte, pages*4096)
	for i := range b {
		b[i] = 1
	}
	clear(b[:4096])
	binary.NativeEndian.PutUint32(b[1024:], 1)
	binary.NativeEndian.PutUint32(b[1028:], pages-1)
	copy(b[4086:], "SWAPSPACE2")
	must(t, os.WriteFile(path, b, 0o600))
}

// What the guide says of calls for a whole file system: which error each has, and that the mount goes on behind it.
func TestWholeFileSystem(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("root alone may ask for these")
	}
	bin := mounttest.Build(t)
	for _, kind := range []string{"image", "block device"} {
		t.Run(kind, func(t *testing.T) {
			image := mounttest.Volume(t, bin, "64M")
			source, flags := image, []string(nil)
			if kind == "block device" {
				source, flags = loop(t, image), []string{"-o", "blkdev"}
			}
			m := mounttest.New(t, bin, source, flags...)
			path := filepath.Join(m.Dir, "f")
			swapFile(t, path)
			dir, err := os.Open(m.Dir)
			must(t, err)
			file, err := os.OpenFile(path, os.O_RDWR, 0)
			must(t, err)
			for name, c := range map[string]struct {
				of      *os.File
				request uintptr
				want    error
			}{
				"FIFREEZE":          {dir, fifreeze, unix.EOPNOTSUPP},
				"FITRIM":            {dir, fitrim, unix.ENOTTY},
				"FS_IOC_SHUTDOWN":   {dir, fsShutdown, unix.ENOTTY},
				"FS_IOC_FIEMAP":     {file, fiemap, unix.EOPNOTSUPP},
				"FS_IOC_GETFSLABEL": {dir, fsLabel, unix.ENOTTY},
				"FS_IOC_GETFSUUID":  {dir, fsUUID, unix.ENOTTY},
			} {
				if err := ioctl(c.of, c.request); err != c.want {
					t.Errorf("%s: %v, want %v", name, err, c.want)
				}
			}
			name, err := unix.BytePtrFromString(path)
			must(t, err)
			if _, _, errno := unix.Syscall(unix.SYS_SWAPON, uintptr(unsafe.Pointer(name)), 0, 0); errno != unix.EINVAL {
				t.Errorf("swapon: %v, want %v", errno, unix.EINVAL)
				if errno == 0 {
					unix.Syscall(unix.SYS_SWAPOFF, uintptr(unsafe.Pointer(name)), 0, 0)
				}
			}
			_, err = file.WriteAt([]byte("further"), 0)
			must(t, err)
			must(t, file.Sync())
			must(t, file.Close())
			must(t, dir.Close())
			m.Unmount(t, bin, source)
		})
	}
}
