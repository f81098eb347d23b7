package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"tansy/disk"
	tansyfs "tansy/fs"
)

// image says how to make an image file.
type image struct {
	size        uint64 // bytes
	preallocate bool   // take the room from the host now
	ignoreFstab bool   // make it also where a file system should be mounted, and is not
	warn        func(error)
}

// filling makes a volume on a device. zeroed: the device reads as zeros.
type filling func(d device, zeroed bool) error

// unfinished is the end of the name of an image while a volume is made in it.
const unfinished = ".unfinished"

// make makes a volume in a new file. The file gets its name only when the volume in it
// is complete; one that a killed run left unfinished is replaced.
func (i image) make(path string, o tansyfs.MkfsOptions) error {
	return i.makeOf(path, o.Check, func(d device, _ bool) error {
		o.Zeroed = true
		err := tansyfs.Mkfs(d, o)
		if errors.Is(err, disk.ErrNoRoom) {
			free, _ := disk.HostFree(filepath.Dir(path))
			err = fmt.Errorf("%w: the file system that %s would lie on has %v free, which is not enough for the journal "+
				"(--log-size) and what every volume begins with", err, path, about(free))
		}
		return err
	})
}

// makeOf is make of a volume that fill makes, if check does not refuse the size in bytes.
func (i image) makeOf(path string, check func(bytes uint64) error, fill filling) error {
	if err := barred(path); err != nil {
		return err
	}
	if err := unmounted(path); err != nil && !i.ignoreFstab {
		return fmt.Errorf("%s is not made: %w; mount it first (--ignore-fstab makes the volume in the directory below it)",
			path, err)
	}
	if i.size == 0 || i.size%disk.BlockSize != 0 {
		right := byteSize(i.size / disk.BlockSize * disk.BlockSize)
		if right < 64<<20 {
			right = 10 << 30
		}
		return wrongArgument{fmt.Errorf("--size %d is no positive multiple of %d bytes: give %v, for instance",
			i.size, disk.BlockSize, &right)}
	}
	if err := check(i.size); err != nil {
		return err
	}
	free, err := disk.HostFree(filepath.Dir(path))
	if err != nil {
		return err
	}
	if !i.preallocate && free < i.size {
		i.warn(tooSparse(path, i.size, free))
	}
	tmp := path + unfinished
	d, err := disk.CreateFile(tmp, i.size)
	if errors.Is(err, fs.ErrExist) {
		if err = disk.RemoveAbandoned(tmp); err == nil || errors.Is(err, fs.ErrNotExist) {
			d, err = disk.CreateFile(tmp, i.size)
		}
	}
	if errors.Is(err, disk.ErrLocked) || errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("another run is making this volume: %w", err)
	}
	if err != nil {
		return tooLong(err, i.size)
	}
	if i.preallocate {
		err = preallocate(d)
	}
	if err == nil {
		err = fill(d, true)
	}
	if err == nil {
		err = disk.Rename(tmp, path)
	}
	if err != nil {
		err = errors.Join(err, discard(tmp))
	}
	// Only now may another run take the file for one that was left behind.
	return errors.Join(err, d.Close())
}

// unremoved is the error of a file that was to be removed, and is left.
type unremoved struct {
	path string
	err  error
}

func (u *unremoved) Error() string {
	return fmt.Sprintf("%s is left, as it cannot be removed (%v)", u.path, u.err)
}

// discard removes what was made of an image. The error is an unremoved.
func discard(path string) error {
	err := os.Remove(path)
	if failed := new(fs.PathError); errors.As(err, &failed) && !errors.Is(err, fs.ErrNotExist) {
		return &unremoved{path, failed.Err}
	}
	return nil
}

// tooLong adds to an error of making a file of size bytes what to do, if the file system has none so long.
func tooLong(err error, size uint64) error {
	if !errors.Is(err, syscall.EFBIG) {
		return err
	}
	return fmt.Errorf("%w: the file system there holds no file of %s: give a smaller --size", err, about(size))
}

// tooSparse is the warning about an image of size bytes on a host with less free.
func tooSparse(path string, size, free uint64) error {
	return fmt.Errorf("%s may grow to %v, but the file system it lies on has %v free: when that is full, changes that "+
		"need room are refused (NFS3ERR_NOSPC), and removing goes on; a smaller --size avoids "+
		"this", path, about(size), about(free))
}

// preallocate takes all the room of an image.
func preallocate(at device) error {
	d, ok := at.(*disk.File)
	if !ok {
		return fmt.Errorf("%s has what room its server gives it: leave --preallocate out", at.Path())
	}
	err := d.Preallocate()
	if errors.Is(err, disk.ErrNoRoom) {
		if free, e := disk.HostFree(d.Path()); e == nil {
			return fmt.Errorf("%w, and %s are free there: give a smaller --size, or leave --preallocate out", err, about(free))
		}
	}
	if err != nil {
		return fmt.Errorf("%w: leave --preallocate out", err)
	}
	return nil
}
