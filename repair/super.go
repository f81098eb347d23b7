package repair

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"

	"tansy/disk"
	"tansy/internal/extern/dbytes"
	"tansy/internal/gen/fs/format/superblockformat"
	"tansy/journal"
)

// ErrNoSuperblock is the error of a device with neither a superblock nor a copy of one that this
// program can use.
var ErrNoSuperblock = errors.New("neither the superblock nor its copy can be used")

// superblocks returns the superblock, and both blocks for it, nil for one that cannot be used.
func superblocks(d disk.Disk) (s superblockformat.Super, raw [2][]byte, err error) {
	read := func(a uint64) (superblockformat.Super, []byte) {
		b := make([]byte, disk.BlockSize)
		if d.ReadAt(a, [][]byte{b}) != nil {
			return s, nil
		}
		why, s := superblockformat.Decode(&dbytes.Bytes{Data: b})
		if why != 0 || s.Size() > d.Size() {
			return s, nil
		}
		return s, b
	}
	if d.Size() < 2 {
		return s, raw, ErrNoSuperblock
	}
	if s, raw[0] = read(0); raw[0] != nil {
		_, raw[1] = read(s.Size() - 1)
		return s, raw, nil
	}
	if s, raw[1] = read(d.Size() - 1); raw[1] != nil && s.Size() == d.Size() {
		return s, raw, nil
	}
	return s, raw, ErrNoSuperblock
}

// superblock makes the superblock and its copy the same.
func (r *run) superblock() error {
	s, raw, err := superblocks(r.d)
	if err != nil {
		return err
	}
	r.sb = s
	at, from := s.Size()-1, raw[0]
	switch {
	case raw[0] == nil:
		at, from = 0, raw[1]
		r.did(0, "the superblock in block 0 is restored from its copy in block %d", s.Size()-1)
	case raw[1] == nil:
		r.did(0, "the copy of the superblock in block %d is made anew", at)
	case !bytes.Equal(raw[0], raw[1]):
		r.did(0, "the copy of the superblock in block %d, which differs, is made anew", at)
	default:
		return nil
	}
	if err := r.d.WriteAt(at, [][]byte{from}); err != nil {
		return err
	}
	return r.d.Barrier()
}

// uuidOf is the UUID of a volume.
func uuidOf(s superblockformat.Super) (id [16]byte) {
	binary.LittleEndian.PutUint64(id[:], s.Uuid0())
	binary.LittleEndian.PutUint64(id[8:], s.Uuid1())
	return id
}

// journalOf says where the journal of a volume lies.
func journalOf(s superblockformat.Super) journal.Params {
	var key []byte
	for _, x := range []uint64{s.Key0(), s.Key1(), s.Key2(), s.Key3()} {
		key = binary.LittleEndian.AppendUint64(key, x)
	}
	g := s.Geo()
	return journal.Params{
		Start: 1 + 2*s.Pages(), Pages: s.Pages(), Units: s.Lognd(), Ring: s.Lognr(), UUID: uuidOf(s),
		Key:    sha256.Sum256(append(key, "journal"...)),
		Bitmap: g.Bbm(), First: g.Data0(), Limit: g.Data1(),
	}
}
