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
	again, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", f.Fd()), os.O_RDWR|unix.O_DIRECT, 0)
	if err != nil {
		return nil
	}
	return again
}
