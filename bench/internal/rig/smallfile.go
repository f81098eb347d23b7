package rig

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"tansy/tools/load"
)

// SmallFile is once LFS's benchmark of small files on a local file system, as it became for those that are synchronous:
// a name is looked up, the file made, written to, and removed, each change durable before the next one begins.
func SmallFile(folder, name string) error {
	path := filepath.Join(folder, name)
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s is there already: %v", path, err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := SyncFolder(folder); err != nil {
		return err
	}
	if _, err := f.Write(load.SmallData); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := os.Remove(path); err != nil {
		return err
	}
	return SyncFolder(folder)
}

// SyncFolder makes the names in a folder durable.
func SyncFolder(folder string) error {
	d, err := os.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
