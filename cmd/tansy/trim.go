package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"tansy/disk"
	tansyfs "tansy/fs"
)

// discardMode is the value of serve's --discard.
type discardMode string

func (m *discardMode) String() string { return string(*m) }

func (m *discardMode) Set(s string) error {
	switch s {
	case "auto", "on", "off":
		*m = discardMode(s)
		return nil
	}
	return errors.New("auto, on or off is meant")
}

// of tells whether the room of what is free on d goes back to where it came from. A sparse image takes room only
// when it is needed, so it should not keep what is not. Most devices gain nothing, and some are slow at it.
func (m discardMode) of(d device) bool {
	switch m {
	case "on":
		return d.Discards()
	case "auto":
		return disk.HostOf(d) != nil
	}
	return false
}

func trim() (*flagSet, action) {
	f := newFlags("trim", "VOLUME [flags]", `
  tansy trim data.img       give the room of all free blocks back to the file
                            system
  tansy trim /dev/vg/data   unmap them on a thin device

Free blocks become holes of the image; on a device, or an export of an NBD
server, they become zeros that it need not store, if it has a command for that.
The volume must not be in use by a server; one that serves does the same by
itself with --discard. What was written by a server that did not is found, too.
On a device, all free blocks are gone through. A preallocated image keeps its
room.
`)
	quiet := f.Bool("q", false, "print nothing but errors")
	return f, func(args []string) int {
		pos, code, done := parse(f, args, 1, 1)
		if done {
			return code
		}
		d, err := openVolume(pos[0], disk.FileOptions{Warn: warning("trim")})
		if err != nil {
			return fail("trim", err)
		}
		defer d.Close()
		n, err := trimVolume(d, *quiet)
		if err != nil {
			return fail("trim", fmt.Errorf("%s: %w", pos[0], err))
		}
		if !*quiet {
			stdout.conclude("%s: %s given back", shown(pos[0]), about(n))
		}
		return exitOK
	}
}

func trimVolume(d device, quiet bool) (n uint64, err error) {
	v, err := tansyfs.Open(d, tansyfs.Options{})
	if err != nil {
		return 0, fmt.Errorf("%w%s", err, adviceFor(d, err))
	}
	if !d.Discards() {
		return 0, errors.Join(errors.New("a preallocated image keeps its room, and so does an export of a server that "+
			"cannot write zeros by themselves"), v.Close())
	}
	p := newProgress(os.Stderr, time.Now)
	n, err = v.Trim(func(done, all uint64) {
		if !quiet {
			p.report("trimming", done, all)
		}
	})
	if !quiet {
		fmt.Fprint(os.Stderr, p.clear)
	}
	return n, errors.Join(err, v.Close())
}
