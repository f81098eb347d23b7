package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"tansy/disk"
	tansyfs "tansy/fs"
)

func mkfs(args []string) int {
	f := newFlags("mkfs", "VOLUME [flags]", `  tansy mkfs data.img --size 100G       a new sparse image file
  tansy mkfs /dev/sdb --force           a whole block device; what was on it is lost
  tansy mkfs data.img --size 1T --inodes 100000000
`)
	var size byteSize
	f.Var(&size, "size", "size of a new image file (required for one; a device's size is its own)")
	var log byteSize
	f.Var(&log, "log-size", "size of the journal (default 64M, less on a small volume)")
	inodes := f.Uint64("inodes", 0, "number of inodes (default: one for every 16 KiB)")
	force := f.Bool("force", false, "make the volume even where something exists already")
	pos, code, done := parse(f, args, 1, 1)
	if done {
		return code
	}
	o := tansyfs.MkfsOptions{LogBytes: uint64(log), Inodes: *inodes}
	clear := ""
	if show := progress(time.Second); show != nil {
		o.Progress = func(done, total uint64) { show("mkfs", done, total) }
		clear = clearLine
	}
	err := makeVolume(pos[0], uint64(size), *force, o)
	fmt.Fprint(os.Stderr, clear)
	if err != nil {
		return fail("mkfs", err)
	}
	fmt.Printf("%s: made a volume\n", pos[0])
	return exitOK
}

// makeVolume makes a volume in a new image file, or in what exists if force is set.
func makeVolume(path string, size uint64, force bool, o tansyfs.MkfsOptions) error {
	st, err := os.Stat(path)
	if os.IsNotExist(err) {
		if size == 0 {
			return fmt.Errorf("%s does not exist: give --size to make an image file", path)
		}
		return makeImage(path, size, o)
	}
	if err != nil {
		return err
	}
	if !force {
		return fmt.Errorf("%s exists already: --force makes a new volume over it, and what it holds is lost", path)
	}
	if size != 0 && uint64(st.Size()) != size {
		return fmt.Errorf("%s exists already and keeps its size: leave --size out", path)
	}
	return format(path, o)
}

// makeImage makes a volume in a new sparse file. The file gets its name only
// when the volume in it is complete.
func makeImage(path string, size uint64, o tansyfs.MkfsOptions) error {
	tmp := path + ".new"
	d, err := disk.CreateFile(tmp, size)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists: another run is making this volume, or was interrupted; in the latter case, remove it", tmp)
	}
	if err != nil {
		return err
	}
	o.Zeroed = true
	err = tansyfs.Mkfs(d, o)
	if e := d.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = disk.Rename(tmp, path)
	}
	if err != nil {
		os.Remove(tmp)
	}
	return err
}

// format makes a volume in an existing file or device.
func format(path string, o tansyfs.MkfsOptions) error {
	d, err := disk.OpenFile(path, disk.FileOptions{})
	if err != nil {
		return err
	}
	err = tansyfs.Mkfs(d, o)
	if e := d.Close(); err == nil {
		err = e
	}
	return err
}
