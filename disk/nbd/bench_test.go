package nbd

import (
	"os"
	"path/filepath"
	"testing"

	"tansy/disk"
	"tansy/disk/disktest"
)

// BenchmarkDevice measures what NBD costs: the export TANSY_NBD, over whose blocks it writes, beside an image file.
// Point it at a server whose storage is on the same file system as the folder for temporary files.
func BenchmarkDevice(b *testing.B) {
	const size = 64 << 20 / disk.BlockSize
	devices := map[string]func(b *testing.B) disk.Disk{
		"file": func(b *testing.B) disk.Disk {
			d, err := disk.CreateFile(filepath.Join(b.TempDir(), "image"), size*disk.BlockSize)
			must(b, err)
			return d
		},
	}
	if name := os.Getenv("TANSY_NBD"); name != "" {
		devices["NBD"] = func(b *testing.B) disk.Disk { return device(b, name, Options{}) }
	}
	for name, open := range devices {
		run := func(what string, blocks int, op func(d disk.Disk, a uint64, bufs [][]byte) error) {
			b.Run(name+"/"+what, func(b *testing.B) {
				d := open(b)
				defer d.Close()
				bufs := disktest.Pattern(256, 1)
				for a := uint64(0); a < size; a += 256 { // so that no barrier has to allocate
					must(b, d.WriteAt(a, bufs))
				}
				must(b, d.Barrier())
				b.SetBytes(int64(blocks * disk.BlockSize))
				for i := uint64(0); b.Loop(); i++ {
					must(b, op(d, i*uint64(blocks)%size, bufs[:blocks]))
				}
			})
		}
		run("4 blocks and a barrier", 4, func(d disk.Disk, a uint64, bufs [][]byte) error {
			if err := d.WriteAt(a, bufs); err != nil {
				return err
			}
			return d.Barrier()
		})
		run("1 MiB written", 256, disk.Disk.WriteAt)
		run("1 MiB read", 256, disk.Disk.ReadAt)
		run("a block read", 1, disk.Disk.ReadAt)
	}
}
