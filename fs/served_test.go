package fs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"tansy/disk"
	"tansy/fs"
)

// grow has a volume grow that is in use.
func grow(t *testing.T, v *fs.FS, o fs.GrowOptions) fs.Growth {
	t.Helper()
	g, err := v.Grow(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	if v.Size() != g.After {
		t.Errorf("it has %+v, and had to have %+v", v.Size(), g.After)
	}
	return g
}

// larger is the size in blocks of a device behind a small volume. With the race detector to fill it takes long.
func larger() uint64 {
	if testing.Short() {
		return 20 << 20 / disk.BlockSize
	}
	return 64 << 20 / disk.BlockSize
}

// patterned is a device of so many blocks that holds something else than zeros everywhere.
func patterned(t *testing.T, blocks uint64) *disk.Mem {
	t.Helper()
	d := disk.NewMem(blocks * disk.BlockSize)
	for a := range blocks {
		if err := d.WriteAt(a, [][]byte{bytes.Repeat([]byte{0xa5}, disk.BlockSize)}); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

// A volume that is full grows while it is in use, and all of the new room can be used at once; so it can after it was
// opened again, and nothing of it is wrong.
func TestGrowInUse(t *testing.T) {
	d := patterned(t, larger())
	growable(t, d, 6<<20/disk.BlockSize, fs.MkfsOptions{})
	v := open(t, d, fs.Options{})
	files := fillRoot(t, v, 0)
	before, err := v.Space()
	if err != nil {
		t.Fatal(err)
	}
	g := grow(t, v, fs.GrowOptions{})
	now, err := v.Space()
	if err != nil || now.TotalBytes != g.After.Data || now.TotalFiles != g.After.Inodes ||
		now.FreeBytes < now.TotalBytes-before.TotalBytes || g.After.Bytes+16*disk.BlockSize < d.Size()*disk.BlockSize {
		t.Errorf("%+v, before %+v, %+v: %v", now, before, g, err)
	}
	if _, err := v.Grow(context.Background(), fs.GrowOptions{}); !errors.Is(err, fs.ErrNoMore) ||
		!errors.Is(err, disk.ErrNotRemeasured) {
		t.Errorf("a second time: %v", err)
	}
	files = fillRoot(t, v, files)
	if room := uint64(files) * 64 << 10; room < now.TotalBytes*9/10 {
		t.Errorf("%d bytes in files, of %d", room, now.TotalBytes)
	}
	mustHave(t, v, files)
	closeFS(t, v)
	mustCheck(t, d)
	v = open(t, d, fs.Options{})
	if v.Size() != g.After {
		t.Errorf("opened again: %+v, not %+v", v.Size(), g.After)
	}
	mustHave(t, v, files)
	closeFS(t, v)
}

// A crash at any time while a volume grows beside those who write leaves it as large as it was, or larger, with all
// that was acknowledged.
func TestCrashGrowInUse(t *testing.T) {
	r := random(t)
	const size, device, writers, files = 8 << 20 / disk.BlockSize, 20 << 20 / disk.BlockSize, 3, 6
	sim := disk.NewSim(device * disk.BlockSize)
	for a := uint64(size); a < device; a++ {
		if err := sim.WriteAt(a, [][]byte{bytes.Repeat([]byte{0xa5}, disk.BlockSize)}); err != nil {
			t.Fatal(err)
		}
	}
	growable(t, sim, size, fs.MkfsOptions{Clock: fixed})
	v := open(t, sim, fs.Options{Clock: fixed})
	old := fillRoot(t, v, 0) - 1 // the last one may not be whole
	for i := old - 2; i <= old; i++ {
		_, err := v.Remove(root, v.Root(), fmt.Append(nil, i))
		if err != nil && !errors.Is(err, fs.ErrNoEnt) {
			t.Fatal(err)
		}
	}
	old -= 2
	sim.Record()
	first := sim.Ops()
	var acked [writers][]uint64 // device operations when a file was there
	var grown atomic.Uint64     // likewise
	var all sync.WaitGroup
	full := make(chan struct{}, writers) // a writer found no room, or has done half
	for w := range writers {
		all.Go(func() {
			for i := range files {
				told := i != files/2
				for err := error(fs.ErrNoSpc); err != nil; { // until there is room
					var made fs.Node
					made, err = v.Create(root, v.Root(), fmt.Append(nil, w, "-", i), fs.Unchecked, &fs.SetAttr{}, 0)
					if err == nil {
						_, _, _, err = v.Write(root, made.Handle, 0, contentsOf(1000*w+i), fs.FileSync)
					}
					if err != nil && !errors.Is(err, fs.ErrNoSpc) {
						t.Error(err)
						return
					}
					if err != nil || !told {
						told = true
						select {
						case full <- struct{}{}:
						default:
						}
					}
				}
				acked[w] = append(acked[w], sim.Ops())
			}
		})
	}
	<-full
	grow(t, v, fs.GrowOptions{})
	grown.Store(sim.Ops())
	all.Wait()
	closeFS(t, v)
	sizes := map[uint64]int{}
	step := int64(1)
	if testing.Short() {
		step = 40
	}
	for n := first; n <= sim.Ops(); n += 1 + uint64(r.Int63n(step)) {
		for image := range sim.At(n).Crashes(2, r.Uint64(), true) {
			at, err := fs.SizeOf(image)
			if err != nil {
				t.Fatalf("crash after %d device operations: %v", n-first, err)
			}
			if sizes[at.Bytes]++; n >= grown.Load() && at.Bytes == size*disk.BlockSize {
				t.Fatalf("crash after %d device operations: it had grown, and has its old size", n-first)
			}
			v := open(t, image, fs.Options{Clock: fixed, Log: slog.New(slog.DiscardHandler)})
			mustHave(t, v, old)
			for w := range writers {
				for i, when := range acked[w] {
					if when > n {
						break
					}
					x, err := v.Lookup(root, v.Root(), fmt.Append(nil, w, "-", i))
					if err != nil {
						t.Fatalf("crash after %d device operations: %d-%d: %v", n-first, w, i, err)
					}
					got, _, _, err := v.Read(root, x.Handle, 0, 64<<10)
					if err != nil || !bytes.Equal(got, contentsOf(1000*w+i)) {
						t.Fatalf("crash after %d device operations: %d-%d has other contents: %v", n-first, w, i, err)
					}
				}
			}
			if n%32 == 0 {
				if _, err := v.Grow(context.Background(), fs.GrowOptions{}); err != nil && !errors.Is(err, fs.ErrNoMore) {
					t.Fatalf("crash after %d device operations: %v", n-first, err)
				}
				fillRoot(t, v, old)
			}
			closeFS(t, v)
			if n%32 == 0 {
				mustCheck(t, image)
			}
		}
	}
	if len(sizes) != 2 {
		t.Errorf("sizes after crashes: %v; want the old and the new one", sizes)
	}
	t.Logf("%d device operations, sizes %v", sim.Ops()-first, sizes)
}

// tell runs do when the device is to be written to at block a or behind it, and has that fail with what do returns.
func tell(d disk.Disk, a uint64, kind disk.Kind, do func() error) disk.Disk {
	return disk.NewFault(d, 1, func(op disk.Op, _ *rand.Rand) disk.Harm {
		if op.Kind == kind && op.Addr >= a {
			return disk.Harm{Err: do()}
		}
		return disk.Harm{}
	})
}

// What ends a growth before its last step leaves the volume in use as it was; it grows when it is asked again.
func TestGrowInUseEnds(t *testing.T) {
	const size = 6 << 20 / disk.BlockSize
	for what, end := range map[string]func(cancel func()) error{
		"cancelled": func(cancel func()) error { cancel(); return nil },
		"no room":   func(func()) error { return disk.ErrNoRoom },
	} {
		t.Run(what, func(t *testing.T) {
			mem := patterned(t, larger())
			growable(t, mem, size, fs.MkfsOptions{})
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			first := true
			v := open(t, tell(mem, size+1000, disk.Write, func() error {
				if !first {
					return nil
				}
				first = false
				return end(cancel)
			}), fs.Options{})
			before := v.Size()
			if g, err := v.Grow(ctx, fs.GrowOptions{}); err == nil || v.Size() != before || g.After != before {
				t.Fatalf("%v; it has %+v now", err, v.Size())
			}
			if at, err := fs.SizeOf(mem); err != nil || at != before {
				t.Errorf("the device says %+v, %v", at, err)
			}
			files := fillRoot(t, v, 0)
			grow(t, v, fs.GrowOptions{})
			mustHave(t, v, files)
			fillRoot(t, v, files)
			closeFS(t, v)
			mustCheck(t, mem)
		})
	}
}

// A growth whose last step fails leaves a volume that does not grow before it is opened anew: nobody knows what block 0
// says. What is in use goes on as it was.
func TestGrowInUseFails(t *testing.T) {
	const size = 6 << 20 / disk.BlockSize
	mem := patterned(t, larger())
	growable(t, mem, size, fs.MkfsOptions{})
	broken := errors.New("block 0 is not written")
	v := open(t, disk.NewFault(mem, 1, func(op disk.Op, _ *rand.Rand) disk.Harm {
		if op.Kind == disk.Write && op.Addr == 0 {
			return disk.Harm{Err: broken}
		}
		return disk.Harm{}
	}), fs.Options{})
	before := v.Size()
	if _, err := v.Grow(context.Background(), fs.GrowOptions{}); !errors.Is(err, broken) || v.Size() != before {
		t.Fatalf("%v; it has %+v", err, v.Size())
	}
	if _, err := v.Grow(context.Background(), fs.GrowOptions{}); !errors.Is(err, broken) ||
		!strings.Contains(err.Error(), "opened anew") {
		t.Errorf("again: %v", err)
	}
	files := fillRoot(t, v, 0)
	closeFS(t, v)
	v = open(t, mem, fs.Options{Grow: true})
	mustHave(t, v, files)
	if v.Size() == before {
		t.Error("it does not grow")
	}
	closeFS(t, v)
	mustCheck(t, mem)
}

// A barrier that fails while a volume grows may have lost what others wrote: nothing of that is acknowledged.
func TestGrowInUseBarrier(t *testing.T) {
	mem := patterned(t, larger())
	growable(t, mem, 6<<20/disk.BlockSize, fs.MkfsOptions{})
	var fails atomic.Bool
	var written atomic.Uint64
	broken := errors.New("one barrier fails")
	v := open(t, disk.NewFault(mem, 1, func(op disk.Op, _ *rand.Rand) disk.Harm {
		if op.Kind == disk.Barrier && fails.Swap(false) {
			return disk.Harm{Err: broken}
		}
		if op.Kind == disk.Write {
			written.Add(1)
		}
		return disk.Harm{}
	}), fs.Options{})
	fails.Store(true)
	if _, err := v.Grow(context.Background(), fs.GrowOptions{}); !errors.Is(err, broken) {
		t.Errorf("growth: %v", err)
	}
	written.Store(0)
	if _, err := v.Grow(context.Background(), fs.GrowOptions{}); !errors.Is(err, broken) || written.Load() != 0 {
		t.Errorf("growth after it: %v, %d writes", err, written.Load())
	}
	if _, err := v.Mkdir(root, v.Root(), []byte("d"), nil); err == nil {
		t.Error("a change is acknowledged after a barrier has failed")
	}
	if err := v.Close(); err == nil {
		t.Error("all is durable, it says")
	}
}

// A server that lost its volume to another one writes nothing behind it, nor a superblock, when it is asked to have it
// grow, and when it loses it while it grows.
func TestGrowInUseLost(t *testing.T) {
	const size = 6 << 20 / disk.BlockSize
	for _, when := range []string{"before", "meanwhile"} {
		t.Run(when, func(t *testing.T) {
			mem := patterned(t, larger())
			growable(t, mem, size, fs.MkfsOptions{})
			written, lost := 0, when == "before"
			var other *fs.FS
			v := open(t, tell(mem, size, disk.Write, func() error {
				written++
				if !lost {
					lost = true
					elsewhere(func() { other = open(t, mem, fs.Options{}) })
				}
				return nil
			}), fs.Options{})
			if lost {
				other = open(t, mem, fs.Options{})
			}
			if _, err := v.Grow(context.Background(), fs.GrowOptions{}); !errors.Is(err, disk.ErrLost) {
				t.Errorf("it grows: %v", err)
			}
			if err := v.CanGrow(context.Background(), most, fs.GrowOptions{}); !errors.Is(err, disk.ErrLost) {
				t.Errorf("it can grow: %v", err)
			}
			if want := map[string]int{"before": 0, "meanwhile": 1}[when]; written != want {
				t.Errorf("%d writes behind the volume, want %d", written, want)
			}
			if at, err := fs.SizeOf(mem); err != nil || at != other.Size() {
				t.Errorf("block 0 says %+v, %v", at, err)
			}
			v.Close()
			grow(t, other, fs.GrowOptions{})
			closeFS(t, other)
			mustCheck(t, mem)
		})
	}
}

// A volume that its server has grow while another one opens it is not opened with the layout that it had: the log may
// be of blocks that it did not have. Nothing that was acknowledged is lost.
func TestGrowWhileOpened(t *testing.T) {
	mem := patterned(t, larger())
	growable(t, mem, 6<<20/disk.BlockSize, fs.MkfsOptions{})
	v := open(t, mem, fs.Options{})
	files, ops := fillRoot(t, v, 0), 0
	other, err := fs.Open(disk.NewFault(mem, 1, func(op disk.Op, _ *rand.Rand) disk.Harm {
		if op.Kind == disk.Barrier && ops == 0 { // the superblock is read, the log not yet
			elsewhere(func() {
				grow(t, v, fs.GrowOptions{})
				files = fillRoot(t, v, files)
			})
		}
		if op.Kind != disk.Read {
			ops++
		}
		return disk.Harm{}
	}), fs.Options{})
	if err == nil {
		other.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "grew while it was opened: try again") || ops != 1 {
		t.Errorf("%v; %d writes and barriers", err, ops)
	}
	mustHave(t, v, files)
	closeFS(t, v)
	mustCheck(t, mem)
	v = open(t, mem, fs.Options{})
	mustHave(t, v, files)
	closeFS(t, v)
}

// Whenever a volume grows before the mark of who opens it is durable, that one refuses it; and who has it in use, when
// it is asked to grow.
func TestGrowWhileMarked(t *testing.T) {
	for when := 1; ; when++ {
		mem := patterned(t, larger())
		growable(t, mem, 6<<20/disk.BlockSize, fs.MkfsOptions{})
		ops := 0
		grow := func() {
			elsewhere(func() {
				if _, err := fs.Grow(mem, fs.GrowOptions{}); err != nil {
					t.Error(err)
				}
			})
		}
		v, err := fs.Open(disk.NewFault(mem, 1, func(op disk.Op, _ *rand.Rand) disk.Harm {
			if op.Kind != disk.Read {
				if ops++; ops == when {
					grow()
				}
			}
			return disk.Harm{}
		}), fs.Options{})
		if ops < when && err == nil {
			grow()
			if g, err := v.Grow(context.Background(), fs.GrowOptions{}); err == nil || errors.Is(err, fs.ErrNoMore) ||
				!strings.Contains(err.Error(), "another one had it grow") {
				t.Errorf("a volume that another one had grow: %+v, %v", g, err)
			}
			v.Close()
			if when < 9 {
				t.Errorf("%d writes and barriers are few", when)
			}
			return
		}
		if err == nil || !strings.Contains(err.Error(), "grew while it was opened") {
			t.Errorf("at write or barrier %d: %v", when, err)
			return
		}
	}
}

// Close has a growth end.
func TestGrowInUseClosed(t *testing.T) {
	mem := patterned(t, larger())
	growable(t, mem, 6<<20/disk.BlockSize, fs.MkfsOptions{})
	closed := make(chan error, 1)
	var v *fs.FS
	v = open(t, tell(mem, 7<<20/disk.BlockSize, disk.Write, func() error {
		if len(closed) == 0 {
			go func() { closed <- v.Close() }()
		}
		for v.Sync() == nil { // until Close has begun
			runtime.Gosched()
		}
		return nil
	}), fs.Options{})
	before := v.Size()
	if _, err := v.Grow(context.Background(), fs.GrowOptions{}); !errors.Is(err, fs.ErrClosed) || v.Size() != before {
		t.Errorf("%v; it has %+v", err, v.Size())
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

// An image that became longer while it is in use is all used, and nothing but two superblocks is written for that.
func TestGrowInUseImage(t *testing.T) {
	d, err := disk.CreateFile(filepath.Join(t.TempDir(), "v.img"), 16<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := fs.Mkfs(d, fs.MkfsOptions{MaxBytes: most, Zeroed: true}); err != nil {
		t.Fatal(err)
	}
	s := disk.NewStats(d)
	v := open(t, s, fs.Options{})
	if err := v.Sync(); err != nil {
		t.Fatal(err)
	}
	before := s.Counts()
	if err := d.Lengthen(40 << 20); err != nil {
		t.Fatal(err)
	}
	if g := grow(t, v, fs.GrowOptions{}); g.After.Bytes != 40<<20 {
		t.Errorf("%+v", g)
	}
	if n := s.Counts().WrittenBlocks - before.WrittenBlocks; n != 2 {
		t.Errorf("%d blocks are written", n)
	}
	fillRoot(t, v, 0)
	closeFS(t, v)
	mustCheck(t, d)
}

// A preallocated image that was longer than its volume when it was opened, without the room of that, grows where its
// host has the room, which it takes, and nowhere else. Likewise where nobody has it open.
func TestGrowPreallocated(t *testing.T) {
	for what, growing := range map[string]func(d disk.Disk) error{
		"in use": func(d disk.Disk) error {
			v := open(t, d, fs.Options{})
			defer closeFS(t, v)
			_, err := v.Grow(context.Background(), fs.GrowOptions{})
			return err
		},
		"offline": func(d disk.Disk) error {
			_, err := fs.Grow(d, fs.GrowOptions{})
			return err
		},
	} {
		t.Run(what, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "v.img")
			d, err := disk.CreateFile(path, 16<<20)
			if err == nil {
				err = errors.Join(d.Preallocate(), fs.Mkfs(d, fs.MkfsOptions{MaxBytes: most, Zeroed: true}), d.Close())
			}
			if errors.Is(err, errors.ErrUnsupported) {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			opened := func() *disk.File {
				if d, err = disk.OpenFile(path, disk.FileOptions{}); err != nil {
					t.Fatal(err)
				}
				return d
			}
			for _, x := range []struct {
				size, after uint64
				err         error
			}{{most, 16 << 20, disk.ErrNoRoom}, {40 << 20, 40 << 20, nil}} {
				if free, err := disk.HostFree(path); err != nil || x.err != nil && free >= x.size {
					continue
				}
				if err := os.Truncate(path, int64(x.size)); err != nil {
					t.Fatal(err)
				}
				d := opened()
				err = growing(d)
				if at, e := fs.SizeOf(d); !errors.Is(err, x.err) || e != nil || at.Bytes != x.after {
					t.Errorf("of %d bytes: %v; it has %+v, %v", x.size, err, at, e)
				}
				d.Close()
			}
			d = opened()
			defer d.Close()
			if disk.HostOf(d) != nil {
				t.Error("it has not the room of all its blocks any more")
			}
			mustCheck(t, d)
		})
	}
}

// What cannot grow says why, and Open with Grow goes on without.
func TestNoGrowthInUse(t *testing.T) {
	d := disk.NewMem(32 << 20)
	var log bytes.Buffer
	tellAll := slog.New(slog.NewTextHandler(&log, nil))
	if err := fs.Mkfs(disk.NewPrefix(d, 4096), fs.MkfsOptions{}); err != nil {
		t.Fatal(err)
	}
	v := open(t, d, fs.Options{Grow: true, Log: tellAll})
	if !strings.Contains(log.String(), "left alone") {
		t.Errorf("a volume of one size, on a larger device: %s", &log)
	}
	if _, err := v.Grow(context.Background(), fs.GrowOptions{}); !errors.Is(err, fs.ErrFixedSize) {
		t.Errorf("a volume of one size: %v", err)
	}
	closeFS(t, v)
	growable(t, d, 4096, fs.MkfsOptions{})
	log.Reset()
	v = open(t, d, fs.Options{ReadOnly: true, Grow: true, Log: tellAll})
	if _, err := v.Grow(context.Background(), fs.GrowOptions{}); !errors.Is(err, fs.ErrROFS) {
		t.Errorf("read-only: %v", err)
	}
	if err := v.CanGrow(context.Background(), 64<<20, fs.GrowOptions{}); !errors.Is(err, fs.ErrROFS) {
		t.Errorf("read-only, before it is made longer: %v", err)
	}
	closeFS(t, v)
	v = open(t, d, fs.Options{Grow: true, Log: tellAll})
	if v.Size().Bytes+16*disk.BlockSize < d.Size()*disk.BlockSize || !strings.Contains(log.String(), "has grown") {
		t.Errorf("%+v: %s", v.Size(), &log)
	}
	if _, err := v.Grow(context.Background(), fs.GrowOptions{Inodes: 1 << 40}); !errors.Is(err, fs.ErrOptions) {
		t.Errorf("too many inodes: %v", err)
	}
	if err := v.CanGrow(context.Background(), 64<<20, fs.GrowOptions{Inodes: 1 << 40}); !errors.Is(err, fs.ErrOptions) {
		t.Errorf("too many inodes, before it is made longer: %v", err)
	}
	if err := v.CanGrow(context.Background(), 64<<20, fs.GrowOptions{}); err != nil {
		t.Errorf("it can grow: %v", err)
	}
	closeFS(t, v)
	if _, err := v.Grow(context.Background(), fs.GrowOptions{}); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}
