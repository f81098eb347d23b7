package crash

import (
	"testing"

	"tansy/disk"
	"tansy/fs"
)

// TestEqual: two recoveries of one image are the same, whatever the volume, and whatever their epochs are; one is not
// the same any more when a byte is another one, but in what is dead of the log.
func TestEqual(t *testing.T) {
	for blocks := range bases {
		base, err := start(blocks)
		if err != nil {
			t.Fatal(err)
		}
		log, err := placeOfLog(base)
		if err != nil {
			t.Fatal(err)
		}
		var sums []uint64
		var d *disk.Sim
		for range 2 {
			d = base.Crash(disk.KeepAll)
			v, err := fs.Open(d, options)
			if err != nil {
				t.Fatal(err)
			}
			if err := v.Close(); err != nil {
				t.Fatal(err)
			}
			sums = append(sums, log.sum(d))
		}
		if sums[0] != sums[1] {
			t.Errorf("%d blocks: two recoveries of one image differ", blocks)
		}
		for _, x := range []struct {
			block  uint64
			at     int
			counts bool
		}{
			{0, 100, true}, {log.first, 24, true}, {log.first, 48, true}, {log.first, 32, false}, {log.first, 70, false},
			{log.behind - 1, 24, true}, {log.behind - 1, 40, false}, {log.first + 1, 0, false}, {log.behind - 2, 0, false},
			{log.behind, 4000, true}, {base.Size() - 1, 4000, true},
		} {
			other, b := d.Crash(disk.KeepAll), make([]byte, disk.BlockSize)
			if err := other.ReadAt(x.block, [][]byte{b}); err != nil {
				t.Fatal(err)
			}
			b[x.at]++
			if err := other.WriteAt(x.block, [][]byte{b}); err != nil {
				t.Fatal(err)
			}
			if got := log.sum(other) != sums[1]; got != x.counts {
				t.Errorf("%d blocks: byte %d of block %d counts: %v", blocks, x.at, x.block, got)
			}
		}
	}
}
