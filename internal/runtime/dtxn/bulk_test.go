package dtxn

import (
	"testing"

	"tansy/disk"
	"tansy/internal/gen/txn/places"
	"tansy/internal/runtime/dbytes"
	"tansy/journal"
)

// TestBulk: new blocks that are wished straight home are written once, others twice; what
// they say is the same. Wishes of an aborted transaction harm nobody.
func TestBulk(t *testing.T) {
	const n = 300
	p := memParams
	p.Bitmap, p.First, p.Limit = memLog, memLog+10, memLog+10+n
	l := Layout{Maps: [2]Bitmap{Blocks: {Start: p.Bitmap, First: p.First, Limit: p.Limit}},
		Places: placesOf(region{p.First, p.Limit, places.BLOCKS()}, region{p.Bitmap, p.First, places.BITS()})}
	for _, c := range []struct {
		bulk  bool
		times float64
	}{{false, 2}, {true, 1}} {
		d := disk.NewMem(p.Limit * disk.BlockSize)
		must(t, journal.Format(d, p))
		j, err := journal.Open(d, p, journal.Options{})
		if err != nil {
			t.Fatal(err)
		}
		s, err := New(j, l)
		must(t, err)
		fill := func(x *Txn) error {
			for range n {
				ok, b := x.AllocHint(Blocks, 0)
				if !ok {
					t.Fatal("no block is left")
				}
				x.WriteBit(p.Bitmap, b, true)
				if c.bulk {
					x.Bulk(b)
				}
				x.WriteBlock(b, &dbytes.Bytes{Data: append(make([]byte, 4095), byte(b))})
			}
			return nil
		}
		x := s.Begin()
		must(t, fill(x))
		x.Abort()
		must(t, s.Run(true, false, fill))
		must(t, j.Close())
		if times := float64(j.Stats().WrittenBlocks) / n; times < c.times || times > c.times+0.1 {
			t.Errorf("wish %v: every block is written %.2f times", c.bulk, times)
		}
		buf := make([]byte, 4096)
		for b := p.First; b < p.Limit; b++ {
			must(t, d.ReadAt(b, [][]byte{buf}))
			if buf[4095] != byte(b) {
				t.Fatalf("block %d: %d", b, buf[4095])
			}
		}
	}
}
