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
func (h *promise) Below(end uint64) uint64                { return end }

// TestRoomForAllWrites: no block is written that did not get its room before, pages of the tree of codes
// included, whatever is done: neither by an installation nor by a recovery.
func TestRoomForAllWrites(t *testing.T) {
	for _, o := range []fs.MkfsOptions{{}, {Zeroed: true}, {MaxBytes: most}} {
		roomForAll(t, o)
	}
}

func roomForAll(t *testing.T, o fs.MkfsOptions) {
	seed := int64(replay.Seed(t))
	d := &promising{Mem: disk.NewMem(80_000 * disk.BlockSize), room: map[uint64]bool{}} // a tree of three levels
	clock := fstest.NewClock()
	o.Inodes, o.Clock = 4000, clock.Now
	mkfs(t, d.Mem, o)
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

// few is a device whose host has given room to so many of its blocks, whichever they are, and gives no more.
type few struct {
	*disk.Mem
	backed uint64
}

func (d few) Host() disk.Host { return fewHost(d) }

type fewHost few

func (fewHost) Reserve(a, n uint64) error              { return nil }
func (fewHost) Keep(uint64)                            {}
func (fewHost) Backed(uint64) (lo, hi uint64, ok bool) { return 0, 0, false }
func (h fewHost) Room() (free, backed uint64)          { return 0, h.backed }
func (fewHost) Below(end uint64) uint64                { return end }

// TestFreeOnHost: what is free on a volume is what has room on its host, whether the volume can grow or not.
func TestFreeOnHost(t *testing.T) {
	const blocks = 20_000
	for _, most := range []uint64{0, most} {
		d := disk.NewMem(blocks * disk.BlockSize)
		mkfs(t, d, fs.MkfsOptions{MaxBytes: most})
		v := open(t, d, fs.Options{})
		all, _, err := v.Fsstat(v.Root())
		if err != nil {
			t.Fatal(err)
		}
		closeFS(t, v)
		for _, without := range []uint64{0, 8000} {
			v := open(t, few{d, blocks - without}, fs.Options{})
			s, _, err := v.Fsstat(v.Root())
			if err != nil {
				t.Fatal(err)
			}
			const slack = blocks/256 + 3 // what the host keeps about the image
			want := all.FreeBytes/disk.BlockSize - without
			if n := s.FreeBytes / disk.BlockSize; n > want || n+slack < want {
				t.Errorf("most %d, %d blocks without room: %d are free, not about %d", most, without, n, want)
			}
			closeFS(t, v)
		}
	}
}
