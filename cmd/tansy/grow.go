package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"tansy/disk"
	tansyfs "tansy/fs"
)

func grow() (*flagSet, action) {
	f := newFlags("grow", "VOLUME [flags]", `
  tansy grow data.img --size 200G       make the image larger, and the volume
                                        in it
  tansy grow /dev/vg/data               use all of a device that became larger
                                        (lvextend -L +100G vg/data)
  tansy grow nbd://host/export          likewise an export, or an image of Ceph
  tansy grow data.img --size 200G --inodes 50000000
                                        with so many inodes afterwards

exit codes:
  0  it has grown; or it has that size already
  1  failed, and the volume is as it was; or it has grown, and that could not be
     printed: standard error says so then
  2  wrong arguments

Nobody may serve or mount the volume meanwhile. It takes seconds: what is there
stays where it is. A crash leaves the volume as it was, or larger. How large it
may become was said when it was made (mkfs --max-size).
`)
	var size byteSize
	f.Var(&size, "size", "make an image file so large first (a device's or export's size is its own)")
	inodes := f.Uint64("inodes", 0, "`NUMBER` of inodes afterwards, at least (default: in proportion to the size)")
	return f, func(args []string) int {
		pos, code, done := parse(f, args, 1, 1)
		if done {
			return code
		}
		if what := zero(f, "size", "inodes"); what != "" {
			return misused(f, what)
		}
		g, behind, err := growVolume(pos[0], uint64(size), *inodes)
		if err != nil {
			return fail("grow", fmt.Errorf("%s: %w", pos[0], err))
		}
		if g.After == g.Before {
			few := ""
			if behind > 0 {
				few = fmt.Sprintf("; the %d bytes behind it are too few to be of use", behind)
			}
			stdout.conclude("%s: has %s already%s", shown(pos[0]), about(g.Before.Bytes), few)
			return exitOK
		}
		stdout.conclude("%s: has %s now, and %d inodes; before %s and %d", shown(pos[0]),
			about(g.After.Bytes), g.After.Inodes, about(g.Before.Bytes), g.Before.Inodes)
		return exitOK
	}
}

// growVolume makes an image so many bytes long, unless that is 0, and then has the volume use all of it, but for the
// bytes behind it.
func growVolume(name string, size, inodes uint64) (g tansyfs.Growth, behind uint64, err error) {
	if size > 0 {
		if err := lengthen(name, size); err != nil {
			return g, 0, err
		}
	}
	d, err := openDevice(name, disk.FileOptions{Warn: warning("grow")})
	if err != nil {
		return g, 0, err
	}
	p := newProgress(os.Stderr, time.Now)
	g, err = tansyfs.Grow(d, tansyfs.GrowOptions{
		Inodes: inodes, Progress: func(done, total uint64) { p.report("grow", done, total) },
	})
	fmt.Fprint(os.Stderr, p.clear)
	if errors.Is(err, tansyfs.ErrNoMore) && inodes == 0 {
		err = nil // it has that size already
	}
	if e := d.Close(); err == nil {
		err = e
	}
	return g, d.Size()*disk.BlockSize - g.After.Bytes, fixed(err)
}

// fixed says what to do with a volume that cannot grow.
func fixed(err error) error {
	if errors.Is(err, tansyfs.ErrFixedSize) {
		return fmt.Errorf("%w: make a larger one (tansy mkfs --max-size says how far it may grow), serve or mount both, "+
			"and copy the files", err)
	}
	return err
}

// lengthen makes an image file size bytes long, with a volume that can grow so far, and that nobody has open.
func lengthen(name string, size uint64) error {
	if remote(name) {
		return wrongArgument{errors.New("the export has a size of its own: leave --size out")}
	}
	d, err := openDevice(name, disk.FileOptions{})
	if err != nil {
		return err
	}
	defer d.Close()
	file, ok := d.(*disk.File)
	if st, err := os.Stat(name); !ok || err != nil || !st.Mode().IsRegular() {
		return wrongArgument{errors.New("the device has a size of its own: leave --size out")}
	}
	volume, err := tansyfs.SizeOf(d)
	has := d.Size() * disk.BlockSize
	switch {
	case err != nil:
		return err
	case volume.Bytes == volume.Most:
		return fixed(tansyfs.ErrFixedSize)
	case size%disk.BlockSize != 0:
		return wrongArgument{fmt.Errorf("--size %d is no multiple of %d bytes", size, disk.BlockSize)}
	case size < has:
		return wrongArgument{fmt.Errorf("the image has %s, and a volume never becomes smaller: give --size more than that",
			about(has))}
	case size > volume.Most:
		return wrongArgument{fmt.Errorf("the volume was made to become no larger than %s (mkfs --max-size)",
			about(volume.Most))}
	case size == has:
		return nil
	}
	return file.Lengthen(size)
}
