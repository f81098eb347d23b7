package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"tansy/disk"
	tansyfs "tansy/fs"
	"tansy/internal/signature"
)

func mkfs() (*flagSet, action) {
	f := newFlags("mkfs", "VOLUME [flags]", `
  tansy mkfs data.img --size 100G       a new sparse image file
  tansy mkfs data.img --size 100G --preallocate
                                        an image that takes all its room now, so
                                        that it never lacks any
  tansy mkfs data.img --size 100G --if-missing
                                        for scripts: nothing happens if it is
                                        there
  tansy mkfs /dev/sdb --force           a whole block device; what was on it is
                                        lost
  tansy mkfs nbd://host/export --force  an export of an NBD server, in the same
                                        way
  tansy mkfs data.img --size 1T --inodes 100000000
                                        for many small files
  tansy mkfs data.img --size 10G --max-size 200T
                                        which can grow further than the default
                                        (tansy grow)
  tansy mkfs data.img --size 10G --owner alice:users --mode 0770
                                        where alice and the group users may
                                        write

exit codes:
  0  made
  1  failed, or something is there already; or the volume is made, and that
     could not be printed: standard error says so then
  2  wrong arguments, such as a size that is too small
  129, 130, 143
     interrupted by SIGHUP, SIGINT (Ctrl-C), or SIGTERM: what is left is said

What is there already is said (ext4, LVM2, a table of partitions, ...). A device
that is mounted, or used in another way, is refused with --force as well.
`)
	var size byteSize
	f.Var(&size, "size", "size of a new image file (required for one; a device's or export's size is its own)")
	var log byteSize
	f.Var(&log, "log-size", "size of the journal (default 64M, less on a small volume)")
	var most byteSize
	f.Var(&most, "max-size", "how large the volume may ever become, by tansy grow; no more than it has: it keeps "+
		"its size (default 16T less 1G)")
	inodes := f.Uint64("inodes", 0, "`NUMBER` of inodes (default: one for every 16 KiB)")
	replies := f.Uint64("replies", 0, "keep records of so many `CALLS`, so that they are done once even if clients "+
		"send them again after a crash (default 4096, less on a small volume)")
	label := f.String("label", "", "`LABEL` of the volume, such as backups (tansy label)")
	preallocate := f.Bool("preallocate", false,
		"take all the room of the image from the file system it lies on now, not as files grow")
	var root rootDir
	root.flags(f.FlagSet, "")
	force := f.Bool("force", false, "make the volume even where something exists already")
	ifMissing := f.Bool("if-missing", false, "make the image if there is none, and leave alone what exists")
	ignoreFstab := f.Bool("ignore-fstab", false, ignoreFstabUsage)
	return f, func(args []string) int {
		pos, code, done := parse(f, args, 1, 1)
		if done {
			return code
		}
		if err := strange(pos[0]); err != nil {
			return misused(f, err.Error())
		}
		if what := zero(f, "size", "max-size", "log-size", "inodes", "replies"); what != "" {
			return misused(f, what)
		}
		if most > 0 && most < size && given(f, "size") {
			return misused(f, "--max-size is less than --size: give more, or leave it out")
		}
		if err := tansyfs.CheckLabel(*label); err != nil {
			return misused(f, "--label: "+err.Error())
		}
		if *ifMissing && (*force || remote(pos[0])) {
			return misused(f, "--if-missing is for image files, and without --force")
		}
		if *ifMissing && !missing(pos[0]) {
			stdout.conclude("%s: exists, and is left alone", shown(pos[0]))
			return exitOK
		}
		o := tansyfs.MkfsOptions{
			LogBytes: uint64(log), Inodes: *inodes, Replies: *replies, MaxBytes: uint64(most), Label: *label,
		}
		if most == 0 {
			o.MaxBytes = defaultMost
		}
		root.apply(&o)
		p := newProgress(os.Stderr, time.Now)
		o.Progress = func(done, total uint64) { p.report("mkfs", done, total) }
		warn := warning("mkfs")
		isNew := !remote(pos[0]) && missing(pos[0])
		ctx, stop := untilInterrupted()
		defer stop()
		wrote := false
		o.Stop = func() error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			wrote = true
			return nil
		}
		err := makeVolume(pos[0], image{uint64(size), *preallocate, *ignoreFstab, warn}, *force, o)
		fmt.Fprint(os.Stderr, p.clear)
		if small := new(tansyfs.TooSmallError); errors.As(err, &small) && small.Least > 0 {
			err = fmt.Errorf("%w (%s, or more)", err, sizing(pos[0], isNew, small.Least))
		}
		if by := new(interrupted); errors.As(err, by) {
			err = fmt.Errorf("%w: %s", *by, left(pos[0], isNew, wrote, err))
		}
		if err != nil {
			return fail("mkfs", err)
		}
		if err := misplaced(pos[0]); err != nil {
			warn(err)
		}
		stdout.conclude("%s: made a volume", shown(pos[0]))
		return exitOK
	}
}

// left is what a mkfs leaves that was interrupted and ended with err.
func left(path string, isNew, wrote bool, err error) string {
	rest := new(unremoved)
	switch {
	case isNew && errors.As(err, &rest):
		return fmt.Sprintf("%s is not made, but %s: remove that", shown(path), rest)
	case isNew:
		return shown(path) + " is not made, and nothing of it is left"
	case wrote:
		return shown(path) + " holds no volume, and what it held is lost: make the volume again"
	}
	return shown(path) + " is as it was"
}

// sizing is how a volume gets a size in bytes. What exists keeps its own.
func sizing(path string, isNew bool, size uint64) string {
	if st, err := os.Stat(path); !isNew && err == nil && st.Mode().IsRegular() {
		return fmt.Sprintf("truncate -s %d %s", size, quoted(path))
	} else if !isNew {
		return new(byteSize(size)).String()
	}
	return "--size " + new(byteSize(size)).String()
}

// zero says which of these flags is given as 0, or nothing. Inside, 0 stands for the default.
func zero(f *flagSet, names ...string) string {
	for _, name := range names {
		if given(f, name) && f.Lookup(name).Value.String() == "0" {
			return "--" + name + " is 0: give more, or leave it out"
		}
	}
	return ""
}

// holds says what there is at a path, as far as it is known here.
func holds(path string) (string, error) {
	d, err := openDevice(path, disk.FileOptions{ReadOnly: true})
	if err != nil {
		return "", err
	}
	defer d.Close()
	return cmp.Or(contents(d), "nothing that is known here"), nil
}

// taken is the error of a volume that is to be made where something is. kind says what that is.
func taken(path, kind string) error {
	what, err := holds(path)
	switch {
	case err != nil && remote(path): // it may not be there
		return err
	case err != nil:
		return fmt.Errorf("%s %s: %w", path, kind, err)
	}
	return fmt.Errorf("%s %s, and holds %s: --force makes a volume over it, and that is lost", path, kind, what)
}

// contents is what a device holds, for people, or "" if nothing is known.
func contents(d disk.Disk) string {
	return strings.Join(signature.Find(blockReader{d}, int64(d.Size())*disk.BlockSize), ", ")
}

// blockReader reads a device from any place on.
type blockReader struct{ disk.Disk }

// ReadAt implements io.ReaderAt.
func (r blockReader) ReadAt(b []byte, at int64) (n int, err error) {
	block := make([]byte, disk.BlockSize)
	for n < len(b) {
		if err := r.Disk.ReadAt(uint64(at)/disk.BlockSize, [][]byte{block}); err != nil {
			return n, err
		}
		k := copy(b[n:], block[at%disk.BlockSize:])
		n, at = n+k, at+int64(k)
	}
	return n, nil
}

// makeVolume makes a volume in a new image file, or in what exists if force is set.
func makeVolume(path string, i image, force bool, o tansyfs.MkfsOptions) error {
	if !remote(path) && missing(path) {
		if err := barred(path); err != nil {
			return err
		}
		if i.size == 0 {
			return wrongArgument{fmt.Errorf("%s does not exist: give --size to make an image file", path)}
		}
		return i.make(path, o)
	}
	return i.overwrite(path, force, func(d device, _ bool) error { return tansyfs.Mkfs(d, o) })
}

// overwrite makes a volume where something is, if force is set.
func (i image) overwrite(path string, force bool, fill filling) error {
	if remote(path) {
		if !force {
			return taken(path, "is an export of a server")
		}
		return i.format(path, fill)
	}
	st, err := os.Stat(path)
	if err != nil {
		return err
	}
	if st.IsDir() {
		if err := mountedOn(path); err != nil {
			return wrongArgument{err}
		}
		return wrongArgument{fmt.Errorf(
			"%s is a directory: give the name of an image file in it, such as %s, or a block device",
			path, filepath.Join(path, "tansy.img"))}
	}
	if err := noVolume(path); err != nil {
		return wrongArgument{err}
	}
	if use := disk.UseOf(path); use != "" {
		return fmt.Errorf("%s is in use: %s; end that first", path, use)
	}
	if !force {
		return taken(path, "exists already")
	}
	if i.size != 0 && uint64(st.Size()) != i.size {
		d, err := openDevice(path, disk.FileOptions{}) // who has it in use must not be told to cut it
		if err != nil {
			return err
		}
		d.Close()
		larger := ""
		if st.Mode().IsRegular() {
			larger = fmt.Sprintf(", or give the file that size first: truncate -s %d %s", i.size, quoted(path))
		}
		return wrongArgument{fmt.Errorf("%s exists already and keeps its size: leave --size out%s", path, larger)}
	}
	return i.format(path, fill)
}

// format makes a volume in an existing file, device or export.
func (i image) format(path string, fill filling) error {
	d, err := openDevice(path, disk.FileOptions{Warn: i.warn})
	if err != nil {
		return err
	}
	if has := d.Size() * disk.BlockSize; remote(path) && i.size != 0 && has != i.size {
		err = wrongArgument{fmt.Errorf("%s has %s: leave --size out", path, about(has))}
	} else if i.preallocate {
		err = preallocate(d)
	}
	if err == nil {
		err = fill(d, false)
	}
	if e := d.Close(); err == nil {
		err = e
	}
	return err
}
