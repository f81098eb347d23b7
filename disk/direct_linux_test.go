package disk

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"tansy/test/kit/hosttest"
)

// pages is n blocks with random contents, each a page of memory.
func pages(n int, r *rand.Rand) [][]byte {
	mem := make([]byte, (n+1)*BlockSize)
	mem = mem[-uintptr(unsafe.Pointer(&mem[0]))%BlockSize:]
	bufs := blocksOf(n, r)
	for i, b := range bufs {
		bufs[i] = mem[i*BlockSize : (i+1)*BlockSize]
		copy(bufs[i], b)
	}
	return bufs
}

func createDirect(t *testing.T, blocks uint64) *File {
	d := create(t, blocks)
	if d.direct == nil {
		t.Skip("the file system takes no direct writes")
	}
	return d
}

// isDirect tells if the descriptor is one for direct writes.
func isDirect(t *testing.T, fd int) bool {
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	if err != nil {
		t.Fatal(err)
	}
	return flags&unix.O_DIRECT != 0
}

// Direct and cached writes in any order, and reads that put blocks into the page cache in between: what was written
// last is read. Only those of whole pages are direct that are long, or that a barrier follows.
func TestDirectWrites(t *testing.T) {
	const seed, log, logEnd = 1, 32, 96
	r := rand.New(rand.NewPCG(seed, 0))
	d := createDirect(t, 128)
	BarrierFollows(NewStats(d), log, logEnd)
	was := false
	pwritev := d.pwritev
	d.pwritev = func(fd int, iovs [][]byte, off int64) (int, error) {
		was = isDirect(t, fd)
		return pwritev(fd, iovs, off)
	}
	model := blocksOf(128, nil)
	for range 400 {
		a := r.Uint64N(127)
		n := 1 + r.IntN(int(min(128-a, 40)))
		bufs, whole := pages(n, r), r.IntN(4) > 0
		if !whole {
			bufs[r.IntN(n)] = make([]byte, BlockSize+1)[1:]
		}
		if err := d.WriteAt(a, bufs); err != nil {
			t.Fatal(err)
		}
		if want := whole && (n >= directMin || a >= log && a < logEnd); was != want {
			t.Fatalf("seed %d: write of %d blocks at %d, whole pages: %v, direct: %v", seed, n, a, whole, was)
		}
		copy(model[a:], bufs)
		from := r.Uint64N(127)
		got := blocksOf(1+r.IntN(int(128-from)), nil)
		if err := d.ReadAt(from, got); err != nil {
			t.Fatal(err)
		}
		if !same(got, model[from:][:len(got)]) {
			t.Fatalf("seed %d: %d blocks at %d differ", seed, len(got), from)
		}
	}
}

// A file that is larger than its volume gets direct writes, too, and they cost no more memory.
func TestDirectWritesOfPrefix(t *testing.T) {
	f := createDirect(t, 128)
	d := NewPrefix(f, 100)
	direct := 0
	pwritev := f.pwritev
	f.pwritev = func(fd int, iovs [][]byte, off int64) (int, error) {
		if isDirect(t, fd) {
			direct++
		}
		return pwritev(fd, iovs, off)
	}
	bufs := pages(directMin, rand.New(rand.NewPCG(1, 0)))
	if err := d.WriteAt(100-directMin, bufs); err != nil || direct != 1 {
		t.Errorf("%d direct writes, want 1: %v", direct, err)
	}
	f.pwritev = pwritev
	write := func(d Disk) float64 {
		return testing.AllocsPerRun(20, func() {
			if err := d.WriteAt(0, bufs); err != nil {
				t.Fatal(err)
			}
		})
	}
	if with, without := write(d), write(f); with > without {
		t.Errorf("%v allocations, %v without", with, without)
	}
}

// A file system that refuses a direct write gets it through the cache, and all later ones.
func TestDirectWriteRefused(t *testing.T) {
	d := createDirect(t, 64)
	tries := 0
	pwritev := d.pwritev
	d.pwritev = func(fd int, iovs [][]byte, off int64) (int, error) {
		if isDirect(t, fd) {
			tries++
			return -1, unix.EINVAL
		}
		return pwritev(fd, iovs, off)
	}
	for seed := uint64(1); seed <= 2; seed++ {
		want, got := pages(32, rand.New(rand.NewPCG(seed, 0))), blocksOf(32, nil)
		if err := errors.Join(d.WriteAt(8, want), d.ReadAt(8, got)); err != nil {
			t.Fatal(err)
		}
		if !same(want, got) {
			t.Fatal("blocks differ")
		}
	}
	if tries != 1 {
		t.Errorf("%d direct writes were tried, want 1", tries)
	}
}

// A device gets no direct writes, whatever file system its node lies on. The test needs a
// device whose contents may be lost, named in TANSY_TEST_DEVICE, and the right to make a node.
func TestNoDirectWritesToDevices(t *testing.T) {
	path := os.Getenv("TANSY_TEST_DEVICE")
	if path == "" {
		t.Skip("TANSY_TEST_DEVICE is not set")
	}
	createDirect(t, 1) // files here get them
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		t.Fatal(err)
	}
	node := filepath.Join(t.TempDir(), "node")
	if err := unix.Mknod(node, st.Mode, int(st.Rdev)); err != nil {
		t.Skip(err)
	}
	d, err := OpenFile(node, FileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if d.direct != nil {
		t.Error("the device would be written to directly")
	}
}

// The lock is held while a direct write is in flight, also when the file is closed meanwhile.
func TestDirectWriteKeepsLock(t *testing.T) {
	d := createDirect(t, 64)
	var inside error
	pwritev := d.pwritev
	d.pwritev = func(fd int, iovs [][]byte, off int64) (int, error) {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		other, err := OpenFile(d.Path(), FileOptions{})
		if err == nil {
			other.Close()
		}
		inside = err
		return pwritev(fd, iovs, off)
	}
	if err := d.WriteAt(8, pages(32, nil)); err != nil {
		t.Error(err)
	}
	if !errors.Is(inside, ErrLocked) {
		t.Errorf("error %v from another open while a write was in flight, want ErrLocked", inside)
	}
	other, err := OpenFile(d.Path(), FileOptions{})
	if err != nil {
		t.Fatal("after the write:", err)
	}
	other.Close()
	var e *Error
	if err := d.WriteAt(8, pages(32, nil)); !errors.As(err, &e) || e.Err != os.ErrClosed || e.Op != "write" || e.Block != 8 {
		t.Errorf("error %v, want that the file is closed", err)
	}
}

// Other errors of a direct write are the caller's.
func TestDirectWriteFails(t *testing.T) {
	d := createDirect(t, 64)
	d.pwritev = func(int, [][]byte, int64) (int, error) { return -1, unix.EIO }
	var e *Error
	if err := d.WriteAt(8, pages(32, nil)); !errors.As(err, &e) || e.Err != unix.EIO || e.Block != 8 {
		t.Errorf("error %v, want EIO at block 8", err)
	}
}

// Long and short writes side by side, to neighbours in the same pages of a large folio,
// and reads of both: every barrier succeeds and every block ends as it was written last.
func TestDirectWritesBesideOthers(t *testing.T) {
	d := createDirect(t, 96)
	model := blocksOf(96, nil)
	const rounds = 300
	var wg sync.WaitGroup
	for w, part := range [][3]uint64{{0, 20, 20}, {20, 24, 1}, {24, 60, 36}, {60, 64, 2}, {64, 80, 16}, {80, 96, 1}} {
		r := rand.New(rand.NewPCG(uint64(w), 0))
		wg.Go(func() {
			for range rounds {
				n := part[2]
				a := part[0] + n*r.Uint64N((part[1]-part[0])/n)
				bufs := pages(int(n), r)
				if err := errors.Join(d.WriteAt(a, bufs), d.Barrier()); err != nil {
					t.Error(err)
					return
				}
				copy(model[a:a+n], bufs)
			}
		})
	}
	wg.Go(func() {
		for range rounds {
			if err := d.ReadAt(0, blocksOf(96, nil)); err != nil {
				t.Error(err)
			}
		}
	})
	wg.Wait()
	got := blocksOf(96, nil)
	if err := d.ReadAt(0, got); err != nil {
		t.Fatal(err)
	}
	if !same(got, model) {
		t.Error("blocks differ")
	}
}

// A device that is written past the cache is so always, whatever the pages of memory, and a barrier makes it durable;
// what was written last is read, also where reads put blocks into the cache in between. An image goes on as before.
func TestPastCache(t *testing.T) {
	const seed, blocks = 3, 256
	image := filepath.Join(t.TempDir(), "v.img")
	if err := os.WriteFile(image, make([]byte, blocks*BlockSize), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := OpenFile(image, FileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if PastCache(NewStats(f)) {
		t.Error("an image goes past the cache")
	}
	f.Close()
	d, err := OpenFile(hosttest.Loop(t, image), FileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if !PastCache(NewStats(NewPieced(d, blocks, func(a uint64) (bool, uint64, uint64) { return true, a, blocks - a }))) {
		t.Fatal("the device does not go past the cache")
	}
	pwritev := d.pwritev
	d.pwritev = func(fd int, iovs [][]byte, off int64) (int, error) {
		if !isDirect(t, fd) {
			t.Errorf("seed %d: a write of %d blocks goes through the cache", seed, len(iovs))
		}
		return pwritev(fd, iovs, off)
	}
	r := rand.New(rand.NewPCG(seed, 0))
	model := blocksOf(blocks, nil)
	for range 300 {
		a := r.Uint64N(blocks - 1)
		n := 1 + r.IntN(int(min(blocks-a, 20)))
		bufs := pages(n, r)
		if r.IntN(2) > 0 {
			i := r.IntN(n)
			bufs[i] = append(make([]byte, 1, BlockSize+1), bufs[i]...)[1:]
		}
		if err := d.WriteAt(a, bufs); err != nil {
			t.Fatal(err)
		}
		copy(model[a:], bufs)
		from := r.Uint64N(blocks - 1)
		got := blocksOf(1+r.IntN(int(blocks-from)), nil)
		if err := d.ReadAt(from, got); err != nil {
			t.Fatal(err)
		}
		if !same(got, model[from:][:len(got)]) {
			t.Fatalf("seed %d: %d blocks at %d differ", seed, len(got), from)
		}
	}
	if err := d.Barrier(); err != nil {
		t.Fatal(err)
	}
}
