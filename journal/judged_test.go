package journal

import (
	"testing"
	"time"

	"tansy/disk"
)

// behind is a disk with a cache below it.
type behind struct {
	disk.Disk
	past bool
}

func (b *behind) PastCache() bool {
	b.past = true
	return true
}

// Opening judges the device by its quickest write with a barrier. Where that takes 80 us at most, all writes go past
// the cache; where it takes longer, the device is not told to. The counts say which. Mem is quick unless the machine is
// busy.
func TestJudged(t *testing.T) {
	const quick = 80 * time.Microsecond
	d := &behind{Disk: disk.NewMem(4000 * disk.BlockSize)}
	for n := 0; ; n++ {
		j := openPlain(t, d, n == 0)
		s := j.Stats()
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		if s.TriedBarrier <= 0 || s.PastCache != (s.TriedBarrier <= quick) || s.PastCache != d.past {
			t.Fatalf("a barrier took %v: the counts say past the cache: %v, the device was told: %v",
				s.TriedBarrier, s.PastCache, d.past)
		}
		if d.past {
			return
		}
		if n == 1000 {
			t.Skip("this machine is too busy for any barrier to be quick")
		}
	}
}
