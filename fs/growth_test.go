package fs_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"tansy/disk"
	"tansy/fs"
)

// most is how large the volumes here may become: a hundred thousand times what they are.
const most = 1 << 40

// growable is a volume of size blocks at the beginning of a device of more.
func growable(t *testing.T, device disk.Disk, size uint64, o fs.MkfsOptions) {
	t.Helper()
	o.MaxBytes = most
	if err := fs.Mkfs(disk.NewPrefix(device, size), o); err != nil {
		t.Fatal(err)
	}
}

// fillRoot makes files in the root directory until there is no room: file i has i as contents, 64 KiB of it. It returns
// how many are whole.
func fillRoot(t *testing.T, v *fs.FS, from int) (files int) {
	t.Helper()
	for files = from; ; files++ {
		made, err := v.Create(root, v.Root(), []byte(fmt.Sprint(files)), fs.Unchecked, &fs.SetAttr{}, 0)
		if err == nil {
			_, _, _, err = v.Write(root, made.Handle, 0, contentsOf(files), fs.FileSync)
		}
		if errors.Is(err, fs.ErrNoSpc) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func contentsOf(file int) []byte {
	return bytes.Repeat([]byte{byte(file), byte(file >> 8), 1, 2}, 16<<10)
}

// mustHave fails unless the first files are there, with their contents.
func mustHave(t *testing.T, v *fs.FS, files int) {
	t.Helper()
	for i := range files {
		n, err := v.Lookup(root, v.Root(), []byte(fmt.Sprint(i)))
		if err != nil {
			t.Fatalf("file %d: %v", i, err)
		}
		got, _, _, err := v.Read(root, n.Handle, 0, 64<<10)
		if err != nil || !bytes.Equal(got, contentsOf(i)) {
			t.Fatalf("file %d has other contents: %v", i, err)
		}
	}
}

// A volume grows again and again, by any amount, on a device that held something else: all of the new room can be used,
// what was there stays, and all of it can be seen.
func TestGrow(t *testing.T) {
	device := max(larger()*3/2, 40<<20/disk.BlockSize)
	d := patterned(t, device)
	size := uint64(6 << 20 / disk.BlockSize)
	growable(t, d, size, fs.MkfsOptions{})
	files, before := 0, fs.Stat{}
	for _, more := range []uint64{0, 500, 1, 3000, 0, 7, device / 2} {
		if size += more; more > 0 {
			g, err := fs.Grow(disk.NewPrefix(d, size), fs.GrowOptions{})
			switch {
			case errors.Is(err, fs.ErrNoMore) && more < 10:
			case err != nil:
				t.Fatalf("%d blocks more: %v", more, err)
			case g.After.Bytes > size*disk.BlockSize || g.After.Bytes+16*disk.BlockSize < size*disk.BlockSize:
				t.Errorf("%d blocks of %d are used", g.After.Bytes/disk.BlockSize, size)
			case g.After.Inodes < g.Before.Inodes || g.After.Data <= g.Before.Data:
				t.Errorf("%+v", g)
			}
		}
		v := open(t, disk.NewPrefix(d, size), fs.Options{})
		now, err := v.Space()
		if err != nil {
			t.Fatal(err)
		}
		if more > 10 && (now.TotalBytes <= before.TotalBytes || now.FreeBytes == 0 || now.TotalFiles <= before.TotalFiles) {
			t.Errorf("%d blocks more: %+v, before %+v", more, now, before)
		}
		before = now
		mustHave(t, v, files)
		files = fillRoot(t, v, files)
		mustHave(t, v, files)
		closeFS(t, v)
	}
	if room := uint64(files) * 64 << 10; room < size*disk.BlockSize*8/10-6<<20 {
		t.Errorf("%d bytes in files on a device of %d", room, size*disk.BlockSize)
	}
}

// A crash while a volume grows leaves it as it was, or larger, with all that it held; it can grow then.
func TestCrashGrow(t *testing.T) {
	r := random(t)
	const size, device = 8 << 20 / disk.BlockSize, 20 << 20 / disk.BlockSize
	sim := disk.NewSim(device * disk.BlockSize)
	growable(t, sim, size, fs.MkfsOptions{Clock: fixed})
	v := open(t, disk.NewPrefix(sim, size), fs.Options{Clock: fixed})
	files := fillRoot(t, v, 0)
	closeFS(t, v)
	sim.Record()
	first := sim.Ops()
	if _, err := fs.Grow(sim, fs.GrowOptions{}); err != nil {
		t.Fatal(err)
	}
	sizes, images := map[uint64]int{}, 4
	if testing.Short() {
		images = 1
	}
	for n := first; n <= sim.Ops(); n++ {
		for image := range sim.At(n).Crashes(images, r.Uint64(), true) {
			at, err := fs.SizeOf(image)
			if err != nil {
				t.Fatalf("crash after %d device operations: %v", n-first, err)
			}
			sizes[at.Bytes]++
			v := open(t, image, fs.Options{Clock: fixed})
			mustHave(t, v, files)
			closeFS(t, v)
			if _, err := fs.Grow(image, fs.GrowOptions{}); err != nil && !errors.Is(err, fs.ErrNoMore) {
				t.Fatalf("crash after %d device operations: %v", n-first, err)
			}
			if at, err = fs.SizeOf(image); err != nil || at.Bytes <= size*disk.BlockSize {
				t.Fatalf("crash after %d device operations: it does not grow: %+v, %v", n-first, at, err)
			}
			v = open(t, image, fs.Options{Clock: fixed})
			mustHave(t, v, files)
			fillRoot(t, v, files)
			closeFS(t, v)
		}
	}
	if len(sizes) != 2 {
		t.Errorf("sizes after crashes: %v; want the old and the new one", sizes)
	}
}

// What cannot grow, or has nothing to grow into, stays as it is, and says so.
func TestNoGrowth(t *testing.T) {
	d := disk.NewMem(32 << 20)
	if _, err := fs.Grow(d, fs.GrowOptions{}); !errors.Is(err, fs.ErrNotVolume) {
		t.Errorf("no volume: %v", err)
	}
	if err := fs.Mkfs(disk.NewPrefix(d, 4096), fs.MkfsOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := fs.Grow(d, fs.GrowOptions{}); !errors.Is(err, fs.ErrFixedSize) {
		t.Errorf("a volume of one size: %v", err)
	}
	growable(t, d, d.Size(), fs.MkfsOptions{})
	if g, err := fs.Grow(d, fs.GrowOptions{}); !errors.Is(err, fs.ErrNoMore) || g.Before != g.After {
		t.Errorf("nothing to grow into: %+v, %v", g, err)
	}
	if _, err := fs.Grow(d, fs.GrowOptions{Inodes: 1 << 40}); !errors.Is(err, fs.ErrOptions) {
		t.Errorf("too many inodes: %v", err)
	}
	growable(t, d, d.Size()-1000, fs.MkfsOptions{})
	b := [][]byte{make([]byte, disk.BlockSize)}
	if err := d.ReadAt(0, b); err != nil {
		t.Fatal(err)
	}
	b[0][100] ^= 1
	if err := d.WriteAt(0, b); err != nil {
		t.Fatal(err)
	}
	if _, err := fs.Grow(d, fs.GrowOptions{}); err == nil {
		t.Error("a volume with a damaged superblock grows")
	}
}

// TestGrowInodes: inodes grow with the size, or to what is asked for.
func TestGrowInodes(t *testing.T) {
	d := disk.NewMem(64 << 20)
	growable(t, d, d.Size()/4, fs.MkfsOptions{})
	g, err := fs.Grow(disk.NewPrefix(d, d.Size()/2), fs.GrowOptions{})
	if err != nil || g.After.Inodes < 2*g.Before.Inodes-16 || g.After.Inodes > 2*g.Before.Inodes+16 {
		t.Errorf("twice the size: %+v, %v", g, err)
	}
	if g, err = fs.Grow(d, fs.GrowOptions{Inodes: 100_000}); err != nil || g.After.Inodes != 100_000-3 {
		t.Errorf("100,000 inodes: %+v, %v", g, err)
	}
}
