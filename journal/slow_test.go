package journal

import (
	"testing"
	"testing/synctest"
	"time"

	"tansy/disk"
	"tansy/internal/runtime/ddisk"
)

// lateDisk takes its time to read.
type lateDisk struct {
	disk.Disk
	takes time.Duration
}

func (d *lateDisk) ReadAt(a uint64, bufs [][]byte) error {
	time.Sleep(d.takes)
	return d.Disk.ReadAt(a, bufs)
}

// A device is slow when the last 64 reads took long, on average, and not before that.
func TestSlowness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := &lateDisk{Disk: disk.NewMem(200 * disk.BlockSize)}
		d := ddisk.New(late)
		slow := slowness(d)
		was := false
		for _, takes := range []time.Duration{SlowRead - 1, SlowRead, 0, 2 * SlowRead} {
			late.takes = takes
			for range 64 {
				if slow() != was {
					t.Fatalf("reads of %v: it is noticed too early", takes)
				}
				d.ReadRun(0, 2)
			}
			if was = takes >= SlowRead; slow() != was {
				t.Errorf("reads of %v: it is not noticed", takes)
			}
		}
	})
}
