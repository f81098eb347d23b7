//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// smallData is what a small file has in it.
var smallData = make([]byte, 100)

// smallfile is LFS's benchmark of small files, as it became for file systems that are synchronous: each client, in a folder of its own,
// looks a name up, makes the file, writes to it, and removes it, and each change is durable before the next one begins.
func smallfile(o options) (es []experiment) {
	for _, n := range o.clients {
		es = append(es, sideBySide("files", n, func(folder string) (func(int) error, io.Closer, error) {
			return func(k int) error { return smallfileOnce(folder, fmt.Sprint("file", k)) }, nil, nil
		}))
	}
	return es
}

func smallfileOnce(folder, name string) error {
	path := filepath.Join(folder, name)
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s is there already: %v", path, err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := syncFolder(folder); err != nil {
		return err
	}
	if _, err := f.Write(smallData); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := os.Remove(path); err != nil {
		return err
	}
	return syncFolder(folder)
}

// syncFolder makes the names in a folder durable.
func syncFolder(folder string) error {
	d, err := os.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
