package disk

import (
	"errors"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"tansy/test/kit/hosttest"
)

// sparse makes an image that is larger than the file system it lies on.
func sparse(t *testing.T, dir string, size uint64) *File {
	t.Helper()
	d, err := CreateFile(filepath.Join(dir, "v.img"), size)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

const hostSize = 50 << 20

// What was reserved can be written, and nothing else, once the host is full.
func TestReserve(t *testing.T) {
	for _, kind := range hosttest.Kinds {
		t.Run(kind, func(t *testing.T) {
			dir := hosttest.Mount(t, kind, hostSize)
			d := sparse(t, dir, 4*hostSize)
			h := HostOf(NewStats(d))
			if _, _, ok := h.Backed(0); ok {
				t.Error("an empty image has room")
			}
			const blocks = 300
			const at, far = 5*chunk - 100, 20 * chunk // the first in two chunks
			for _, a := range []uint64{at, far} {
				if err := h.Reserve(a, blocks); err != nil {
					t.Fatal(err)
				}
			}
			hosttest.Fill(t, dir, 0)
			if err := h.Reserve(10*chunk, 1); !errors.Is(err, ErrNoRoom) {
				t.Fatalf("a full host: %v, want %v", err, ErrNoRoom)
			}
			if err := d.WriteAt(10*chunk, blocksOf(1, nil)); !errors.Is(err, ErrNoRoom) {
				t.Errorf("a write without room: %v, want %v", err, ErrNoRoom)
			}
			for _, a := range []uint64{at, far} {
				if lo, hi, ok := h.Backed(a); !ok || lo != a || hi <= a {
					t.Errorf("block %d: the next with room are %d to %d, %v", a, lo, hi, ok)
				}
				if err := h.Reserve(a, blocks); err != nil {
					t.Errorf("again: %v", err)
				}
				for i := range uint64(blocks) {
					if err := d.WriteAt(a+i, blocksOf(1, nil)); err != nil {
						t.Fatalf("block %d was reserved: %v", a+i, err)
					}
				}
			}
			if err := d.Barrier(); err != nil {
				t.Fatal(err)
			}
			// who opens the image knows the blocks that were written
			d.Close()
			again, err := OpenFile(d.Path(), FileOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer again.Close()
			h = HostOf(again)
			for _, a := range []uint64{at, far} {
				if lo, hi, ok := h.Backed(a); !ok || lo != a || hi < a+blocks {
					t.Errorf("opened again, block %d: the next with room are %d to %d, %v", a, lo, hi, ok)
				}
				if err := h.Reserve(a, blocks); err != nil {
					t.Errorf("opened again: %v", err)
				}
			}
		})
	}
}

// The host gives its last blocks one by one, and Room bounds how many.
func TestReserveToTheLast(t *testing.T) {
	for _, kind := range hosttest.Kinds {
		t.Run(kind, func(t *testing.T) {
			dir := hosttest.Mount(t, kind, hostSize)
			d := sparse(t, dir, 4*hostSize)
			h := HostOf(d)
			hosttest.Fill(t, dir, 1<<20)
			free, _ := h.Room()
			if free > 256 {
				t.Fatalf("%d blocks free", free)
			}
			n := uint64(0)
			for h.Reserve(n, 1) == nil {
				n++
			}
			if n < free || n > chunk {
				t.Errorf("%d blocks, want %d to %d", n, free, chunk)
			}
			for a := range n {
				if err := d.WriteAt(a, blocksOf(1, nil)); err != nil {
					t.Fatal(err)
				}
			}
			if err := d.Barrier(); err != nil {
				t.Error(err)
			}
		})
	}
}

// On a host that makes no promises its free room decides, with some left for what waits.
func TestReserveUnsupported(t *testing.T) {
	dir := hosttest.Mount(t, "tmpfs", hostSize)
	d := sparse(t, dir, 4*hostSize)
	d.fallocate = func(int, int64, int64) error { return unix.EOPNOTSUPP }
	if err := d.Preallocate(); !errors.Is(err, unix.EOPNOTSUPP) {
		t.Errorf("preallocate: %v", err)
	}
	h := HostOf(d)
	const keep = 1000
	h.Keep(keep)
	n := uint64(0)
	for h.Reserve(n, 1) == nil {
		if err := d.WriteAt(n, blocksOf(1, nil)); err != nil {
			t.Fatal(err)
		}
		n++
	}
	if want := uint64(hostSize/BlockSize - keep); n > want || n < want-10 {
		t.Errorf("%d blocks reserved, want about %d", n, want)
	}
}

// A preallocated image has no host to ask, and each of its blocks can be written.
func TestPreallocate(t *testing.T) {
	for _, kind := range hosttest.Kinds {
		t.Run(kind, func(t *testing.T) {
			dir := hosttest.Mount(t, kind, hostSize)
			d := sparse(t, dir, 30<<20)
			if HostOf(d) == nil {
				t.Error("a sparse image has no host")
			}
			if err := d.Preallocate(); err != nil {
				t.Fatal(err)
			}
			if HostOf(d) != nil {
				t.Error("a preallocated image has a host")
			}
			hosttest.Fill(t, dir, 0)
			for a := range d.Size() {
				if err := d.WriteAt(a, blocksOf(1, nil)); err != nil {
					t.Fatal(err)
				}
			}
			if err := d.Barrier(); err != nil {
				t.Error(err)
			}
			large, err := CreateFile(filepath.Join(t.TempDir(), "v.img"), BlockSize)
			if err != nil {
				t.Fatal(err)
			}
			defer large.Close()
			large.fallocate = func(int, int64, int64) error { return unix.ENOSPC }
			if err := large.Preallocate(); !errors.Is(err, ErrNoRoom) {
				t.Errorf("a full host: %v, want %v", err, ErrNoRoom)
			}
		})
	}
}

// Nothing but a sparse image that may be written has a host.
func TestNoHost(t *testing.T) {
	d := sparse(t, t.TempDir(), 1<<20)
	d.Close()
	ro, err := OpenFile(d.Path(), FileOptions{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer ro.Close()
	dev, err := OpenFile(hosttest.Loop(t, d.Path()), FileOptions{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	for _, d := range []Disk{ro, dev, NewMem(10 * BlockSize), NewFault(NewMem(10*BlockSize), 1, nil)} {
		if HostOf(d) != nil {
			t.Errorf("%T has a host", d)
		}
	}
}
