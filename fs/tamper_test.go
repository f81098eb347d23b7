package fs_test

import (
	"crypto/sha256"
	"encoding/binary"
	"log/slog"
	"slices"
	"testing"

	"tansy/disk"
	"tansy/fs"
	"tansy/journal"
)

// journalOf says where the journal of the volume on d lies (docs/format.md).
func journalOf(t testing.TB, d disk.Disk) journal.Params {
	t.Helper()
	b := readBlock(t, d, 0)
	u64 := func(off int) uint64 { return binary.LittleEndian.Uint64(b[off:]) }
	return journal.Params{
		Start: 1 + 2*u64(168), Pages: u64(168), Units: u64(32), Ring: u64(40),
		UUID: [16]byte(b[120:]), Key: sha256.Sum256(append(slices.Clone(b[136:168]), "journal"...)),
		Bitmap: u64(56), First: u64(72), Limit: u64(80),
	}
}

func readBlock(t testing.TB, d disk.Disk, a uint64) []byte {
	t.Helper()
	b := make([]byte, fs.BlockSize)
	if err := d.ReadAt(a, [][]byte{b}); err != nil {
		t.Fatal(err)
	}
	return b
}

func writeBlock(t testing.TB, d disk.Disk, a uint64, b []byte) {
	t.Helper()
	if err := d.WriteAt(a, [][]byte{b}); err != nil {
		t.Fatal(err)
	}
}

// tamper writes home blocks of the volume on d, which is not open, as the server would: with their codes.
func tamper(t testing.TB, d disk.Disk, blocks map[uint64][]byte) {
	t.Helper()
	j, err := journal.Open(d, journalOf(t, d), journal.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	for a, b := range blocks {
		if err := j.Commit([]journal.Write{{Addr: a, Data: b}}, true); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}
