package background

import (
	"context"
	"log/slog"
	"testing"

	"tansy/disk"
	"tansy/internal/gen/fs/blocks/regions"
	"tansy/internal/layout"
	"tansy/internal/runtime/dtxn"
)

// What lies beyond the ends of what a volume has is not looked at for the owners of a block.
func TestOwnersEnds(t *testing.T) {
	g := planned(t).Geometry()
	root := make([]byte, disk.BlockSize)
	inode := root[layout.RootInode*layout.InodeSize:]
	inode[layout.Type] = directory
	data := g.Data0() + 7
	for i := range 8 {
		inode[int(layout.Pointers)+i] = byte(data >> (8 * i))
	}
	used := make([]byte, disk.BlockSize)
	used[0] = 1 << layout.RootInode
	for _, c := range []struct {
		ends  [2]uint64
		found bool
	}{
		{[2]uint64{data + 1, layout.RootInode + 1}, true},
		{[2]uint64{data, layout.RootInode + 1}, false},
		{[2]uint64{data + 1, layout.RootInode}, false},
	} {
		v := some{blocks{g.InodeBitmap(): used, g.InodeTable(): root}, c.ends}
		all := owners(context.Background(), v, g, []uint64{data})
		if len(all) != 1 || (len(all[0].inos) == 1) != c.found {
			t.Errorf("ends %d: %+v", c.ends, all[0])
		}
	}
}

// What a volume has is trimmed, and what it gets later, too, also in the midst of a piece.
func TestTrimEnds(t *testing.T) {
	g := planned(t).Geometry()
	end := g.Data0()/dtxn.Piece*dtxn.Piece + 2*dtxn.Piece + 100
	sys := dtxn.NewMem(g.Data1()+1, dtxn.Layout{
		Maps: [2]dtxn.Bitmap{
			dtxn.Blocks: {Start: g.BlockBitmap(), First: g.Data0(), End: end, Limit: g.Data1()},
			dtxn.Inodes: {Start: g.InodeBitmap(), First: 3, Limit: g.Ninode()},
		},
		Places: regions.Of(g),
	})
	defer sys.Close()
	trim := func() *Trimmer {
		v := &zeroed{sys: sys, times: map[uint64]int{}, left: -1}
		return NewTrimmer(v, sys, nil, g.Data0(), slog.New(slog.DiscardHandler))
	}
	sweeper := trim()
	for _, to := range []uint64{end, end + 200, g.Data1()} {
		if err := sys.Extend(dtxn.Blocks, to); err != nil {
			t.Fatal(err)
		}
		all := trim()
		var done, of uint64
		err := all.All(func(d, a uint64) { done, of = d, a })
		if err != nil || done != to-g.Data0() || of != done {
			t.Errorf("end %d: %d of %d: %v", to, done, of, err)
		}
		times := all.v.(*zeroed).times
		if uint64(len(times)) != to-g.Data0() || times[to-1] != 1 {
			t.Errorf("end %d: %d blocks", to, len(times))
		}
		if err := sweeper.look(); err != nil {
			t.Fatal(err)
		}
		if n := sweeper.v.(*zeroed).times[to-1]; sweeper.sweep != to || n == 0 {
			t.Errorf("end %d: the sweep is at %d, %d times", to, sweeper.sweep, n)
		}
	}
}
