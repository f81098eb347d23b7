package fs

import (
	"bytes"
	"errors"
	"fmt"
	"sync/atomic"

	"tansy/disk"
	"tansy/internal/gen/fs/format/superblockformat"
	"tansy/internal/runtime/ddisk"
)

// errGrew: what was read of the log may be of blocks that are not there in the layout that was read before.
var errGrew = errors.New("the volume grew while it was opened: try again")

// unopened is the layout of a volume that can grow. Another server may still have the volume, and have it grow, after
// its superblock was read here, until the mark of this one is in the log. So nothing of the log is believed before the
// superblock was read again: recovery makes both headers the same before it writes anything else, and its last writes
// put the mark there. Each of these writes fails if the volume has grown.
type unopened struct {
	disk.Disk // the layout
	device    disk.Disk
	super     superblockformat.Super
	headers   [2]uint64
	done      atomic.Bool
}

func unopenedOf(layout, device disk.Disk, s superblockformat.Super) *unopened {
	p := journalParams(s)
	return &unopened{Disk: layout, device: device, super: s, headers: [2]uint64{p.Start, p.Home() - 1}}
}

// opened ends it, when the mark is durable.
func (d *unopened) opened() error {
	d.done.Store(true)
	return d.same()
}

// same is an error if block 0 does not say what it said.
func (d *unopened) same() error {
	same, err := says(d.device, d.super)
	if err == nil && !same {
		err = errGrew
	}
	return err
}

// says tells whether block 0 of a device is superblock s, now.
func says(device disk.Disk, s superblockformat.Super) (bool, error) {
	dd := ddisk.New(device)
	ok, b := dd.Read(0)
	if !ok {
		return false, fmt.Errorf("block 0 is not readable, which says how large the volume is: %w", dd.ReadErr())
	}
	return bytes.Equal(b.Data(), superblockformat.Encode(s).Data), nil
}

// WriteAt implements disk.Disk.
func (d *unopened) WriteAt(a uint64, bufs [][]byte) error {
	if !d.done.Load() && (a == d.headers[0] || a == d.headers[1]) {
		if err := d.same(); err != nil {
			return err
		}
	}
	return d.Disk.WriteAt(a, bufs)
}

// Unwrap is the layout.
func (d *unopened) Unwrap() disk.Disk { return d.Disk }

// NextData implements disk.Holes.
func (d *unopened) NextData(a uint64) (uint64, error) { return disk.NextData(d.Disk, a) }

// Discard implements disk.Discarder.
func (d *unopened) Discard(a, n uint64) error { return disk.Discard(d.Disk, a, n) }
