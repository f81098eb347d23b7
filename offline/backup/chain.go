package backup

import (
	"errors"
	"fmt"
	"math"

	"tansy/disk"
	"tansy/internal/gen/fs/format/superblockformat"
	"tansy/internal/runtime/dbytes"
)

// A Chain is a full backup and those that add to it: the state of the volume when the last of them was made. Of a block
// that several have, the last counts. It is a read-only disk.Disk, the layout of the volume at rest; Device is the
// same as a device has it. Each block that is read is compared with its checksum. Its methods may be called
// concurrently.
type Chain struct {
	files []*file // the last first
}

// chainOf makes a chain of files, the last first.
func chainOf(files []*file) (*Chain, error) {
	if len(files) == 0 {
		return nil, ErrNotBackup
	}
	for i, f := range files {
		last := i+1 == len(files)
		switch {
		case f.Volume != files[0].Volume || f.Size != files[0].Size:
			return nil, fmt.Errorf("%s: %w: it is of another volume than %s", f.name, ErrDamaged, files[0].name)
		case f.Full() != last || !last && f.Parent != files[i+1].ID:
			return nil, fmt.Errorf("%s: %w: the backup that it adds to is missing", f.name, ErrDamaged)
		}
	}
	return &Chain{files}, nil
}

// Info is that of the last backup.
func (c *Chain) Info() Info { return c.files[0].Info }

// Name is the name of the file of the last backup.
func (c *Chain) Name() string { return c.files[0].name }

// Len is the number of backups.
func (c *Chain) Len() int { return len(c.files) }

// find returns the entry that counts for block a; of a block that no file has, it is gone.
func (c *Chain) find(a uint64) (f *file, e entry, place uint64, err error) {
	for _, f := range c.files {
		e, place, ok, err := f.find(a)
		if ok || err != nil {
			return f, e, place, err
		}
	}
	return c.files[0], entry{a, gone, 1}, 0, nil
}

// Size implements disk.Disk: the blocks of the layout.
func (c *Chain) Size() uint64 { return c.files[0].Size }

// errNotStored is the cause of a read of a block that could not be read when the backup was made.
var errNotStored = errors.New("the device could not read it when the backup was made")

// ReadAt implements disk.Disk.
func (c *Chain) ReadAt(a uint64, bufs [][]byte) error {
	if err := disk.CheckTransfer("read", c.Name(), c.Size(), a, bufs); err != nil {
		return err
	}
	for i, b := range bufs {
		if err := c.readBlock(a+uint64(i), b); err != nil {
			return err
		}
	}
	return nil
}

func (c *Chain) readBlock(a uint64, b []byte) error {
	f, e, place, err := c.find(a)
	switch {
	case err != nil:
	case e.kind == unreadable:
		err = errNotStored
	case !e.hasData():
		clear(b)
	default:
		return f.contents(e, place, b)
	}
	if err != nil {
		return &disk.Error{Op: "read", Path: f.name, Block: a, Err: err}
	}
	return nil
}

// NextData implements disk.Holes.
func (c *Chain) NextData(a uint64) (uint64, error) {
	for a < c.Size() {
		next := uint64(math.MaxUint64)
		for _, f := range c.files {
			if e, ok, _ := f.next(a); ok { // or there may be one
				next = min(next, max(a, e.block))
			}
		}
		if next >= c.Size() {
			break
		}
		f, e, _, err := c.find(next)
		if err != nil || e.kind != gone {
			return next, nil
		}
		a = c.goneTo(f, e, next)
	}
	return c.Size(), nil
}

// goneTo is the end of what entry e of file f tells of the blocks from a on: a later file may have some of these.
func (c *Chain) goneTo(f *file, e entry, a uint64) uint64 {
	end := e.end()
	for _, later := range c.files {
		if later == f {
			break
		}
		if next, ok, _ := later.next(a); ok {
			end = min(end, max(a+1, next.block))
		}
	}
	return end
}

// WriteAt implements disk.Disk. It always fails.
func (c *Chain) WriteAt(a uint64, _ [][]byte) error {
	return &disk.Error{Op: "write", Path: c.Name(), Block: a, Err: disk.ErrReadOnly}
}

// Barrier implements disk.Disk. It always fails.
func (c *Chain) Barrier() error {
	return &disk.Error{Op: "barrier", Path: c.Name(), Err: disk.ErrReadOnly}
}

// Close implements disk.Disk.
func (c *Chain) Close() error {
	var errs []error
	for _, f := range c.files {
		errs = append(errs, f.close())
	}
	return errors.Join(errs...)
}

// superOf is the superblock of a volume at rest, on its device or in its layout.
func superOf(d disk.Disk) (s superblockformat.Super, err error) {
	b := make([]byte, disk.BlockSize)
	if err := d.ReadAt(0, [][]byte{b}); err != nil {
		return s, err
	}
	why, s := superblockformat.Decode(&dbytes.Bytes{Data: b})
	if why != 0 {
		return s, fmt.Errorf("%w: it has no superblock that this program knows", ErrDamaged)
	}
	return s, nil
}

// superblock implements Backup: it is that of block 0, or its copy.
func (c *Chain) superblock() []byte {
	b := make([]byte, disk.BlockSize)
	for _, a := range []uint64{0, c.Size() - 1} {
		if c.readBlock(a, b) == nil {
			if why, s := superblockformat.Decode(&dbytes.Bytes{Data: b}); why == 0 && s.Size() == c.Size() {
				return b
			}
		}
	}
	return nil
}

// Device returns what a device with the volume would have. To close it closes c.
func (c *Chain) Device() (disk.Disk, error) {
	b := c.superblock()
	if b == nil {
		return nil, fmt.Errorf("%s: %w: neither its superblock nor the copy can be used", c.Name(), ErrDamaged)
	}
	_, s := superblockformat.Decode(&dbytes.Bytes{Data: b})
	return deviceOf(c, s), nil
}

// Flaws are what is damaged of what tells where the parts of the files lie. All of it was found otherwise.
func (c *Chain) Flaws() (flaws []error) {
	for _, f := range c.files {
		if f.flaw != nil {
			flaws = append(flaws, f.flaw)
		}
	}
	return flaws
}

// Damaged is the number of blocks that were not what was last written there when the backups of c were made, or could
// not be read. Later backups may have mended some.
func (c *Chain) Damaged() (n uint64) {
	for _, f := range c.files {
		n += f.end.damaged
	}
	return n
}

// blocks implements Backup.
func (c *Chain) blocks() (n uint64) {
	for _, f := range c.files {
		n += f.end.stored
	}
	return n
}

// each implements Backup.
func (c *Chain) each(f func(e entry, data []byte) error) error {
	buf := make([]byte, disk.BlockSize)
	for a := uint64(0); a < c.Size(); {
		next, err := c.NextData(a)
		if err != nil || next >= c.Size() {
			return err
		}
		file, e, place, err := c.find(next)
		if errors.Is(err, ErrDamaged) {
			e.sum = uint32(c.goneTo(file, e, next) - next)
		} else if err == nil && e.hasData() {
			if err = file.contents(e, place, buf); errors.Is(err, ErrDamaged) {
				e = entry{next, lost, 1}
			}
		}
		if err != nil && !errors.Is(err, ErrDamaged) {
			return err
		}
		if err := f(e, buf); err != nil {
			return err
		}
		a = e.end()
	}
	return nil
}
