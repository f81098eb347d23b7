package journal

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"tansy/disk"
)

// A process that dies leaves what it wrote in the host's cache, where the next one
// reads it, although it is not durable. If the machine then goes down while that one
// recovers, what is acknowledged must be there, and no commit in part.
func TestProcessThenMachine(t *testing.T) {
	died := errors.New("the process is dead")
	for seed := uint64(1); seed <= 150; seed++ {
		r := rand.New(rand.NewPCG(seed, 0))
		h := newHistory(r, 25)
		sim := formatted(t, small)
		j, err := Open(disk.NewFault(sim, seed, disk.FailFrom(20+r.Uint64N(60), died)), small, quiet)
		if err != nil {
			t.Fatal(err)
		}
		acked := 0
		for i := range h {
			wait := r.IntN(2) == 0
			if err := j.Commit(h.writes(small, i), wait); err != nil {
				break
			}
			if wait {
				acked = i + 1
			}
		}
		_ = j.Close() // what it still does may fail
		sim.FreezeAfter(sim.Ops()+r.Uint64N(12), false)
		if j, err := Open(sim, small, quiet); err == nil {
			j.Close()
		} else if !errors.Is(err, disk.ErrFrozen) {
			t.Fatal(err)
		}
		s := recovered(t, sim.Crash(disk.RandomChoice(r, true)), small)
		if h.prefix(s, acked) < 0 {
			t.Fatalf("seed %d: found %v, which is no prefix from %d commits on", seed, s, acked)
		}
	}
}

// TestMaxSize: a device of the largest size serves to its last block, a larger one is refused.
func TestMaxSize(t *testing.T) {
	d := disk.NewMem(MaxSize * disk.BlockSize)
	if err := Format(d, small); err != nil {
		t.Fatal(err)
	}
	j, err := Open(d, small, quiet)
	if err != nil {
		t.Fatal(err)
	}
	data, got := slices.Repeat([]byte{1}, disk.BlockSize), make([]byte, disk.BlockSize)
	if err := j.Commit([]Write{{MaxSize - 1, data}}, true); err != nil {
		t.Error(err)
	}
	if err := j.Read(MaxSize-1, got); err != nil || !bytes.Equal(got, data) {
		t.Errorf("the last block: %v, %d", err, got[0])
	}
	if err := j.Close(); err != nil {
		t.Error(err)
	}
	d = disk.NewMem((MaxSize + 1) * disk.BlockSize)
	if err := Format(d, small); !errors.Is(err, ErrParams) {
		t.Error(err)
	}
	if j, err := Open(d, small, quiet); !errors.Is(err, ErrParams) {
		t.Error(j, err)
	}
}
