package fs

import (
	"context"
	"testing"

	"tansy/disk"
	"tansy/internal/runtime/clock"
)

// TestMayGrow: what is written beside the journal follows a look at whose the volume is that is no older than the
// bound: a look that took longer does not count.
func TestMayGrow(t *testing.T) {
	d := disk.NewMem(16 << 20)
	if err := Mkfs(d, MkfsOptions{Zeroed: true}); err != nil {
		t.Fatal(err)
	}
	stats := disk.NewStats(d)
	v, err := Open(stats, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	for _, x := range []struct {
		took  []uint64 // by each look
		looks int
	}{{[]uint64{uint64(lookBound)}, 1}, {[]uint64{uint64(lookBound) + 1, 5 * uint64(lookBound), 7}, 3}} {
		now, asked := uint64(0), 0
		v.extent.clock = clock.Of(func() uint64 {
			if asked++; asked%2 == 0 && asked/2 <= len(x.took) {
				now += x.took[asked/2-1]
			}
			return now
		})
		if err := v.mayGrow(context.Background()); err != nil {
			t.Fatal(err)
		}
		if asked != 2*x.looks {
			t.Errorf("looks that took %d ns: the clock is asked %d times, not %d", x.took, asked, 2*x.looks)
		}
	}
}
