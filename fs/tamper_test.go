package fs_test

import (
	"testing"

	"tansy/disk"
	"tansy/fs"
	"tansy/journal"
	"tansy/test/kit/fstest"
)

func journalOf(t testing.TB, d disk.Disk) journal.Params {
	t.Helper()
	p, err := fstest.JournalOf(d)
	if err != nil {
		t.Fatal(err)
	}
	return p
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

// tamper writes home blocks of the volume on d with their codes.
func tamper(t testing.TB, d disk.Disk, blocks map[uint64][]byte) {
	t.Helper()
	if err := fstest.Tamper(d, blocks); err != nil {
		t.Fatal(err)
	}
}
