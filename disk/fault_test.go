package disk

import (
	"bytes"
	"errors"
	"math/bits"
	"slices"
	"testing"
	"time"
)

func TestFaultFailsTheOperationAsked(t *testing.T) {
	cause := errors.New("no power")
	m := NewMem(8 * BlockSize)
	f := NewFault(m, 1, FailAt(2, cause))
	put(t, f, 3, 1)
	err := f.WriteAt(3, [][]byte{slices.Repeat([]byte{2}, BlockSize)})
	var e *Error
	if !errors.Is(err, cause) || !errors.As(err, &e) || e.Op != "write" || e.Block != 3 {
		t.Errorf("error %v", err)
	}
	if got := get(t, f, 3); got != 1 {
		t.Errorf("the failed write reached the device: %d", got)
	}
	if f.Ops() != 3 {
		t.Errorf("%d operations, want 3", f.Ops())
	}
	f.SetPlan(FailFrom(4, cause, Write, Barrier))
	get(t, f, 3)
	get(t, f, 3)
	if err := f.Barrier(); !errors.Is(err, cause) {
		t.Errorf("barrier: error %v", err)
	}
	if err := f.WriteAt(3, nil); !errors.Is(err, cause) {
		t.Errorf("write: error %v", err)
	}
	f.SetPlan(FailFrom(1, ErrInjected))
	if err := f.ReadAt(3, nil); !errors.Is(err, ErrInjected) {
		t.Errorf("read: error %v", err)
	}
	f.SetPlan(nil)
	barrier(t, f)
}

func TestFaultTearsWrites(t *testing.T) {
	f := NewFault(NewMem(8*BlockSize), 1, nil)
	put(t, f, 0, 1)
	f.SetPlan(Sometimes(1, Harm{Torn: true}, Write))
	ones, twos := 0, 0
	for range 20 {
		put(t, f, 0, 2) // the device lies
		b := make([]byte, BlockSize)
		if err := f.ReadAt(0, [][]byte{b}); err != nil {
			t.Fatal(err)
		}
		for lo := 0; lo < BlockSize; lo += SectorSize {
			sector := b[lo : lo+SectorSize]
			if slices.Min(sector) != slices.Max(sector) {
				t.Fatal("a sector is torn")
			}
			ones += bytes.Count(sector[:1], []byte{1})
			twos += bytes.Count(sector[:1], []byte{2})
		}
		f.SetPlan(nil)
		put(t, f, 0, 1)
		f.SetPlan(Sometimes(1, Harm{Torn: true}, Write))
	}
	if ones == 0 || twos == 0 {
		t.Errorf("%d old and %d new sectors", ones, twos)
	}
	f.SetPlan(Sometimes(1, Harm{Torn: true, Err: ErrInjected}))
	if err := f.WriteAt(0, [][]byte{make([]byte, BlockSize)}); !errors.Is(err, ErrInjected) {
		t.Errorf("error %v", err)
	}
}

func TestFaultFlipsOneBit(t *testing.T) {
	m := NewMem(8 * BlockSize)
	f := NewFault(m, 1, Sometimes(1, Harm{Flip: true}))
	distance := func(b []byte) (n int) {
		for _, v := range b {
			n += bits.OnesCount8(v)
		}
		return n
	}
	b := make([]byte, BlockSize)
	if err := f.ReadAt(0, [][]byte{b}); err != nil || distance(b) != 1 {
		t.Errorf("read: %d bits differ, error %v", distance(b), err)
	}
	clear(b)
	if err := f.WriteAt(0, [][]byte{b}); err != nil || distance(b) != 0 {
		t.Errorf("write: %d bits of the caller's buffer changed, error %v", distance(b), err)
	}
	if err := m.ReadAt(0, [][]byte{b}); err != nil || distance(b) != 1 {
		t.Errorf("write: %d bits differ, error %v", distance(b), err)
	}
}

func TestFaultIsReplayable(t *testing.T) {
	run := func(seed uint64) (failed []int) {
		f := NewFault(NewMem(8*BlockSize), seed, Sometimes(0.3, Harm{Err: ErrInjected, Delay: time.Microsecond}))
		for i := range 100 {
			if f.Barrier() != nil {
				failed = append(failed, i)
			}
		}
		return failed
	}
	one, other := run(1), run(2)
	if !slices.Equal(one, run(1)) {
		t.Error("the same seed fails other operations")
	}
	if len(one) < 10 || slices.Equal(one, other) {
		t.Errorf("failed %v and %v", one, other)
	}
}

func TestStatsCounts(t *testing.T) {
	s := NewStats(NewMem(8 * BlockSize))
	two := [][]byte{make([]byte, BlockSize), make([]byte, BlockSize)}
	for _, err := range []error{s.WriteAt(0, two), s.WriteAt(1, two[:1]), s.ReadAt(0, two), s.Barrier()} {
		if err != nil {
			t.Fatal(err)
		}
	}
	got := s.Counts()
	if got.ReadTime <= 0 || got.WriteTime <= 0 || got.BarrierTime <= 0 {
		t.Errorf("no time was spent: %+v", got)
	}
	got.ReadTime, got.WriteTime, got.BarrierTime = 0, 0, 0
	if want := (Counts{Reads: 1, ReadBlocks: 2, Writes: 2, WrittenBlocks: 3, Barriers: 1}); got != want {
		t.Errorf("counts %+v, want %+v", got, want)
	}
}
