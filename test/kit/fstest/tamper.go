package fstest

import (
	"crypto/sha256"
	"encoding/binary"
	"log/slog"
	"slices"

	"tansy/disk"
	"tansy/journal"
)

// JournalOf says where the journal of the volume on d lies (docs/design/format.md).
func JournalOf(d disk.Disk) (p journal.Params, err error) {
	b := make([]byte, disk.BlockSize)
	if err := d.ReadAt(0, [][]byte{b}); err != nil {
		return p, err
	}
	u64 := func(off int) uint64 { return binary.LittleEndian.Uint64(b[off:]) }
	return journal.Params{
		Start: 1 + 2*u64(168), Pages: u64(168), Units: u64(32), Ring: u64(40),
		UUID: [16]byte(b[120:]), Key: sha256.Sum256(append(slices.Clone(b[136:168]), "journal"...)),
		Bitmap: u64(56), First: u64(72), Limit: u64(80),
	}, nil
}

// Tamper writes home blocks of the volume on d, which nobody has open, as the server would: with their codes.
func Tamper(d disk.Disk, blocks map[uint64][]byte) error {
	p, err := JournalOf(d)
	if err != nil {
		return err
	}
	j, err := journal.Open(d, p, journal.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	for a, b := range blocks {
		if err := j.Commit([]journal.Write{{Addr: a, Data: b}}, true); err != nil {
			j.Close()
			return err
		}
	}
	return j.Close()
}
