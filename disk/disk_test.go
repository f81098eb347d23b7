package disk_test

import (
	"path/filepath"
	"testing"

	"tansy/disk"
	"tansy/disk/disktest"
)

// TestConformance runs the common suite on every implementation.
func TestConformance(t *testing.T) {
	for _, c := range []struct {
		name string
		open func(t *testing.T) disk.Disk
	}{
		{"File", newImage},
		{"Mem", newMem},
		{"Sim", func(t *testing.T) disk.Disk { return disk.NewSim(disktest.Blocks * disk.BlockSize) }},
		{"Sim recording", func(t *testing.T) disk.Disk {
			s := disk.NewSim(disktest.Blocks * disk.BlockSize)
			s.Record()
			return s
		}},
		{"Stats", func(t *testing.T) disk.Disk { return disk.NewStats(newMem(t)) }},
		{"Prefix", func(*testing.T) disk.Disk {
			return disk.NewPrefix(disk.NewMem((disktest.Blocks+10)*disk.BlockSize), disktest.Blocks)
		}},
		{"Pieced", newPieced},
		{"Fault", func(t *testing.T) disk.Disk { return disk.NewFault(newMem(t), 1, nil) }},
	} {
		t.Run(c.name, func(t *testing.T) { disktest.Run(t, c.open) })
	}
}

func newMem(*testing.T) disk.Disk { return disk.NewMem(disktest.Blocks * disk.BlockSize) }

func newImage(t *testing.T) disk.Disk {
	d, err := disk.CreateFile(filepath.Join(t.TempDir(), "image"), disktest.Blocks*disk.BlockSize)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestMemorySize: sizes are in bytes, as those of files, and a tail shorter than a block is ignored.
func TestMemorySize(t *testing.T) {
	for bytes, blocks := range map[uint64]uint64{
		0: 0, disk.BlockSize - 1: 0, disk.BlockSize: 1, 5*disk.BlockSize - 1: 4, 5 * disk.BlockSize: 5,
	} {
		if n := disk.NewMem(bytes).Size(); n != blocks {
			t.Errorf("Mem of %d bytes: %d blocks, not %d", bytes, n, blocks)
		}
		if n := disk.NewSim(bytes).Size(); n != blocks {
			t.Errorf("Sim of %d bytes: %d blocks, not %d", bytes, n, blocks)
		}
	}
}
