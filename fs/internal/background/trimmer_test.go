package background

import (
	"errors"
	"log/slog"
	"testing"

	"tansy/disk"
	"tansy/internal/gen/fs/blocks/regions"
	"tansy/internal/gen/fs/format/volumegeometry"
	"tansy/internal/runtime/dbytes"
	"tansy/internal/runtime/dtxn"
	"tansy/journal"
)

// zeroed is a volume that counts how often which block was trimmed.
type zeroed struct {
	sys     *dtxn.System
	times   map[uint64]int
	largest uint64 // of the transactions, in blocks
	left    int    // transactions before the volume is closed; below 0: it is not
	moments bool   // moments of it are open
}

func (v *zeroed) OtherCommits() int64 { return 0 }

func (v *zeroed) Closing() bool { return v.left == 0 }

func (v *zeroed) InMoments() bool { return v.moments }

func (v *zeroed) Zero(runs []dtxn.Run) error {
	v.left--
	n := uint64(0)
	err := v.sys.Run(false, false, func(t *dtxn.Txn) error {
		for _, r := range runs {
			for b := r.Start; b < r.End; b++ {
				v.times[b]++
				n++
				if err := t.TryWriteBlock(b, dbytes.NewBytes(disk.BlockSize)); err != nil {
					return err
				}
			}
		}
		return nil
	})
	v.largest = max(v.largest, n)
	return err
}

// All trims each block that is free, and has some free ones beside it, once, in transactions that leave room for others;
// and it ends early if the volume is closed.
func TestTrimAll(t *testing.T) {
	g := planned(t).Geometry()
	data := dtxn.Run{Start: g.Data0(), End: g.Data1()}
	for _, left := range []int{-1, 3} {
		sys := inMemory(g)
		used := map[uint64]bool{} // each second block of some, and one far away: between the former no run is long enough
		for i := range uint64(30) {
			used[data.Start+100+2*i] = true
		}
		used[data.End-1000] = true
		err := sys.Run(true, false, func(x *dtxn.Txn) error {
			for b := range used {
				if err := x.TryWriteBit(g.BlockBitmap()+b/(8*disk.BlockSize), b%(8*disk.BlockSize), true); err != nil {
					return err
				}
			}
			return nil
		})
		if err == nil {
			err = sys.Settle()
		}
		if err != nil {
			t.Fatal(err)
		}
		v := &zeroed{sys: sys, times: map[uint64]int{}, left: left}
		trim := NewTrimmer(v, sys, nil, data.Start, slog.New(slog.DiscardHandler))
		var done, all uint64
		err = trim.All(func(d, a uint64) { done, all = d, a })
		if left > 0 {
			if !errors.Is(err, journal.ErrClosed) || v.left != 0 {
				t.Errorf("closed: %v, %d transactions too few", err, v.left)
			}
			continue
		}
		if err != nil || done != data.End-data.Start || all != done {
			t.Errorf("%d of %d: %v", done, all, err)
		}
		for b := data.Start; b < data.End; b++ {
			want := 1
			if used[b] || b > data.Start+100 && b < data.Start+158 {
				want = 0
			}
			if v.times[b] != want {
				t.Errorf("block %d was trimmed %d times, not %d", b, v.times[b], want)
			}
		}
		if v.largest > trimStep || sys.Discarded() != uint64(len(v.times)) || sys.Held() > 0 {
			t.Errorf("%d blocks at a time, %d of %d discarded, %d held", v.largest, sys.Discarded(), len(v.times), sys.Held())
		}
		trim.Close()
		if err := sys.Close(); err != nil {
			t.Error(err)
		}
	}
}

// inMemory is the transactions of an empty volume.
func inMemory(g volumegeometry.Geometry) *dtxn.System {
	return dtxn.NewMem(g.Data1()+1, dtxn.Layout{
		Maps: [2]dtxn.Bitmap{
			dtxn.Blocks: {Start: g.BlockBitmap(), First: g.Data0(), Limit: g.Data1()},
			dtxn.Inodes: {Start: g.InodeBitmap(), First: 3, Limit: g.Ninode()},
		},
		Places: regions.Of(g),
	})
}

// Nothing is trimmed while a moment of the volume is open, and all that was to be is after that.
func TestTrimInMoment(t *testing.T) {
	g := planned(t).Geometry()
	sys := inMemory(g)
	v := &zeroed{sys: sys, times: map[uint64]int{}, left: -1, moments: true}
	trim := NewTrimmer(v, sys, nil, g.Data0(), slog.New(slog.DiscardHandler))
	for _, open := range []bool{true, false} {
		v.moments = open
		if err := trim.turn(); err != nil || open != (len(v.times) == 0) {
			t.Errorf("a moment is open: %v; %d blocks were trimmed: %v", open, len(v.times), err)
		}
	}
	trim.Close()
	if err := sys.Close(); err != nil {
		t.Error(err)
	}
}
