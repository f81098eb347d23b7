// Package disktest is the test suite that every implementation of disk.Disk
// must pass: what the interface promises as long as nothing crashes or breaks.
package disktest

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"sync"
	"testing"

	"tansy/disk"
)

// Blocks is the size in blocks of the device that open must return.
const Blocks = 3000

// Run runs the suite. open returns a fresh device of Blocks blocks, all zero;
// the suite closes it.
func Run(t *testing.T, open func(t *testing.T) disk.Disk) {
	for _, c := range []struct {
		name string
		test func(*testing.T, disk.Disk)
	}{
		{"zeros at first", zerosAtFirst},
		{"reads what was written", readsBack},
		{"vectors longer than the system takes", longVector},
		{"refuses what is out of range", outOfRange},
		{"refuses buffers of the wrong length", wrongLength},
		{"does not keep buffers", keepsNothing},
		{"random operations", randomOps},
		{"concurrent use", concurrent},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := open(t)
			if d.Size() != Blocks {
				t.Fatalf("Size = %d, want %d", d.Size(), Blocks)
			}
			c.test(t, d)
			if err := d.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
			closed(t, d)
		})
	}
}

// Vector makes n buffers of one block.
func Vector(n int) [][]byte {
	bufs := make([][]byte, n)
	for i := range bufs {
		bufs[i] = make([]byte, disk.BlockSize)
	}
	return bufs
}

// Pattern makes n blocks with contents that depend on seed and differ from each other.
func Pattern(n int, seed uint64) [][]byte {
	bufs := Vector(n)
	for i, b := range bufs {
		c := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16), byte(i), byte(i >> 8), 1})
		c.Read(b)
	}
	return bufs
}

func equal(a, b [][]byte) bool {
	for i := range a {
		if !bytes.Equal(a[i], b[i]) {
			return false
		}
	}
	return len(a) == len(b)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func zerosAtFirst(t *testing.T, d disk.Disk) {
	for _, a := range []uint64{0, 1, Blocks - 2} {
		bufs := Pattern(2, a)
		must(t, d.ReadAt(a, bufs))
		if !equal(bufs, Vector(2)) {
			t.Errorf("block %d is not zero", a)
		}
	}
}

func readsBack(t *testing.T, d disk.Disk) {
	for i, a := range []uint64{0, 7, Blocks - 5} {
		want, got := Pattern(5, uint64(i)), Vector(5)
		must(t, d.WriteAt(a, want))
		must(t, d.ReadAt(a, got))
		if !equal(got, want) {
			t.Errorf("block %d: read differs before the barrier", a)
		}
		must(t, d.Barrier())
		must(t, d.ReadAt(a, got))
		if !equal(got, want) {
			t.Errorf("block %d: read differs after the barrier", a)
		}
	}
	must(t, d.WriteAt(3, nil))
	must(t, d.ReadAt(3, nil))
}

func longVector(t *testing.T, d disk.Disk) {
	want, got := Pattern(Blocks-1, 9), Vector(Blocks-1)
	must(t, d.WriteAt(1, want))
	must(t, d.ReadAt(1, got))
	if !equal(got, want) {
		t.Error("read differs")
	}
}

func outOfRange(t *testing.T, d disk.Disk) {
	for _, c := range []struct {
		a uint64
		n int
	}{{Blocks, 1}, {Blocks - 1, 2}, {Blocks + 1, 0}, {1 << 52, 1}, {1<<64 - 1, 1}, {1<<64 - 1, 2}} {
		for _, err := range []error{d.ReadAt(c.a, Vector(c.n)), d.WriteAt(c.a, Vector(c.n))} {
			var e *disk.Error
			if !errors.Is(err, disk.ErrRange) || !errors.As(err, &e) {
				t.Errorf("%d blocks at %d: error %v, want ErrRange", c.n, c.a, err)
			}
		}
	}
	must(t, d.ReadAt(Blocks, nil))
}

func wrongLength(t *testing.T, d disk.Disk) {
	for _, n := range []int{0, 1, disk.BlockSize - 1, disk.BlockSize + 1, 2 * disk.BlockSize} {
		bufs := [][]byte{make([]byte, disk.BlockSize), make([]byte, n)}
		for _, err := range []error{d.ReadAt(4, bufs), d.WriteAt(4, bufs)} {
			var e *disk.Error
			if !errors.Is(err, disk.ErrBuffer) || !errors.As(err, &e) || e.Block != 5 {
				t.Errorf("buffer of %d bytes: error %v, want ErrBuffer at block 5", n, err)
			}
		}
	}
}

func keepsNothing(t *testing.T, d disk.Disk) {
	bufs, want := Pattern(2, 1), Pattern(2, 1)
	must(t, d.WriteAt(10, bufs))
	clear(bufs[0])
	clear(bufs[1])
	got := Vector(2)
	must(t, d.ReadAt(10, got))
	if !equal(got, want) {
		t.Error("a written buffer was kept")
	}
	clear(got[0])
	must(t, d.ReadAt(10, bufs))
	if !equal(bufs, want) {
		t.Error("a read buffer was kept")
	}
}

func randomOps(t *testing.T, d disk.Disk) {
	r := rand.New(rand.NewPCG(1, 2))
	model := Vector(64)
	for range 500 {
		a := r.Uint64N(64)
		n := 1 + r.IntN(int(64-a))
		switch r.IntN(5) {
		case 0, 1:
			bufs := Pattern(n, r.Uint64())
			must(t, d.WriteAt(a, bufs))
			for i, b := range bufs {
				copy(model[a+uint64(i)], b)
			}
		case 2, 3:
			got := Vector(n)
			must(t, d.ReadAt(a, got))
			if !equal(got, model[a:a+uint64(n)]) {
				t.Fatalf("%d blocks at %d differ", n, a)
			}
		case 4:
			must(t, d.Barrier())
		}
	}
}

// concurrent: each goroutine has its own blocks, all share the barriers.
func concurrent(t *testing.T, d disk.Disk) {
	var wg sync.WaitGroup
	for g := range uint64(8) {
		wg.Go(func() {
			got := Vector(3)
			for i := range uint64(50) {
				want := Pattern(3, g<<8|i)
				if err := errors.Join(d.WriteAt(g*3, want), d.Barrier(), d.ReadAt(g*3, got)); err != nil {
					t.Error(err)
					return
				}
				if !equal(got, want) {
					t.Errorf("goroutine %d reads what it did not write", g)
				}
			}
		})
	}
	wg.Wait()
}

func closed(t *testing.T, d disk.Disk) {
	for _, err := range []error{d.ReadAt(0, Vector(1)), d.WriteAt(0, Vector(1)), d.Barrier(), d.Close()} {
		if !errors.Is(err, os.ErrClosed) {
			t.Errorf("after Close: error %v, want os.ErrClosed", err)
		}
	}
}
