package fs_test

import (
	"sync"
	"testing"

	"tansy/disk"
	"tansy/fs"
	"tansy/fs/model"
	"tansy/test/kit/fstest"
	"tansy/test/kit/replay"
)

// promising is a device that gives a block room when that is asked for, and notes writes of blocks that have none.
type promising struct {
	*disk.Mem
	mu      sync.Mutex
	room    map[uint64]bool
	without []uint64
}

func (d *promising) Host() disk.Host { return (*promise)(d) }

func (d *promising) WriteAt(a uint64, bufs [][]byte) error {
	d.mu.Lock()
	for i := range bufs {
		if !d.room[a+uint64(i)] {
			d.without = append(d.without, a+uint64(i))
		}
	}
	d.mu.Unlock()
	return d.Mem.WriteAt(a, bufs)
}

type promise promising

func (h *promise) Reserve(a, n uint64) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range n {
		h.room[a+i] = true
	}
	return nil
}

func (h *promise) Keep(uint64)                            {}
func (h *promise) Backed(uint64) (lo, hi uint64, ok bool) { return 0, 0, false }
func (h *promise) Room() (free, backed uint64)            { return 1 << 40, 0 }

// TestRoomForAllWrites: no block is written that did not get its room before, pages of the tree of codes
// included, whatever is done: neither by an installation nor by a recovery.
func TestRoomForAllWrites(t *testing.T) {
	for _, zeroed := range []bool{false, true} {
		roomForAll(t, zeroed)
	}
}

func roomForAll(t *testing.T, zeroed bool) {
	seed := int64(replay.Seed(t))
	d := &promising{Mem: disk.NewMem(80_000 * disk.BlockSize), room: map[uint64]bool{}} // a tree of three levels
	clock := fstest.NewClock()
	mkfs(t, d.Mem, fs.MkfsOptions{Zeroed: zeroed, Inodes: 4000, Clock: clock.Now})
	for a := uint64(0); a < d.Size(); a++ { // what mkfs has written
		next, err := d.NextData(a)
		if err != nil {
			t.Fatal(err)
		}
		d.room[next] = true
		a = next
	}
	v := open(t, d, fs.Options{Clock: clock.Now})
	if err := fstest.New(model.New(model.Options{Clock: clock.Now}), v, fstest.Options{Seed: seed, Clock: clock}).Run(800); err != nil {
		t.Fatal(err)
	}
	closeFS(t, v)
	closeFS(t, open(t, d, fs.Options{}))
	if len(d.without) > 0 {
		t.Errorf("%d blocks were written without room: %d", len(d.without), d.without[:min(10, len(d.without))])
	}
}
