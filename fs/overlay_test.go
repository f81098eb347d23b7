package fs

import (
	"testing"

	"tansy/disk"
)

// What lies over a device tells where that has no data, and where itself has some.
func TestOverlayHoles(t *testing.T) {
	d := disk.NewMem(100 * disk.BlockSize)
	block := [][]byte{make([]byte, BlockSize)}
	block[0][0] = 1
	if err := d.WriteAt(50, block); err != nil {
		t.Fatal(err)
	}
	o := newOverlay(d)
	for _, want := range [][2]uint64{{0, 50}, {51, 100}} {
		if a, err := disk.NextData(o, want[0]); err != nil || a != want[1] {
			t.Errorf("from %d: %d, %v, want %d", want[0], a, err, want[1])
		}
	}
	if err := o.WriteAt(20, block); err != nil {
		t.Fatal(err)
	}
	for _, want := range [][2]uint64{{0, 20}, {20, 20}, {21, 50}, {51, 100}} {
		if a, err := disk.NextData(o, want[0]); err != nil || a != want[1] {
			t.Errorf("from %d: %d, %v, want %d", want[0], a, err, want[1])
		}
	}
}
