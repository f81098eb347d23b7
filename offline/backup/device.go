package backup

import (
	"errors"

	"tansy/disk"
	"tansy/internal/gen/fs/format/superblockformat"
)

// device is what the device of a volume has, whose layout is there: disk.Pieced the other way round. Errors have the
// addresses of the layout.
type device struct {
	disk.Disk
	runs []stretch // in the order of the device
	room uint64
}

// stretch is n blocks from a on of the layout, which lie from at on.
type stretch struct{ a, at, n uint64 }

// deviceOf returns the device of volume s with that layout.
func deviceOf(layout disk.Disk, s superblockformat.Super) disk.Disk {
	if s.Extent().Runs().Is_NoRun() {
		return layout
	}
	d := &device{Disk: layout, room: s.Extent().Room()}
	at := uint64(0)
	for r := s.Extent().Runs(); r.Is_Run(); r = r.Later() {
		d.runs = append(d.runs, stretch{r.At(), at, r.N()})
		at += r.N()
	}
	d.runs = append(d.runs, stretch{s.Size() - 1, d.room - 1, 1})
	return d
}

// Size implements disk.Disk.
func (d *device) Size() uint64 { return d.room }

// from yields the runs of n blocks from at on of the device.
func (d *device) from(at, n uint64, yield func(stretch) error) error {
	for _, r := range d.runs {
		lo, hi := max(at, r.at), min(at+n, r.at+r.n)
		if lo < hi {
			if err := yield(stretch{r.a + (lo - r.at), lo, hi - lo}); err != nil {
				return err
			}
		}
	}
	return nil
}

// ReadAt implements disk.Disk.
func (d *device) ReadAt(at uint64, bufs [][]byte) error {
	if err := disk.CheckTransfer("read", "", d.room, at, bufs); err != nil {
		return err
	}
	return d.from(at, uint64(len(bufs)), func(r stretch) error {
		return d.Disk.ReadAt(r.a, bufs[r.at-at:][:r.n])
	})
}

// WriteAt implements disk.Disk.
func (d *device) WriteAt(at uint64, bufs [][]byte) error {
	if err := disk.CheckTransfer("write", "", d.room, at, bufs); err != nil {
		return err
	}
	return d.from(at, uint64(len(bufs)), func(r stretch) error {
		return d.Disk.WriteAt(r.a, bufs[r.at-at:][:r.n])
	})
}

// NextData implements disk.Holes.
func (d *device) NextData(at uint64) (uint64, error) {
	found := d.room
	err := d.from(at, d.room-min(at, d.room), func(r stretch) error {
		next, err := disk.NextData(d.Disk, r.a)
		if err == nil && next < r.a+r.n {
			found, err = r.at+(next-r.a), errFound
		}
		return err
	})
	if errors.Is(err, errFound) {
		err = nil
	}
	return found, err
}

var errFound = errors.New("found")
