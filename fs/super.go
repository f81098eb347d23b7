package fs

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"tansy/disk"
	"tansy/internal/gen/superm"
)

// ErrNotVolume is what Open returns for a device that holds no Tansy volume, or
// one of which both superblocks are damaged.
var ErrNotVolume = errors.New("not a Tansy volume")

// why a superblock is refused, as verified/fs/super.dfy numbers it
var refusals = map[uint32]string{
	1: "it has no superblock",
	2: "its superblock is damaged (checksum)",
	3: "it was made by another version of Tansy",
	4: "it uses features this version does not know",
	5: "its superblock contradicts itself",
}

// readSuper returns the superblock of a volume: that in block 0, or, when it is
// unreadable, its copy in the last block.
func readSuper(d disk.Disk) (superm.Super, error) {
	if d.Size() < 2 {
		return superm.Super{}, fmt.Errorf("%w: %d blocks", ErrNotVolume, d.Size())
	}
	s, err := decodeSuper(d, 0)
	if err != nil {
		if c, cerr := decodeSuper(d, d.Size()-1); cerr == nil {
			s, err = c, nil
		}
	}
	if err != nil {
		return s, err
	}
	if s.Dtor_size() > d.Size() {
		return s, fmt.Errorf("the volume has %d blocks, but the device only %d", s.Dtor_size(), d.Size())
	}
	return s, nil
}

func decodeSuper(d disk.Disk, a uint64) (superm.Super, error) {
	b := make([]byte, BlockSize)
	if err := d.ReadAt(a, [][]byte{b}); err != nil {
		return superm.Super{}, err
	}
	why, s := superm.Companion_Default___.Decode(bytesOf(b))
	if why != 0 {
		return s, fmt.Errorf("%w: block %d: %s", ErrNotVolume, a, refusals[why])
	}
	return s, nil
}

// writeSuper writes the copy first: a volume is one only when block 0 says so.
func writeSuper(d disk.Disk, s superm.Super) error {
	b := superm.Companion_Default___.Encode(s).Data
	for _, a := range []uint64{s.Dtor_size() - 1, 0} {
		if err := d.WriteAt(a, [][]byte{b}); err != nil {
			return err
		}
		if err := d.Barrier(); err != nil {
			return err
		}
	}
	return nil
}

// key is the 32 random bytes of the volume.
func superKey(s superm.Super) (key [32]byte) {
	for i, x := range []uint64{s.Dtor_key0(), s.Dtor_key1(), s.Dtor_key2(), s.Dtor_key3()} {
		binary.LittleEndian.PutUint64(key[8*i:], x)
	}
	return key
}

func superUUID(s superm.Super) (id [16]byte) {
	binary.LittleEndian.PutUint64(id[:], s.Dtor_uuid0())
	binary.LittleEndian.PutUint64(id[8:], s.Dtor_uuid1())
	return id
}

// newSecrets draws the UUID (version 4) and the key of a new volume.
func newSecrets() (uuid [2]uint64, key [4]uint64, err error) {
	var b [48]byte
	if _, err := io.ReadFull(rand.Reader, b[:]); err != nil {
		return uuid, key, err
	}
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	for i := range uuid {
		uuid[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	for i := range key {
		key[i] = binary.LittleEndian.Uint64(b[16+8*i:])
	}
	return uuid, key, nil
}
