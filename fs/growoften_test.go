package fs_test

import (
	"errors"
	"testing"

	"tansy/disk"
	"tansy/fs"
)

// A volume grows by as much again and again. Nearly half of what is new is for data at least, until its superblock can
// list no more: then it may grow by a little once, and says so the next time. So often it can at least, from so many
// blocks on, by so many.
func TestGrowOften(t *testing.T) {
	const gib = 1 << 30 / disk.BlockSize
	cases := []struct {
		size, step uint64
		times      int
	}{{10 * gib, 700, 15}, {4096, 700, 100}, {4096, 100_000, 100}, {10 * gib, gib, 100}, {10 * gib, 10 * gib, 100}}
	if testing.Short() {
		cases = cases[:1]
	}
	for _, x := range cases {
		d := disk.NewMem(1 << 48)
		size, times := x.size, 0
		if err := fs.Mkfs(disk.NewPrefix(d, size), fs.MkfsOptions{MaxBytes: 16 << 40, Zeroed: true}); err != nil {
			t.Fatal(err)
		}
		for ended := false; times < 2*x.times; times++ {
			may := fs.CanGrow(disk.NewPrefix(d, size), (size+x.step)*disk.BlockSize, fs.GrowOptions{})
			g, err := fs.Grow(disk.NewPrefix(d, size+x.step), fs.GrowOptions{})
			if full := errors.Is(err, fs.ErrFixedSize); errors.Is(may, fs.ErrFixedSize) != full {
				t.Errorf("time %d: %v, but before that it was %v", times, err, may)
			}
			if errors.Is(err, fs.ErrFixedSize) {
				break
			}
			size += x.step
			if err != nil || ended {
				t.Fatalf("%d blocks by %d, time %d: %+v, %v", x.size, x.step, times, g, err)
			}
			ended = g.After.Data-g.Before.Data < x.step*disk.BlockSize*2/5
		}
		if times < x.times {
			t.Errorf("%d blocks by %d: it grew %d times", x.size, x.step, times)
		}
		t.Logf("%d blocks by %d: it grew %d times, to %d", x.size, x.step, times, size)
		v := open(t, disk.NewPrefix(d, size), fs.Options{})
		closeFS(t, v)
		mustCheck(t, disk.NewPrefix(d, size))
	}
}
