package disk

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// deviceFlags: the kernel refuses an exclusive open of a device that is mounted
// or part of another volume.
const deviceFlags = os.O_EXCL

// flushFD makes data, and the metadata needed to find it, durable.
func flushFD(fd int) error { return unix.Fdatasync(fd) }

// dropCache drops what the page cache has of the file, but for dirty pages.
func dropCache(fd int) error { return unix.Fadvise(fd, 0, 0, unix.FADV_DONTNEED) }

// forget is dropCache for n bytes from off on.
func forget(fd int, off, n int64) error { return unix.Fadvise(fd, off, n, unix.FADV_DONTNEED) }

// push begins to write what the page cache has of n bytes from off on, or waits until what was begun is written.
func push(fd int, off, n int64, wait bool) error {
	how := unix.SYNC_FILE_RANGE_WRITE
	if wait {
		how = unix.SYNC_FILE_RANGE_WAIT_BEFORE
	}
	switch err := unix.SyncFileRange(fd, off, n, how); err {
	case unix.ENOSYS, unix.ESPIPE, unix.EPERM: // no such call here: the barrier does it all
		return nil
	default:
		return err
	}
}

// deviceSize is the size of a block device in bytes.
func deviceSize(f *os.File) (uint64, error) {
	n, err := f.Seek(0, io.SeekEnd) // as BLKGETSIZE64, but of the same width everywhere
	return uint64(n), err
}

// renameNew renames a file unless the new name is taken.
func renameNew(from, to string) error {
	return unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
}

// openDirect opens f again for direct writes, or returns nil. On these file systems a
// direct write and a cached one exclude each other, so that the kernel can drop what
// the cache has of the blocks written.
func openDirect(f *os.File) *os.File {
	var fs unix.Statfs_t
	if unix.Fstatfs(int(f.Fd()), &fs) != nil || (fs.Type != unix.EXT4_SUPER_MAGIC && fs.Type != unix.XFS_SUPER_MAGIC) {
		return nil
	}
	return directDevice(f)
}

// directDevice does so, whatever it lies on.
func directDevice(f *os.File) *os.File {
	again, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", f.Fd()), os.O_RDWR|unix.O_DIRECT, 0)
	if err != nil {
		return nil
	}
	return again
}

// fallocate gives a part of the file room on its host, and leaves its size alone.
func fallocate(fd int, off, length int64) error {
	return unix.Fallocate(fd, unix.FALLOC_FL_KEEP_SIZE, off, length)
}

// punch makes a part of a file or device zeros that take no room. A device that has no quick way to
// that refuses.
func punch(fd int, off, length int64) error {
	return unix.Fallocate(fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, off, length)
}

// statusMask asks for no times: once somebody has seen the time stamps of a file, each
// write gives it new ones, and its inode is written again (multigrain time stamps).
const statusMask = unix.STATX_TYPE | unix.STATX_INO | unix.STATX_NLINK | unix.STATX_SIZE

func statusFD(fd int) (status, error) { return statx(fd, "", unix.AT_EMPTY_PATH) }

func statusPath(path string) (status, error) { return statx(unix.AT_FDCWD, path, 0) }

func statx(dir int, path string, flags int) (status, error) {
	var st unix.Statx_t
	if err := retry(func() error { return unix.Statx(dir, path, flags, statusMask, &st) }); err != nil {
		return status{}, err
	}
	return status{identity{unix.Mkdev(st.Dev_major, st.Dev_minor), st.Ino}, uint64(st.Nlink), st.Size}, nil
}

// allocatedBytes is the room that a file takes on its host.
func allocatedBytes(fd int) (uint64, error) {
	var st unix.Statx_t
	err := retry(func() error { return unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_BLOCKS, &st) })
	return st.Blocks * 512, err
}

// freeBytes is the room that anybody may take, not root alone.
func freeBytes(st *unix.Statfs_t) uint64 { return st.Bavail * uint64(st.Frsize) }
