package disk

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
)

// put writes one block whose bytes are all v; get returns the first byte of a
// block, and fails the test if the others differ from it.
func put(t *testing.T, d Disk, a uint64, v byte) {
	t.Helper()
	if err := d.WriteAt(a, [][]byte{slices.Repeat([]byte{v}, BlockSize)}); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, d Disk, a uint64) byte {
	t.Helper()
	b := make([]byte, BlockSize)
	if err := d.ReadAt(a, [][]byte{b}); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b[1:], b[:BlockSize-1]) {
		t.Fatalf("block %d is torn", a)
	}
	return b[0]
}

func barrier(t *testing.T, d Disk) {
	t.Helper()
	if err := d.Barrier(); err != nil {
		t.Fatal(err)
	}
}

// images returns what blocks 0..n-1 hold in each crash image, without repetition.
func images(t *testing.T, s *Sim, n uint64, limit int) map[string]bool {
	t.Helper()
	seen := map[string]bool{}
	for c := range s.Crashes(limit, 1, false) {
		var vs []byte
		for a := range n {
			vs = append(vs, get(t, c, a))
		}
		seen[fmt.Sprint(vs)] = true
	}
	return seen
}

func TestCrashKeepsAnySubsetOfUnbarrieredWrites(t *testing.T) {
	s := NewSim(8 * BlockSize)
	put(t, s, 0, 1)
	put(t, s, 1, 1)
	barrier(t, s)
	put(t, s, 0, 2)
	put(t, s, 0, 3)
	put(t, s, 2, 9)
	seen := images(t, s, 3, 100)
	for _, v0 := range []byte{1, 2, 3} {
		for _, v2 := range []byte{0, 9} {
			if want := fmt.Sprint([]byte{v0, 1, v2}); !seen[want] {
				t.Errorf("no image %s", want)
			}
		}
	}
	if len(seen) != 6 {
		t.Errorf("images %v, want 6", seen)
	}
	if got := get(t, s, 0); got != 3 {
		t.Errorf("crashing changed the machine: block 0 is %d", got)
	}
}

func TestBarrierLosesNothing(t *testing.T) {
	s := NewSim(8 * BlockSize)
	for a := range uint64(8) {
		put(t, s, a, byte(a))
		put(t, s, a, byte(a+10))
	}
	barrier(t, s)
	if p := s.Pending(); len(p) != 0 {
		t.Errorf("pending after the barrier: %v", p)
	}
	if seen := images(t, s, 8, 100); len(seen) != 1 || !seen["[10 11 12 13 14 15 16 17]"] {
		t.Errorf("images %v", seen)
	}
}

func TestWriteBesideBarrierStaysAtRisk(t *testing.T) {
	s := NewSim(8 * BlockSize)
	put(t, s, 0, 1)
	put(t, s, 1, 1)
	s.duringBarrier = func() {
		put(t, s, 1, 2)
		put(t, s, 2, 2)
	}
	barrier(t, s)
	seen := images(t, s, 3, 100)
	if len(seen) != 4 {
		t.Errorf("images %v, want 4", seen)
	}
	for _, want := range []string{"[1 1 0]", "[1 1 2]", "[1 2 0]", "[1 2 2]"} {
		if !seen[want] {
			t.Errorf("no image %s in %v", want, seen)
		}
	}
}

func TestBarrierBesideWriteDoesNotCoverIt(t *testing.T) {
	s := NewSim(8 * BlockSize)
	s.duringWrite = func() { barrier(t, s) }
	put(t, s, 0, 1)
	if seen := images(t, s, 1, 100); len(seen) != 2 {
		t.Errorf("images %v, want 2", seen)
	}
	barrier(t, s)
	if seen := images(t, s, 1, 100); len(seen) != 1 || !seen["[1]"] {
		t.Errorf("images %v after a barrier of its own", seen)
	}
}

func TestOverlappingBarriers(t *testing.T) {
	s := NewSim(8 * BlockSize)
	put(t, s, 0, 1)
	inner := true
	s.duringBarrier = func() {
		if !inner {
			return
		}
		inner = false
		put(t, s, 0, 2)
		barrier(t, s) // covers more than the one it runs within
	}
	barrier(t, s)
	if seen := images(t, s, 1, 100); len(seen) != 1 || !seen["[2]"] {
		t.Errorf("images %v", seen)
	}
}

func TestTornBlocksMixSectors(t *testing.T) {
	s := NewSim(4 * BlockSize)
	put(t, s, 0, 1)
	barrier(t, s)
	put(t, s, 0, 2)
	put(t, s, 0, 3)
	c := s.Crash(func(_ uint64, sector, versions int) int {
		if sector < 0 {
			return Torn
		}
		return sector % (versions + 1)
	})
	b := make([]byte, BlockSize)
	if err := c.ReadAt(0, [][]byte{b}); err != nil {
		t.Fatal(err)
	}
	for i, v := range b {
		if want := byte(1 + i/SectorSize%3); v != want {
			t.Fatalf("byte %d is %d, want %d", i, v, want)
		}
	}
	torn := false
	for c := range s.Crashes(100, 1, true) {
		if err := c.ReadAt(0, [][]byte{b}); err != nil {
			t.Fatal(err)
		}
		torn = torn || slices.Min(b) != slices.Max(b)
	}
	if !torn {
		t.Error("no torn image among 100")
	}
}

func TestCrashesOfManyBlocksAreSampled(t *testing.T) {
	const n = 30
	s := NewSim(n * BlockSize)
	for a := range uint64(n) {
		put(t, s, a, 1)
	}
	one := images(t, s, n, 50)
	all, none := fmt.Sprint(slices.Repeat([]byte{1}, n)), fmt.Sprint(make([]byte, n))
	if !one[all] || !one[none] {
		t.Error("the images with all and with nothing are not among the sample")
	}
	if len(one) < 25 {
		t.Errorf("only %d different images of 50", len(one))
	}
	two := images(t, s, n, 50)
	for i := range one {
		if !two[i] {
			t.Fatal("the same seed gives other images")
		}
	}
}

func TestFreeze(t *testing.T) {
	s := NewSim(8 * BlockSize)
	stopped := s.FreezeAfter(2, false)
	put(t, s, 0, 1)
	select {
	case <-stopped:
		t.Error("stopped too early")
	default:
	}
	barrier(t, s)
	if !s.Frozen() {
		t.Error("not frozen")
	}
	<-stopped
	<-s.FreezeAfter(1, false) // as it is already
	b := [][]byte{make([]byte, BlockSize)}
	for _, err := range []error{s.WriteAt(0, b), s.Barrier(), s.ReadAt(0, b)} {
		if !errors.Is(err, ErrFrozen) {
			t.Errorf("error %v, want ErrFrozen", err)
		}
	}
	if s.Ops() != 2 {
		t.Errorf("%d operations took effect", s.Ops())
	}
	if seen := images(t, s, 1, 10); len(seen) != 1 || !seen["[1]"] {
		t.Errorf("images %v", seen)
	}
}

func TestFreezeWithinBarrier(t *testing.T) {
	s := NewSim(8 * BlockSize)
	put(t, s, 0, 1)
	s.duringBarrier = func() { s.FreezeAfter(1, false) }
	if err := s.Barrier(); !errors.Is(err, ErrFrozen) {
		t.Errorf("error %v, want ErrFrozen", err)
	}
	if seen := images(t, s, 1, 10); len(seen) != 2 {
		t.Errorf("images %v, want 2: the barrier never returned", seen)
	}
}

func TestBlockingFreezeEndsWithClose(t *testing.T) {
	s := NewSim(8 * BlockSize)
	s.FreezeAfter(0, true)
	var wg sync.WaitGroup
	b := [][]byte{make([]byte, BlockSize)}
	for _, op := range []func() error{
		func() error { return s.ReadAt(0, b) },
		func() error { return s.WriteAt(0, b) },
		s.Barrier,
	} {
		wg.Go(func() {
			if err := op(); !errors.Is(err, ErrFrozen) {
				t.Errorf("error %v, want ErrFrozen", err)
			}
		})
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	wg.Wait()
}

// TestRecordingGoesBack runs a random workload and checks the state at every
// point of it against one that was frozen there.
func TestRecordingGoesBack(t *testing.T) {
	const seed, ops = 7, 60
	run := func(s *Sim) {
		r := rand.New(rand.NewPCG(seed, 0))
		for i := range ops {
			if r.IntN(4) == 0 {
				s.Barrier()
			} else {
				v := slices.Repeat([]byte{byte(i)}, BlockSize)
				s.WriteAt(r.Uint64N(4), [][]byte{v, v}[:1+r.IntN(2)])
			}
		}
	}
	s := NewSim(5 * BlockSize)
	s.Record()
	run(s)
	for n := range uint64(ops + 1) {
		frozen := NewSim(5 * BlockSize)
		frozen.FreezeAfter(n, false)
		run(frozen)
		back := s.At(n)
		if back.Ops() != n {
			t.Fatalf("At(%d) has %d operations", n, back.Ops())
		}
		want, got := images(t, frozen, 5, 2000), images(t, back, 5, 2000)
		if len(want) != len(got) {
			t.Fatalf("seed %d: after %d operations %d images, want %d", seed, n, len(got), len(want))
		}
		for i := range want {
			if !got[i] {
				t.Fatalf("seed %d: after %d operations no image %s", seed, n, i)
			}
		}
	}
}

// TestDurableUnderConcurrency: whatever goes on beside it, a value whose
// barrier returned is never older in any crash image.
func TestDurableUnderConcurrency(t *testing.T) {
	s := NewSim(4 * BlockSize)
	s.Record()
	type ack struct {
		ops uint64
		v   byte
	}
	acks := make([][]ack, 4)
	var wg sync.WaitGroup
	for a := range uint64(4) {
		wg.Go(func() {
			for v := byte(1); v <= 40; v++ {
				put(t, s, a, v)
				barrier(t, s)
				acks[a] = append(acks[a], ack{s.Ops(), v})
			}
		})
	}
	wg.Wait()
	for n := uint64(0); n <= s.Ops(); n += 3 {
		for c := range s.At(n).Crashes(20, n, false) {
			for a := range uint64(4) {
				var floor byte
				for _, k := range acks[a] {
					if k.ops <= n {
						floor = k.v
					}
				}
				if got := get(t, c, a); got < floor {
					t.Fatalf("after %d operations block %d may hold %d, but %d was durable", n, a, got, floor)
				}
			}
		}
	}
}

// TestVarying: of the recording, the blocks that were written since it began or were not durable then are those in
// which images may differ.
func TestVarying(t *testing.T) {
	s := NewSim(8 * BlockSize)
	put(t, s, 0, 1)
	put(t, s, 1, 1)
	barrier(t, s)
	put(t, s, 2, 1)
	put(t, s, 3, 1)
	s.Record()
	put(t, s, 5, 1)
	put(t, s, 2, 2)
	barrier(t, s)
	put(t, s, 4, 0)
	if got := s.Varying(); !slices.Equal(got, []uint64{2, 3, 4, 5}) {
		t.Errorf("%d", got)
	}
}

// TestContents: the sums of two blocks are the same if these are, however they became so, and that of zeros is 0.
func TestContents(t *testing.T) {
	s := NewSim(8 * BlockSize)
	for a, v := range []byte{1, 1, 2, 0} {
		put(t, s, uint64(a), v)
	}
	torn := s.Crash(func(a uint64, sector, _ int) int {
		if a == 0 && sector < 0 {
			return Torn
		}
		return sector % 2 & 1
	})
	zeros := s.Crash(func(a uint64, sector, _ int) int {
		if sector < 0 {
			return Torn
		}
		return 0
	})
	one := s.Content(0).Sum()
	switch {
	case one == 0 || one != s.Content(0).Sum() || one != s.Content(1).Sum() || one == s.Content(2).Sum():
		t.Error("sums are not as the blocks are")
	case s.Content(3).Sum() != 0 || s.Content(7).Sum() != 0 || zeros.Content(0).Sum() != 0:
		t.Error("the sum of zeros is not 0")
	case torn.Content(0).Sum() == one || torn.Content(0).Sum() == 0:
		t.Error("a torn block has the sum of one that is not")
	}
	seen := maps.Collect(s.Contents())
	for a, c := range seen {
		if c != s.Content(a) {
			t.Errorf("block %d has two contents", a)
		}
	}
	if len(seen) != 3 || seen[3] != nil {
		t.Errorf("not zeros are %v", seen)
	}
}
