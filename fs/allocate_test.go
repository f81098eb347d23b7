package fs

import (
	"fmt"
	"testing"

	"tansy/disk"
)

// shape describes a file: its length, its blocks, and where its data begin and end.
func shape(t *testing.T, v *FS, h Handle) string {
	t.Helper()
	for v.free.Waiting() {
		v.free.Help(1)
	}
	a, err := v.Getattr(h)
	want(t, err, 0)
	said := fmt.Sprint(a.Size, a.Used)
	for at, hole := uint64(0), false; ; hole = !hole {
		if at, err = v.Seek(root, h, at, hole); err != nil {
			want(t, err, ErrNoEnt)
			return said
		}
		said += fmt.Sprint(" ", at)
	}
}

// sparse makes a file with a hole in its middle, and one that begins within a block of data.
func sparse(t *testing.T, v *FS) Handle {
	t.Helper()
	h := create(t, v, root, v.Root(), "f")
	write(t, v, h, 5*BlockSize, "data")
	write(t, v, h, 400*BlockSize, "data")
	size := uint64(700*BlockSize + 1)
	_, err := v.Setattr(root, h, &SetAttr{Size: &size}, nil)
	want(t, err, 0)
	return h
}

func small(t *testing.T) *FS {
	t.Helper()
	d := disk.NewMem(6000 * disk.BlockSize)
	want(t, Mkfs(d, MkfsOptions{Zeroed: true, Inodes: 64}), 0)
	v, err := Open(d, Options{})
	want(t, err, 0)
	t.Cleanup(func() { v.Close() })
	return v
}

func freeBlocks(t *testing.T, v *FS) uint64 {
	t.Helper()
	s, err := v.Space()
	want(t, err, 0)
	return s.FreeBytes / BlockSize
}

// Nothing is begun that has no room.
func TestAllocateTooMuch(t *testing.T) {
	v := small(t)
	h := sparse(t, v)
	before, free := shape(t, v, h), freeBlocks(t, v)
	a, err := v.Getattr(h)
	want(t, err, 0)
	for _, try := range []func() error{
		func() error { return v.Allocate(root, h, 0, 6000*BlockSize) },
		func() error { return v.Allocate(root, h, 0, MaxSize) },
		func() error { return v.Allocate(root, h, 1<<30, (free+3)*BlockSize) },
		func() error { return v.Allocate(root, h, 1<<30, free*BlockSize) }, // which need blocks of numbers, too
		func() error { return v.ZeroRange(root, h, 3, 6000*BlockSize) },
	} {
		want(t, try(), ErrNoSpc)
		after, err := v.Getattr(h)
		want(t, err, 0)
		if after != a {
			t.Errorf("from %+v to %+v", a, after)
		}
	}
	if now := freeBlocks(t, v); shape(t, v, h) != before || now != free {
		t.Errorf("%s, %d blocks free; before: %s, %d", shape(t, v, h), now, before, free)
	}
	// What others removed a moment ago is room.
	large := create(t, v, root, v.Root(), "large")
	want(t, v.Allocate(root, large, 0, (free-20)*BlockSize), 0)
	_, err = v.Remove(root, v.Root(), []byte("large"))
	want(t, err, 0)
	want(t, v.Allocate(root, h, 0, (free-20)*BlockSize), 0)
	// What the file has already needs no room.
	want(t, v.Allocate(root, h, 0, (free-20)*BlockSize), 0)
	want(t, v.ZeroRange(root, h, 0, (free-20)*BlockSize), 0)
}

// Where there turns out to be too little in the middle, what was taken is given back.
func TestAllocateGivesBack(t *testing.T) {
	for _, n := range []uint64{650, 1000} { // blocks: within the file, and beyond its end
		v := small(t)
		h := sparse(t, v)
		// As much as the data takes is there, and nothing for the blocks of numbers.
		other := create(t, v, root, v.Root(), "other")
		for missing := n - 2; freeBlocks(t, v) > missing; {
			a, err := v.Getattr(other)
			want(t, err, 0)
			size := blocksFor(a.Size)
			want(t, v.Allocate(root, other, size*BlockSize, max(1, (freeBlocks(t, v)-missing)/2)*BlockSize), 0)
		}
		before, free := shape(t, v, h), freeBlocks(t, v)
		want(t, v.Allocate(root, h, 0, n*BlockSize), ErrNoSpc)
		if after, now := shape(t, v, h), freeBlocks(t, v); after != before || now+2 < free { // two of numbers may stay
			t.Errorf("%d blocks: %s, %d blocks free; before: %s, %d", n, after, now, before, free)
		}
	}
}

// What is given back is what was taken, wherever a range begins and the file ends: also in the middle of one block.
func TestAllocateGivesBackNoData(t *testing.T) {
	const size = BlockSize + 904
	for _, off := range []uint64{
		0, 1, BlockSize - 1, BlockSize, size - 1, size, size + 1, 2*BlockSize - 1, 2 * BlockSize, 9 * BlockSize,
	} {
		v := small(t)
		h := create(t, v, root, v.Root(), "f")
		write(t, v, h, size-4, "tail")
		before := shape(t, v, h)
		a := &allocation{v: v, h: h, alone: true}
		want(t, a.look(off, 2000*BlockSize), 0)
		want(t, a.fill(root, off, 100*BlockSize), 0)
		a.giveBack(off + 100*BlockSize)
		if after := shape(t, v, h); after != before {
			t.Errorf("from %d: %s, before %s", off, after, before)
		}
		if data, _, _, err := v.Read(root, h, size-4, 4); err != nil || string(data) != "tail" {
			t.Errorf("from %d: the end is %q, %v", off, data, err)
		}
	}
}

// What others write while room is set aside stays.
func TestAllocateBesideOthers(t *testing.T) {
	for _, c := range [][2]uint64{{100, 600}, {100, 1000}, {900, 1000}} { // block, of the blocks that were set aside
		at, n := c[0]*BlockSize, c[1]*BlockSize
		v := small(t)
		h := sparse(t, v)
		a := &allocation{v: v, h: h, alone: true}
		want(t, a.look(0, 2000*BlockSize), 0)
		want(t, a.fill(root, 0, n), 0)
		write(t, v, h, at, "others")
		a.giveBack(n)
		data, _, _, err := v.Read(root, h, at, 6)
		if want(t, err, 0); string(data) != "others" {
			t.Errorf("%q at %d", data, at)
		}
	}
}

// What is zeroed is zeros, and what lay on both sides is there.
func TestZeroLongRange(t *testing.T) {
	v := small(t)
	h := sparse(t, v)
	write(t, v, h, 2, "before")
	write(t, v, h, 699*BlockSize+8, "behind")
	want(t, v.ZeroRange(root, h, 8, 699*BlockSize), 0)
	data, _, _, err := v.Read(root, h, 0, 10)
	if want(t, err, 0); string(data) != "\x00\x00before\x00\x00" {
		t.Errorf("%q", data)
	}
	for off := uint64(8); off < 699*BlockSize+8; off += BlockSize {
		data, _, _, err := v.Read(root, h, off, uint32(min(BlockSize, 699*BlockSize+8-off)))
		want(t, err, 0)
		for i, b := range data {
			if b != 0 {
				t.Fatalf("%d at %d", b, off+uint64(i))
			}
		}
	}
	data, _, _, err = v.Read(root, h, 699*BlockSize+8, 6)
	if want(t, err, 0); string(data) != "behind" {
		t.Errorf("%q", data)
	}
	if at, err := v.Seek(root, h, 0, true); err != nil || at != 700*BlockSize {
		t.Errorf("the first hole at %d, %v", at, err)
	}
}
