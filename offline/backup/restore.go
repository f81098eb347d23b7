package backup

import (
	"context"
	"errors"
	"fmt"

	"tansy/disk"
	"tansy/internal/gen/fs/format/superblockformat"
	"tansy/internal/runtime/dbytes"
	"tansy/internal/volumeend"
)

// RestoreOptions say how to restore. The zero value is fine.
type RestoreOptions struct {
	Zeroed   bool                     // the device reads as zeros: a new image file
	Progress func(done, total uint64) // called now and then with blocks; total is 0 if it is not known; may be nil
}

// A Backup is what a volume can be restored from: a Chain, or a Stream.
type Backup interface {
	Info() Info
	// superblock is that of the volume; nil: it comes with the first entry.
	superblock() []byte
	// blocks is how many have contents, about; 0: that is not known.
	blocks() uint64
	// each calls f for the entries that count, in order, with the contents of each; they are f's until it returns. What
	// the backup has not as it was written is an entry of kind lost.
	each(f func(e entry, data []byte) error) error
}

// ErrTooSmall is wrapped by the error of restoring to a device that does not hold the volume.
var ErrTooSmall = errors.New("the device is too small")

// Restore makes the volume of b on d: all blocks where they lay, and the superblocks last, so that an interrupted
// restore leaves no volume. What d held is lost. When the error is nil, the volume is durable. What the backup has not
// as it was written, in lost places, becomes zeros, which the volume then takes for damage. If the superblock and its
// copy, or the end, are damaged, the error wraps ErrDamaged, and there is no volume; so it is with the superblock, or
// any list of blocks, in a Stream.
func Restore(ctx context.Context, d disk.Disk, b Backup, o RestoreOptions) (lost uint64, err error) {
	r := &restore{ctx: ctx, device: d, o: o, info: b.Info(), total: b.blocks()}
	if room := r.info.Room; room > d.Size() {
		return 0, fmt.Errorf("%w: it has %d bytes, and the volume needs %d", ErrTooSmall, d.Size()*disk.BlockSize,
			room*disk.BlockSize)
	}
	if !o.Zeroed {
		if err := r.blank(); err != nil {
			return 0, err
		}
	}
	if super := b.superblock(); super != nil {
		if err := r.begin(super); err != nil {
			return 0, err
		}
	}
	if err := b.each(r.entry); err != nil {
		return r.lost, err
	}
	if r.layout == nil || r.next != r.info.Size {
		return r.lost, fmt.Errorf("%w: it has no end", ErrDamaged)
	}
	return r.lost, r.finish()
}

// restore is one that is under way.
type restore struct {
	ctx    context.Context
	device disk.Disk // all of it
	o      RestoreOptions
	info   Info

	super  superblockformat.Super
	first  []byte    // block 0
	layout disk.Disk // of the volume on the device; nil before block 0 was seen
	next   uint64    // the block behind the last that is done
	bits   []byte    // of the bitmap, as the device has it now
	bitsAt uint64    // its number, plus one
	done   uint64    // blocks written
	total  uint64
	lost   uint64 // places that the backup has not as they were written

	run    [][]byte // blocks that are written at once, from runAt on
	runAt  uint64
	memory []byte
}

// runMost is how many blocks are written at once.
const runMost = 256

// blank makes the device no volume.
func (r *restore) blank() error {
	zeros := [][]byte{make([]byte, disk.BlockSize)}
	for _, a := range []uint64{0, r.info.Room - 1} {
		if err := r.device.WriteAt(a, zeros); err != nil {
			return err
		}
	}
	return r.device.Barrier()
}

// entry takes the next entry of the backup.
func (r *restore) entry(e entry, data []byte) error {
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	if e.kind == lost {
		r.lost++
	}
	if r.layout == nil {
		if e.block != 0 || e.kind != stored {
			return fmt.Errorf("%w: it does not begin with the superblock", ErrDamaged)
		}
		return r.begin(data)
	}
	if e.block == 0 && e.end() == 1 { // comes in the end
		return nil
	}
	if err := r.zeros(r.next, e.block); err != nil {
		return err
	}
	r.next = e.end()
	switch last := r.info.Size - 1; {
	case e.block == last:
		return nil // comes in the end
	case !e.hasData():
		return r.zeros(e.block, e.end())
	}
	return r.write(e.block, data)
}

// begin takes the superblock.
func (r *restore) begin(b []byte) error {
	why, s := superblockformat.Decode(&dbytes.Bytes{Data: append([]byte(nil), b...)})
	if why != 0 || s.Size() != r.info.Size || s.Extent().Room() != r.info.Room || volumeend.UUID(s) != r.info.Volume {
		return fmt.Errorf("%w: its superblock is not that of its header", ErrDamaged)
	}
	r.super, r.first = s, append([]byte(nil), b...)
	r.layout = volumeend.Layout(disk.NewPrefix(r.device, r.info.Room), s)
	r.memory, r.bits = make([]byte, runMost*disk.BlockSize), make([]byte, disk.BlockSize)
	r.next = 1
	return nil
}

// write writes block a, soon.
func (r *restore) write(a uint64, data []byte) error {
	if len(r.run) == runMost || a != r.runAt+uint64(len(r.run)) {
		if err := r.flush(); err != nil {
			return err
		}
		r.runAt = a
	}
	b := r.memory[len(r.run)*disk.BlockSize:][:disk.BlockSize]
	copy(b, data)
	r.run = append(r.run, b)
	return nil
}

func (r *restore) flush() error {
	if len(r.run) == 0 {
		return nil
	}
	err := r.layout.WriteAt(r.runAt, r.run)
	r.done += uint64(len(r.run))
	r.run = r.run[:0]
	if r.o.Progress != nil {
		r.o.Progress(r.done, r.total)
	}
	return err
}

// zeros makes zeros of those of the blocks [from, to) that are there and matter: what is before the data, and data in
// use. A device that reads as zeros needs none.
func (r *restore) zeros(from, to uint64) error {
	if r.o.Zeroed {
		return nil
	}
	block := make([]byte, disk.BlockSize)
	for lo, hi := range disk.There(r.layout, from, to) {
		for a := lo; a < hi; a++ {
			matters, err := r.used(a)
			if err == nil && matters {
				err = r.write(a, block)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// used tells whether it matters what block a has. The bitmap is written before the data are.
func (r *restore) used(a uint64) (bool, error) {
	g := r.super.Geometry()
	if a < g.Data0() || a >= g.Data1() {
		return true, nil
	}
	if at := g.BlockBitmap() + a/bitsBlock; r.bitsAt != at+1 {
		if err := r.flush(); err != nil {
			return false, err
		}
		if err := r.layout.ReadAt(at, [][]byte{r.bits}); err != nil {
			return false, err
		}
		r.bitsAt = at + 1
	}
	bit := a % bitsBlock
	return r.bits[bit/8]>>(bit%8)&1 != 0, nil
}

// finish writes the superblocks, when all else is durable.
func (r *restore) finish() error {
	if err := r.flush(); err != nil {
		return err
	}
	if err := r.layout.Barrier(); err != nil {
		return err
	}
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	for _, a := range []uint64{r.info.Size - 1, 0} {
		if err := r.layout.WriteAt(a, [][]byte{r.first}); err != nil {
			return err
		}
		if err := r.layout.Barrier(); err != nil {
			return err
		}
	}
	return nil
}
