package repair

import (
	"bytes"
	"errors"
	"fmt"

	"tansy/disk"
	"tansy/internal/gen/fs/format/superblockformat"
	"tansy/internal/runtime/dbytes"
	"tansy/internal/volumeend"
)

// ErrNoSuperblock is the error for a device whose superblock cannot be used, and neither can the copy.
var ErrNoSuperblock = errors.New("neither the superblock nor its copy can be used")

// superblocks returns the superblock, and both blocks for it, nil for one that cannot be used. d is the device.
func superblocks(d disk.Disk) (s superblockformat.Super, raw [2][]byte, err error) {
	read := func(a uint64) (superblockformat.Super, []byte) {
		b := make([]byte, disk.BlockSize)
		if d.ReadAt(a, [][]byte{b}) != nil {
			return s, nil
		}
		why, s := superblockformat.Decode(&dbytes.Bytes{Data: b})
		if why != 0 || s.Extent().Room() > d.Size() {
			return s, nil
		}
		return s, b
	}
	if d.Size() < 2 {
		return s, raw, ErrNoSuperblock
	}
	if n := roomSaid(d); n > d.Size() {
		return s, raw, fmt.Errorf("the volume has %d blocks, but the device only %d: make it %d bytes long again first",
			n, d.Size(), n*disk.BlockSize)
	}
	if s, raw[0] = read(0); raw[0] != nil {
		_, raw[1] = read(s.Extent().Room() - 1)
		return s, raw, nil
	}
	if s, raw[1] = read(d.Size() - 1); raw[1] != nil && s.Extent().Room() == d.Size() {
		return s, raw, nil
	}
	return s, raw, ErrNoSuperblock
}

// roomSaid is the number of blocks that the superblock in block 0 says the volume uses, 0 if that cannot be used.
func roomSaid(d disk.Disk) uint64 {
	b := make([]byte, disk.BlockSize)
	if d.ReadAt(0, [][]byte{b}) != nil {
		return 0
	}
	if why, s := superblockformat.Decode(&dbytes.Bytes{Data: b}); why == 0 {
		return s.Extent().Room()
	}
	return 0
}

// superblock makes the superblock and its copy the same. From then on the layout of the volume is known.
func (r *run) superblock() error {
	s, raw, err := superblocks(r.d)
	if err != nil {
		return err
	}
	r.sb, r.layout = s, volumeend.Layout(r.d, s)
	last := s.Size() - 1 // in the layout
	at, from := s.Extent().Room()-1, raw[0]
	switch {
	case raw[0] == nil:
		at, from = 0, raw[1]
		r.did(0, "the superblock in block 0 is restored from its copy in block %d", last)
	case raw[1] == nil:
		r.did(0, "the copy of the superblock in block %d is made anew", last)
	case !bytes.Equal(raw[0], raw[1]):
		r.did(0, "the copy of the superblock in block %d, which differs, is made anew", last)
	default:
		return nil
	}
	if err := r.d.WriteAt(at, [][]byte{from}); err != nil {
		return err
	}
	return r.d.Barrier()
}
