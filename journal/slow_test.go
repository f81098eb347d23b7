package journal

import (
	"testing"
	"time"

	"tansy/disk"
	"tansy/internal/extern/ddisk"
)

// lateDisk takes its time to read.
type lateDisk struct{ disk.Disk }

func (d lateDisk) ReadAt(a uint64, bufs [][]byte) error {
	time.Sleep(slowRead)
	return d.Disk.ReadAt(a, bufs)
}

// A device is slow when many reads took long, on average, and before that it is not.
func TestSlowness(t *testing.T) {
	d := ddisk.New(lateDisk{disk.NewMem(200)})
	slow := slowness(d)
	for range 63 {
		d.ReadRun(0, 2)
		if slow() {
			t.Fatal("after a few reads")
		}
	}
	d.ReadRun(0, 2)
	for range 2 {
		if !slow() {
			t.Error("it is not noticed")
		}
	}
}
