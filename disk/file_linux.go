package disk

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// deviceFlags: the kernel refuses an exclusive open of a device that is mounted
// or part of another volume.
const deviceFlags = os.O_EXCL

// flushFD makes data, and the metadata needed to find it, durable.
func flushFD(fd int) error { return unix.Fdatasync(fd) }

// deviceSize is the size of a block device in bytes.
func deviceSize(f *os.File) (uint64, error) {
	n, err := f.Seek(0, io.SeekEnd) // as BLKGETSIZE64, but of the same width everywhere
	return uint64(n), err
}

// renameNew renames a file unless the new name is taken.
func renameNew(from, to string) error {
	return unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
}
