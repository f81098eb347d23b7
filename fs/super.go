package fs

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"tansy/disk"
	"tansy/internal/gen/fs/format/superblockcopies"
	"tansy/internal/gen/fs/format/superblockformat"
	"tansy/internal/runtime/ddisk"
	"tansy/internal/volumeend"
	"tansy/journal"
)

// ErrNotVolume is wrapped by an error of Open for a device without a Tansy volume that this version can use.
var ErrNotVolume = errors.New("not a Tansy volume")

// ErrNoSuperblock is wrapped as well if nothing shows that the device ever held a volume.
var ErrNoSuperblock = errors.New("no superblock")

const (
	noSuper = 1
	badSum  = 2
	other   = 3 // version of the format
)

// readSuper returns the superblock of a volume; damaged: that in block 0 is not usable, and its copy serves.
func readSuper(d disk.Disk) (s superblockformat.Super, damaged bool, err error) {
	if d.Size() < 2 {
		return s, false, fmt.Errorf("%w: %d whole blocks of %d bytes are too few for one", ErrNotVolume, d.Size(), BlockSize)
	}
	dd := ddisk.New(d)
	which, why, s := superblockcopies.Find(dd)
	switch {
	case which == superblockcopies.COPY() && !(s.Extent().Room() == d.Size() &&
		journal.Present(volumeend.Layout(d, s), journalParams(s))):
		return s, false, foreignCopy(d)
	case which != superblockcopies.NONE():
		return s, which == superblockcopies.COPY(), nil
	}
	return s, false, refused(d, dd, why, s)
}

// key is the 32 random bytes of the volume.
func superKey(s superblockformat.Super) (key [32]byte) {
	for i, x := range []uint64{s.Key0(), s.Key1(), s.Key2(), s.Key3()} {
		binary.LittleEndian.PutUint64(key[8*i:], x)
	}
	return key
}

func superUUID(s superblockformat.Super) (id [16]byte) {
	binary.LittleEndian.PutUint64(id[:], s.Uuid0())
	binary.LittleEndian.PutUint64(id[8:], s.Uuid1())
	return id
}

// FormatVersion is the number of the format of volumes that this package makes and opens.
func FormatVersion() uint32 { return superblockformat.VERSION() }

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
