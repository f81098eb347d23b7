package disk

import (
	"errors"
	"os"

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

func forget(int, int64, int64) error { return nil }

func deviceSize(*os.File) (uint64, error) {
	return 0, errors.New("block devices are supported on Linux only; use an image file")
}

func renameNew(from, to string) error {
	return unix.RenamexNp(from, to, unix.RENAME_EXCL)
}

// openDirect: this system has no direct writes of this kind.
func openDirect(*os.File) *os.File { return nil }
