// Package volume makes of a disk a volume for transactions (package txn), and opens it.
//
//	err := volume.Create(d, "accounts 1", volume.Sizes{Smalls: 1000}) // once
//	v, err := volume.Open(d, "accounts 1", journal.Options{})         // each time, also after a crash
//	defer v.Close()
//
// A volume has a region of bits, one of objects of 256 bytes, and one of blocks. All are zero at first. The journal
// has its tree of codes, so that nothing is ever read that is not what was last written there.
//
//	block 0            what the journal must know to be opened, and the sizes; see header.go
//	1 .. Home()-1      the tree of codes, and the log (package journal)
//	from Home() on     bits, objects of 256 bytes, blocks: each region whole blocks
//
// Block 0 is written when all else is durable that belongs to a new volume, and never again.
package volume

import (
	"errors"
	"fmt"

	"tansy/disk"
	"tansy/journal"
	"tansy/txn"
)

// Errors, for errors.Is.
var (
	// ErrForeign: the disk holds no volume, or that of another program.
	ErrForeign = errors.New("no such volume")
	// ErrVersion: the volume has a format that this package does not know.
	ErrVersion = errors.New("unknown version of the format")
	// ErrDamaged: block 0 is not what was written there.
	ErrDamaged = errors.New("damaged")
	// ErrTooSmall: the disk has fewer blocks than the volume takes.
	ErrTooSmall = errors.New("the disk is too small")
	// ErrInUse: block 0 of a disk for a new volume is not zero, so the disk holds something.
	ErrInUse = errors.New("the disk is not new")
	// ErrSizes: there can be no volume of these sizes, or for a program of this name.
	ErrSizes = errors.New("there can be no such volume")
)

// Volume is an open volume. Its methods may be called concurrently. The System's Allocator(v.Bits) hands out the bits.
type Volume struct {
	*txn.System
	Bits, Smalls, Blocks txn.Region       // Count is 0 where the volume has none
	UUID                 [16]byte         // random, of this volume
	Journal              *journal.Journal // below the System: for numbers and scrubbing, not for Commit
}

// Create makes a volume on d for the named program, with all objects zero. The first block of d must be zero: a disk
// that holds something is not overwritten. A crash meanwhile leaves no volume, and Create can be called again. When
// it returns, the volume is durable. Of a disk that is larger, the blocks behind the volume stay as they are.
func Create(d disk.Disk, program string, s Sizes) error {
	h, err := newHeader(program, s)
	if err != nil {
		return fmt.Errorf("volume: %w", err)
	}
	if err := h.fits(d); err != nil {
		return err
	}
	first := make([]byte, disk.BlockSize)
	if err := d.ReadAt(0, [][]byte{first}); err != nil {
		return fmt.Errorf("volume: %w", err)
	}
	if !isZero(first) {
		return fmt.Errorf("volume: %w: block 0 holds something; write zeros there if nobody needs it", ErrInUse)
	}
	d = disk.NewPrefix(d, h.size())
	if err := zero(d, 1); err != nil {
		return fmt.Errorf("volume: %w", err)
	}
	if err := journal.Format(d, h.params()); err != nil {
		return err
	}
	// Format has ended with a barrier, so all that belongs to the volume is durable. With this block, which a crash
	// leaves whole or not written, there is one.
	if err := d.WriteAt(0, [][]byte{h.encode()}); err != nil {
		return fmt.Errorf("volume: %w", err)
	}
	if err := d.Barrier(); err != nil {
		return fmt.Errorf("volume: %w", err)
	}
	return nil
}

// Open opens the volume of the named program on d, whatever a crash has left of it. Nobody else may use d until Close.
func Open(d disk.Disk, program string, o journal.Options) (*Volume, error) {
	first := make([]byte, disk.BlockSize)
	if err := d.ReadAt(0, [][]byte{first}); err != nil {
		return nil, fmt.Errorf("volume: %w", err)
	}
	h, err := decode(first)
	if err != nil {
		return nil, fmt.Errorf("volume: block 0: %w", err)
	}
	if h.program != program {
		return nil, fmt.Errorf("volume: %w: it is one of %q, not of %q", ErrForeign, h.program, program)
	}
	if err := h.fits(d); err != nil {
		return nil, err
	}
	j, err := journal.Open(disk.NewPrefix(d, h.size()), h.params(), o)
	if err != nil {
		return nil, err
	}
	v := &Volume{UUID: h.uuid, Journal: j}
	v.Bits, v.Smalls, v.Blocks = h.regions()
	if v.System, err = txn.Open(j, v.regions()...); err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return v, nil
}

// regions are those that have blocks.
func (v *Volume) regions() (some []txn.Region) {
	for _, r := range []txn.Region{v.Bits, v.Smalls, v.Blocks} {
		if r.Count > 0 {
			some = append(some, r)
		}
	}
	return some
}

// Close makes everything durable and closes the volume, not the disk. It ends transactions as package txn says.
func (v *Volume) Close() error { return v.Journal.Close() }

// zeroRun is the number of blocks that are read at a time to see whether they are zero.
const zeroRun = 256

// zero makes the blocks of d from a on zero, where they are not.
func zero(d disk.Disk, a uint64) error {
	var bufs [][]byte
	for range zeroRun {
		bufs = append(bufs, make([]byte, disk.BlockSize))
	}
	zeros := make([]byte, disk.BlockSize)
	for {
		next, err := disk.NextData(d, a)
		if err != nil || next >= d.Size() {
			return err
		}
		run := bufs[:min(zeroRun, d.Size()-next)]
		if err := d.ReadAt(next, run); err != nil {
			return err
		}
		for i, b := range run {
			if isZero(b) {
				continue
			}
			if err := d.WriteAt(next+uint64(i), [][]byte{zeros}); err != nil {
				return err
			}
		}
		a = next + uint64(len(run))
	}
}

func isZero(p []byte) bool {
	for _, x := range p {
		if x != 0 {
			return false
		}
	}
	return true
}
