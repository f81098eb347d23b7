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
		{"Sim", func(t *testing.T) disk.Disk { return disk.NewSim(disktest.Blocks) }},
		{"Sim recording", func(t *testing.T) disk.Disk {
			s := disk.NewSim(disktest.Blocks)
			s.Record()
			return s
		}},
		{"Stats", func(t *testing.T) disk.Disk { return disk.NewStats(newMem(t)) }},
		{"Prefix", func(*testing.T) disk.Disk { return disk.NewPrefix(disk.NewMem(disktest.Blocks+10), disktest.Blocks) }},
		{"Fault", func(t *testing.T) disk.Disk { return disk.NewFault(newMem(t), 1, nil) }},
	} {
		t.Run(c.name, func(t *testing.T) { disktest.Run(t, c.open) })
	}
}

func newMem(*testing.T) disk.Disk { return disk.NewMem(disktest.Blocks) }

func newImage(t *testing.T) disk.Disk {
	d, err := disk.CreateFile(filepath.Join(t.TempDir(), "image"), disktest.Blocks*disk.BlockSize)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
