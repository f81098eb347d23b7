package disk

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

const deviceFlags = 0

// flushFD also empties the drive's cache, which fsync does not do on this
// system. File systems that know no such thing (network shares) get fsync.
func flushFD(fd int) error {
	_, err := unix.FcntlInt(uintptr(fd), unix.F_FULLFSYNC, 0)
	if err == unix.ENOTSUP || err == unix.EINVAL || err == unix.ENOTTY {
		return unix.Fsync(fd)
	}
	return err
}

// dropCache does nothing: this system has no call for it. So here the first barrier
// of a server that starts again after one that failed may promise too much.
func dropCache(int) error { return nil }

// push: this system has no call for it.
func push(int, int64, int64, bool) error { return nil }

func forget(int, int64, int64) error { return nil }

func deviceSize(*os.File) (uint64, error) {
	return 0, errors.New("block devices are supported on Linux only; use an image file")
}

func renameNew(from, to string) error {
	return unix.RenamexNp(from, to, unix.RENAME_EXCL)
}

// openDirect: this system has no direct writes of this kind.
func openDirect(*os.File) *os.File { return nil }

// directDevice: nor to devices.
func directDevice(*os.File) *os.File { return nil }

// fallocate: this system has no call that gives holes of a file room.
func fallocate(int, int64, int64) error { return unix.EOPNOTSUPP }

// punch: not done on this system.
func punch(int, int64, int64) error { return unix.EOPNOTSUPP }

func statusFD(fd int) (status, error) {
	var st unix.Stat_t
	err := retry(func() error { return unix.Fstat(fd, &st) })
	return statusFrom(&st), err
}

func statusPath(path string) (status, error) {
	var st unix.Stat_t
	err := retry(func() error { return unix.Stat(path, &st) })
	return statusFrom(&st), err
}

func statusFrom(st *unix.Stat_t) status {
	return status{identity{uint64(st.Dev), st.Ino}, uint64(st.Nlink), uint64(st.Size)}
}

// allocatedBytes is the room that a file takes on its host.
func allocatedBytes(fd int) (uint64, error) {
	var st unix.Stat_t
	err := retry(func() error { return unix.Fstat(fd, &st) })
	return uint64(st.Blocks) * 512, err
}

// freeBytes is the room that anybody may take.
func freeBytes(st *unix.Statfs_t) uint64 { return st.Bavail * uint64(st.Bsize) }

// backing is a file under a loop device, of which this system has none.
type backing struct {
	f    *os.File
	conn syscall.RawConn
	size uint64
}

func (d *File) lockLoops(func(error)) error { return nil }
