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
	f := newFlags("grow", "VOLUME|HOST[:PORT] [flags]", `
  tansy grow data.img --size 200G       make the image larger, and the volume
                                        in it
  tansy grow /dev/vg/data               use all of a device that became larger
                                        (lvextend -L +100G vg/data)
  tansy grow nbd://host/export          likewise an export, or an image of Ceph
  tansy grow data.img --size 200G --inodes 50000000
                                        with so many inodes afterwards
  tansy grow 127.0.0.1:9049 --size 200G
                                        have the server with --status
                                        127.0.0.1:9049 do so, beside its clients
  tansy grow localhost --volume /a      of several volumes the one that clients
                                        mount as HOST:/a

exit codes:
  0  it has grown; or it has that size already
  1  failed, and the volume is as it was; or it has grown, and that could not be
     printed: standard error says so then
  2  wrong arguments, or there is no such server

A VOLUME that is served or mounted on this machine grows there, with no break,
for its own user and root; others ask its server (--status), on its own machine.
It takes seconds: what is there stays where it is. A crash, or Ctrl-C, leaves
the volume as it was, or larger. How large it may become was said when it was
made (mkfs --max-size).

What is behind an NBD server, or Ceph, a server sees when it starts: for these
start it again, with serve --grow.
`)
	var o growth
	f.Var(&o.size, "size", "make an image file so large first (a device's or export's size is its own)")
	f.Uint64Var(&o.inodes, "inodes", 0, "`NUMBER` of inodes afterwards, at least (default: in proportion to the size)")
	f.StringVar(&o.volume, "volume", "", "of a server with several volumes: the `PATH` that clients mount it by")
	f.StringVar(&o.ca, "ca", "", caUsage)
	return f, func(args []string) int {
		pos, code, done := parse(f, args, 1, 1)
		if done {
			return code
		}
		if what := zero(f, "size", "inodes"); what != "" {
			return misused(f, what)
		}
		if isServer(pos[0]) {
			return o.ask(f, pos[0])
		}
		for _, name := range []string{"volume", "ca"} {
			if given(f, name) {
				return misused(f, fmt.Sprintf("--%s is for a server: give its HOST:PORT, or leave it out", name))
			}
		}
		g, behind, err := growVolume(pos[0], uint64(o.size), o.inodes)
		if errors.Is(err, disk.ErrLocked) {
			if code, asked := o.askInUse(f, pos[0]); asked {
				return code
			}
		}
		if err != nil {
			return fail("grow", fmt.Errorf("%s: %w", pos[0], served(err)))
		}
		tellGrowth(pos[0], g, behind)
		return exitOK
	}
}

// growth is what is asked for.
type growth struct {
	size   byteSize
	inodes uint64
	volume string // of a server
	ca     string // of its page
}

// tellGrowth says what became of a volume, with so many bytes behind it.
func tellGrowth(name string, g tansyfs.Growth, behind uint64) {
	if g.After == g.Before {
		few := ""
		if behind > 0 {
			few = fmt.Sprintf("; the %d bytes behind it are too few to be of use", behind)
		}
		stdout.conclude("%s: has %s already%s", shown(name), about(g.Before.Bytes), few)
		return
	}
	rest := ""
	if behind > 0 {
		rest = fmt.Sprintf("; %d bytes behind it are not used", behind)
	}
	stdout.conclude("%s: has %s now, and %d inodes; before %s and %d%s", shown(name),
		about(g.After.Bytes), g.After.Inodes, about(g.Before.Bytes), g.Before.Inodes, rest)
}

// served says what to do with a volume that is in use.
func served(err error) error {
	if errors.Is(err, disk.ErrLocked) {
		return fmt.Errorf("%w; the user that has it open, and root, can have it grow meanwhile (serve --control); others "+
			"can have a server with --status do so: tansy grow HOST:PORT of that", err)
	}
	return err
}

// growVolume makes an image so many bytes long, unless that is 0, and then has the volume use all of it, but for the
// bytes behind it.
func growVolume(name string, size, inodes uint64) (g tansyfs.Growth, behind uint64, err error) {
	if size > 0 {
		if err := lengthen(name, size, inodes); err != nil {
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
func lengthen(name string, size, inodes uint64) error {
	if remote(name) {
		return wrongArgument{errOwnSize}
	}
	d, err := openDevice(name, disk.FileOptions{})
	if err != nil {
		return err
	}
	defer d.Close()
	volume, err := tansyfs.SizeOf(d)
	if err != nil {
		return err
	}
	return lengthenTo(d, volume, size, func() error {
		return tansyfs.CanGrow(d, size, tansyfs.GrowOptions{Inodes: inodes})
	})
}

// errOwnSize: the size of a device cannot be asked for.
var errOwnSize = errors.New("the device or export has a size of its own: leave --size out")

// lengthenTo makes the image d size bytes long, if the volume in it can grow so far, of which canGrow has the last
// word.
func lengthenTo(d device, volume tansyfs.VolumeSize, size uint64, canGrow func() error) error {
	file, ok := d.(*disk.File)
	if !ok {
		return wrongArgument{errOwnSize}
	}
	st, err := file.Stat()
	switch {
	case err != nil:
		return err
	case !st.Mode().IsRegular():
		return wrongArgument{errOwnSize}
	case volume.Bytes == volume.Most:
		return fixed(tansyfs.ErrFixedSize)
	case size%disk.BlockSize != 0:
		return wrongArgument{fmt.Errorf("--size %d is no multiple of %d bytes", size, disk.BlockSize)}
	case size < uint64(st.Size())/disk.BlockSize*disk.BlockSize:
		return wrongArgument{fmt.Errorf("the image has %s, and a volume never becomes smaller: give --size more than that",
			about(uint64(st.Size())))}
	case size > volume.Most:
		return wrongArgument{fmt.Errorf("the volume was made to become no larger than %s (mkfs --max-size)",
			about(volume.Most))}
	case size == uint64(st.Size()):
		return nil
	}
	if err := canGrow(); err != nil {
		return fixed(err)
	}
	return file.Lengthen(size)
}
