package mount

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Remount changes how a volume is mounted on a directory. access is "ro", "rw", or "" to leave it; options are those of
// Options.Flags. What is not named stays. If the mount has become read-only, all that was done is durable.
func Remount(dir, access string, options []string) error {
	dir, err := filepath.EvalSymlinks(dir)
	if err == nil {
		dir, err = filepath.Abs(dir)
	}
	if err != nil {
		return err
	}
	at, err := On(dir)
	if err != nil {
		return err
	}
	if !at.Ours() {
		return fmt.Errorf("%s: no volume is mounted there, but %s (%s)", dir, at.Source, at.Type)
	}
	var now unix.Statfs_t
	if err := unix.Statfs(dir, &now); err != nil {
		return &os.PathError{Op: "statfs", Path: dir, Err: err}
	}
	was := uintptr(now.Flags) & (unix.MS_RDONLY | noSUID | noDev | noExec) // the flags of statfs(2) have the same numbers
	flags := apply(was, options)
	switch access {
	case "ro":
		flags |= unix.MS_RDONLY
	case "rw":
		flags &^= unix.MS_RDONLY
	}
	err = unix.Mount("", dir, "", unix.MS_REMOUNT|flags, "")
	switch {
	case err == unix.EBUSY && flags&unix.MS_RDONLY != 0:
		return fmt.Errorf("%s: a file of it is open for writing (fuser -vm tells): %w", dir, err)
	case err != nil:
		return fmt.Errorf("remount %s: %w", dir, err)
	case flags&unix.MS_RDONLY != 0:
		return syncDir(dir)
	case was&unix.MS_RDONLY == 0 || !refusesChanges(dir):
		return nil
	}
	err = fmt.Errorf("%s: the volume was opened to be read only: unmount it, and mount it again without that", dir)
	return errors.Join(err, unix.Mount("", dir, "", unix.MS_REMOUNT|was, ""))
}

// syncDir makes durable what was done to the file system of a directory.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// refusesChanges tells whether the volume does, whatever the kernel allows. It asks for a change that would change
// nothing.
func refusesChanges(dir string) bool {
	return errors.Is(unix.Removexattr(dir, "trusted.tansy.none"), unix.EROFS)
}
