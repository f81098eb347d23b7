package disk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// A loop device is a second way to a file, on which a lock of the device has no effect.
// So the lock is always (also) that of the file.

// backing is the file under a loop device, open for the sake of its lock.
type backing struct {
	f    *os.File
	conn syscall.RawConn
	size uint64 // bytes
}

// loop is a loop device, as the kernel tells of it.
type loop struct {
	dev  string // its node, such as /dev/loop0
	path string // of the file under it, as it was when the device was made
}

// loopFile is the part of a device's directory in sysfs that names the file under it.
const loopFile = "loop/backing_file"

// lockLoops sees to it that no loop device makes two volumes of one.
func (d *File) lockLoops(warn func(error)) error {
	if warn == nil {
		warn = func(error) {}
	}
	if d.device {
		return d.lockBacking(warn)
	}
	if d.readOnly {
		return nil // who serves the loop device has the lock of the file
	}
	return d.refuseLoops()
}

// refuseLoops fails if a loop device is attached to the file.
func (d *File) refuseLoops() error {
	dirs, _ := filepath.Glob("/sys/block/loop*/" + loopFile)
	for _, dir := range dirs {
		l, err := readLoop(strings.TrimSuffix(dir, "/"+loopFile))
		if err != nil {
			continue // detached meanwhile
		}
		id, err := l.identity()
		if err != nil { // only root may ask the device
			st, e := statusPath(l.path)
			id, err = st.id, e
		}
		if err == nil && id == d.id {
			err := fmt.Errorf("%w, or may be: %s is attached to the file (losetup -d %s detaches it)", ErrLocked, l.dev, l.dev)
			return told(err, UseOf(l.dev))
		}
	}
	return nil
}

// lockBacking locks the files under a device that is a loop device, a partition of one, or
// made of such.
func (d *File) lockBacking(warn func(error)) error {
	st, err := d.f.Stat()
	if err != nil {
		return err
	}
	for _, l := range loopsUnder(deviceDir(st)) {
		b, err := l.open(d.readOnly)
		if errors.Is(err, ErrLocked) {
			return fmt.Errorf("%w: it is about %s, the file under %s", err, l.path, l.dev)
		}
		if err != nil {
			warn(fmt.Errorf("%s is the file under %s and cannot be locked (%w): make sure that nobody else serves it",
				l.path, l.dev, err))
			continue
		}
		d.backing = append(d.backing, b)
	}
	return nil
}

// deviceDir is the directory of a device in sysfs.
func deviceDir(st os.FileInfo) string {
	rdev := uint64(st.Sys().(*syscall.Stat_t).Rdev)
	return fmt.Sprintf("/sys/dev/block/%d:%d", unix.Major(rdev), unix.Minor(rdev))
}

// loopsUnder returns the loop devices that the device with directory dir in sysfs is, is
// a partition of, or is made of, and those below.
func loopsUnder(dir string) (found []loop) {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil
	}
	if _, err := os.Stat(filepath.Join(dir, "partition")); err == nil {
		dir = filepath.Dir(dir)
	}
	if l, err := readLoop(dir); err == nil {
		found = append(found, l)
		if st, err := os.Stat(l.path); err == nil && st.Mode()&os.ModeDevice != 0 {
			found = append(found, loopsUnder(deviceDir(st))...)
		}
	}
	parts, _ := filepath.Glob(dir + "/slaves/*")
	for _, p := range parts {
		found = append(found, loopsUnder(p)...)
	}
	return found
}

// readLoop reads what sysfs says of a loop device.
func readLoop(dir string) (loop, error) {
	b, err := os.ReadFile(filepath.Join(dir, loopFile))
	if err != nil {
		return loop{}, err
	}
	return loop{dev: "/dev/" + filepath.Base(dir), path: strings.TrimSuffix(string(b), "\n")}, nil
}

// identity asks the device for the identity of the file under it.
func (l loop) identity() (identity, error) {
	f, err := os.OpenFile(l.dev, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return identity{}, cause(err)
	}
	defer f.Close()
	info, err := unix.IoctlLoopGetStatus64(int(f.Fd()))
	if err != nil {
		return identity{}, err
	}
	return identity{info.Device, info.Inode}, nil
}

// open opens and locks the file under the device.
func (l loop) open(shared bool) (_ *backing, err error) {
	f, err := os.OpenFile(l.path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, cause(err)
	}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	b := &backing{f: f}
	if b.conn, err = f.SyscallConn(); err != nil {
		return nil, err
	}
	st, err := statusOf(b.conn)
	if err != nil {
		return nil, err
	}
	if id, e := l.identity(); e == nil && id != st.id {
		return nil, errors.New("another file has its name now")
	}
	b.size = st.size
	return b, lockFD(b.conn, shared)
}
