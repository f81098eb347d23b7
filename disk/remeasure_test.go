package disk

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// longer makes a file so many blocks long.
func longer(t *testing.T, path string, blocks int64) {
	t.Helper()
	if err := os.Truncate(path, blocks*BlockSize); err != nil {
		t.Fatal(err)
	}
}

// image is an open image of so many blocks, and its path.
func image(t *testing.T, blocks uint64) (*File, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "image")
	d, err := CreateFile(path, blocks*BlockSize)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d, path
}

// An image that became longer has its size when it is measured again, and not before; what wraps it passes that on. One
// that became shorter keeps its size, and is lost.
func TestRemeasure(t *testing.T) {
	d, path := image(t, 1000)
	block := [][]byte{bytes.Repeat([]byte{7}, BlockSize)}
	longer(t, path, 3000)
	if err := d.WriteAt(1000, block); !errors.Is(err, ErrRange) {
		t.Errorf("before it is measured: %v", err)
	}
	if next, err := d.NextData(0); next != 1000 || err != nil {
		t.Error(next, err)
	}
	if err := d.Lengthen(2000 * BlockSize); !errors.Is(err, ErrRange) {
		t.Errorf("shorter than it is: %v", err)
	}
	if err := Remeasure(NewStats(d)); err != nil || d.Size() != 3000 {
		t.Fatal(d.Size(), err)
	}
	if err := d.WriteAt(2999, block); err != nil {
		t.Error(err)
	}
	if next, err := d.NextData(0); next != 2999 || err != nil {
		t.Error(next, err)
	}
	if err := d.Barrier(); err != nil {
		t.Error(err)
	}
	longer(t, path, 2000)
	if err := Remeasure(d); err != nil || d.Size() != 3000 {
		t.Error(d.Size(), err)
	}
	longer(t, path, 999) // of the blocks that are needed, which are those that it was made with
	if err := d.Check(); !errors.Is(err, ErrLost) {
		t.Error(err)
	}
	longer(t, path, 4000)
	if err := Remeasure(d); !errors.Is(err, ErrLost) || d.Size() != 3000 {
		t.Error(d.Size(), err)
	}
	if err := Remeasure(NewMem(BlockSize)); !errors.Is(err, ErrNotRemeasured) {
		t.Errorf("memory: %v", err)
	}
}

// What the host gave is known of the old chunks, but not of the last, which has more blocks now.
func TestRemeasuredRoom(t *testing.T) {
	d, path := image(t, 2*chunk+10)
	asked := map[int64]int{}
	d.fallocate = func(_ int, off, _ int64) error { asked[off/BlockSize]++; return nil }
	h := HostOf(d)
	reserve := func(a, n uint64) {
		t.Helper()
		if err := h.Reserve(a, n); err != nil {
			t.Fatal(err)
		}
	}
	reserve(0, 2*chunk+10)
	if err := h.Reserve(2*chunk, 11); !errors.Is(err, ErrRange) {
		t.Errorf("behind the end: %v", err)
	}
	longer(t, path, 100*chunk)
	if err := d.Remeasure(); err != nil {
		t.Fatal(err)
	}
	reserve(0, 100*chunk)
	for c, want := range map[int64]int{0: 1, 1: 1, 2: 2, 3: 1, 99: 1} {
		if n := asked[c*chunk]; n != want {
			t.Errorf("chunk %d was asked for %d times, want %d", c, n, want)
		}
	}
}

// A preallocated image that is measured again has room for all of it, or stays as long as it was.
func TestRemeasurePreallocated(t *testing.T) {
	d, path := image(t, 100)
	var got [][2]int64
	full := error(nil)
	d.fallocate = func(_ int, off, n int64) error {
		got = append(got, [2]int64{off / BlockSize, n / BlockSize})
		return full
	}
	if err := d.Preallocate(); err != nil {
		t.Fatal(err)
	}
	longer(t, path, 300)
	got, full = nil, unix.ENOSPC
	if err := d.Remeasure(); !errors.Is(err, ErrNoRoom) || d.Size() != 100 {
		t.Errorf("the host is full: %d blocks, %v", d.Size(), err)
	}
	got, full = nil, nil
	if err := d.Remeasure(); err != nil || d.Size() != 300 || len(got) != 1 || got[0] != [2]int64{100, 200} {
		t.Errorf("%d blocks, room for %v, %v", d.Size(), got, err)
	}
	got = nil
	const whole = 8 << 40
	if free, err := HostFree(path); err == nil && free < whole && os.Truncate(path, whole) == nil {
		if err := d.Remeasure(); !errors.Is(err, ErrNoRoom) || d.Size() != 300 || got != nil {
			t.Errorf("there is too little: %d blocks, room for %v, %v", d.Size(), got, err)
		}
	}
	if HostOf(d) != nil {
		t.Error("it asks its host for room now")
	}
}

// It is measured beside everything that knows its size.
func TestRemeasureBeside(t *testing.T) {
	d, path := image(t, chunk)
	var users sync.WaitGroup
	stop := make(chan struct{})
	h := HostOf(d)
	for _, use := range []func() error{
		func() error { return d.ReadAt(chunk-1, [][]byte{make([]byte, BlockSize)}) },
		func() error { return h.Reserve(chunk-1, 1) },
		func() error { _, _, _ = h.Backed(0); return nil },
		func() error { return d.Discard(0, 1) },
		d.Check,
	} {
		users.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := use(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for n := int64(1); n < 200; n++ {
		longer(t, path, n*chunk)
		if err := d.Remeasure(); err != nil || d.Size() != uint64(n)*chunk {
			t.Fatal(d.Size(), err)
		}
	}
	close(stop)
	users.Wait()
}

// A preallocated image that was longer than its volume when it was opened takes the room of what the volume is about
// to use, and no more; and it is not made longer where the host has no room for that. A sparse one takes none.
func TestTakeRoom(t *testing.T) {
	for _, thick := range []bool{true, false} {
		d, path := image(t, 100)
		var got [][2]int64
		full := error(nil)
		d.fallocate = func(_ int, off, n int64) error {
			got = append(got, [2]int64{off / BlockSize, n / BlockSize})
			return full
		}
		longer(t, path, 300)
		if err := d.Remeasure(); err != nil {
			t.Fatal(err)
		}
		p := NewPrefix(d, 100)
		d.roomOnce.Do(func() { d.room = newRoom(d) })
		d.thick.Store(thick)
		got, full = nil, unix.ENOSPC
		err := TakeRoom(p, 250)
		if more := d.Lengthen(400 * BlockSize); errors.Is(err, ErrNoRoom) != thick || errors.Is(more, ErrNoRoom) != thick {
			t.Errorf("preallocated %v, the host is full: %v, %v", thick, err, more)
		}
		if size, err := d.measured(); err != nil || size != map[bool]uint64{true: 300, false: 400}[thick] {
			t.Errorf("preallocated %v: it is %d blocks long, %v", thick, size, err)
		}
		got, full = nil, nil
		for _, n := range []uint64{100, 250} {
			if err := TakeRoom(NewStats(p), n); err != nil {
				t.Error(err)
			}
		}
		if len(got) != map[bool]int{true: 1}[thick] || thick && got[0] != [2]int64{100, 150} {
			t.Errorf("preallocated %v: room for %v", thick, got)
		}
	}
	if err := TakeRoom(NewMem(BlockSize), 1); err != nil {
		t.Error(err)
	}
}

// Who asks for room in the last chunk while it becomes longer does not have what comes be known to have room.
func TestRemeasuredRoomBeside(t *testing.T) {
	d, path := image(t, 1000)
	h := HostOf(d)
	roomed := uint64(0) // blocks, from the first on
	d.fallocate = func(_ int, off, n int64) error {
		if off/BlockSize <= int64(roomed) {
			roomed = max(roomed, uint64(off+n)/BlockSize)
		}
		return nil
	}
	longer(t, path, 3000)
	if err := d.makeRoom(1000, 3000); err != nil {
		t.Fatal(err)
	}
	if err := h.Reserve(999, 1); err != nil {
		t.Fatal(err)
	}
	d.size.Store(3000) // as Remeasure does at its end
	if err := h.Reserve(1000, 24); err != nil || roomed < 1024 {
		t.Errorf("of the first 1024 blocks %d have room: %v", roomed, err)
	}
}
