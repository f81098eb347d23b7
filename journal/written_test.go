package journal

import (
	"testing"

	"tansy/disk"
	"tansy/internal/gen/journal/journalthreads"
)

// TestWritten: blocks are told of that hold something; not those that were never written, whatever the device has
// there, nor zeros.
func TestWritten(t *testing.T) {
	p := coded(roomy, homeBlocks)
	d := disk.NewMem(sizeOf(p) * disk.BlockSize)
	h := p.Home()
	put(t, d, h+9, contents(7)) // before there is a journal
	if err := Format(d, p); err != nil {
		t.Fatal(err)
	}
	j, err := Open(d, p, quiet)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	zeros := make([]byte, disk.BlockSize)
	for _, ws := range [][]Write{
		{{h + 2, contents(1)}, {h + 3, contents(2)}, {h + 4, contents(3)}, {h + 6, contents(4)}},
		{{h + 4, zeros}, {h + 5, zeros}},
	} {
		if err := j.Commit(ws, true); err != nil {
			t.Fatal(err)
		}
	}
	journalthreads.Drain(j.core)
	for _, c := range [][4]uint64{
		{0, 10, 2, 4}, {3, 10, 3, 4}, {4, 10, 6, 7}, {7, 10, 10, 10}, {2, 3, 2, 3}, {5, 5, 5, 5},
	} {
		if lo, hi := j.Written(h+c[0], h+c[1]); lo != h+c[2] || hi != h+c[3] {
			t.Errorf("from %d up to %d: %d up to %d", c[0], c[1], lo-h, hi-h)
		}
	}
}
