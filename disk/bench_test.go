package disk_test

import (
	"path/filepath"
	"testing"

	"tansy/disk"
	"tansy/disk/disktest"
)

// BenchmarkDurableStep is the least that a stable operation costs on this
// machine: a few consecutive blocks, overwritten, and a barrier.
func BenchmarkDurableStep(b *testing.B) {
	const size = 4096 // blocks
	d, err := disk.CreateFile(filepath.Join(b.TempDir(), "image"), size*disk.BlockSize)
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	bufs := disktest.Pattern(4, 1)
	for a := uint64(0); a < size; a += 4 { // so that no barrier has to allocate
		if err := d.WriteAt(a, bufs); err != nil {
			b.Fatal(err)
		}
	}
	if err := d.Barrier(); err != nil {
		b.Fatal(err)
	}
	for i := uint64(0); b.Loop(); i++ {
		if err := d.WriteAt(i*4%size, bufs); err != nil {
			b.Fatal(err)
		}
		if err := d.Barrier(); err != nil {
			b.Fatal(err)
		}
	}
}
