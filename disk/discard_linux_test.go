package disk

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"tansy/test/kit/hosttest"
)

// What is discarded reads as zeros, its neighbours as before, and the host has the room again: Room
// says so at once, what had room has it no longer, and a full host takes new blocks.
func TestDiscard(t *testing.T) {
	for _, kind := range hosttest.Kinds {
		t.Run(kind, func(t *testing.T) {
			dir := hosttest.Mount(t, kind, hostSize)
			d := sparse(t, dir, 4*hostSize)
			h := HostOf(NewStats(d))
			const n, from, to = 3 * chunk, 100, 2*chunk + 7
			if err := h.Reserve(0, n); err != nil {
				t.Fatal(err)
			}
			full := blocksOf(n, rand.New(rand.NewPCG(1, 1)))
			if err := errors.Join(d.WriteAt(0, full), d.Barrier()); err != nil {
				t.Fatal(err)
			}
			hosttest.Fill(t, dir, 0)
			if err := h.Reserve(10*chunk, 1); !errors.Is(err, ErrNoRoom) {
				t.Fatalf("a full host: %v, want %v", err, ErrNoRoom)
			}
			before, err := d.allocated()
			if err != nil {
				t.Fatal(err)
			}
			free, err := d.hostFree()
			if err != nil {
				t.Fatal(err)
			}
			s := NewStats(d)
			if err := errors.Join(s.Discard(from, to-from), s.Barrier()); err != nil {
				t.Fatal(err)
			}
			if c := s.Counts(); c.Discards != 1 || c.DiscardedBlocks != to-from {
				t.Errorf("counted %d discards of %d blocks", c.Discards, c.DiscardedBlocks)
			}
			const slack = 4 // what the host keeps about holes
			after, err := d.allocated()
			if err != nil || after > before-(to-from)+slack {
				t.Errorf("%d blocks before, %d after, %v", before, after, err)
			}
			const reserved = hostSize / 20 / BlockSize // for root, who has filled it
			if f, b := h.Room(); f+slack+reserved < free+to-from || b > before-(to-from)+slack {
				t.Errorf("free %d, with room %d; then %d and %d", free, before, f, b)
			}
			got := blocksOf(n, rand.New(rand.NewPCG(2, 2)))
			if err := d.ReadAt(0, got); err != nil {
				t.Fatal(err)
			}
			for i, b := range got {
				want := full[i]
				if from <= i && i < to {
					want = zeros[:]
				}
				if !bytes.Equal(b, want) {
					t.Fatalf("block %d", i)
				}
			}
			if lo, hi, ok := h.Backed(from); !ok || lo != to || hi < n {
				t.Errorf("the next with room are %d to %d, %v", lo, hi, ok)
			}
			// others may have the room, and who wants it back has to ask
			if err := h.Reserve(10*chunk, 2*chunk-1000); err != nil {
				t.Error(err)
			}
			hosttest.Fill(t, dir, 0)
			if err := h.Reserve(from, 1); !errors.Is(err, ErrNoRoom) {
				t.Errorf("a discarded block on a full host: %v, want %v", err, ErrNoRoom)
			}
			if err := h.Reserve(to, n-to); err != nil {
				t.Errorf("blocks that were not discarded: %v", err)
			}
		})
	}
}

// A device that cannot, or may not, does nothing, and says which it is.
func TestDiscardRefused(t *testing.T) {
	for _, c := range []struct{ err, want error }{
		{unix.EOPNOTSUPP, ErrNoDiscard}, {unix.ENOSYS, ErrNoDiscard}, {unix.ENOTTY, ErrNoDiscard},
		{unix.EINVAL, ErrNoDiscard},
		{unix.ENOSPC, ErrNoRoom}, {unix.EIO, unix.EIO},
	} {
		d := sparse(t, t.TempDir(), 1<<20)
		d.punch = func(int, int64, int64) error { return c.err }
		err := NewStats(d).Discard(3, 2)
		if !errors.Is(err, c.want) || (c.want != ErrNoDiscard && errors.Is(err, ErrNoDiscard)) {
			t.Errorf("%v: %v, want %v", c.err, err, c.want)
		}
	}
	d := sparse(t, t.TempDir(), 1<<20)
	for _, a := range []uint64{255, 257} {
		if err := d.Discard(a, 2); !errors.Is(err, ErrRange) {
			t.Errorf("blocks from %d on: %v", a, err)
		}
	}
	d.lost.Store(&Error{Err: ErrLost})
	if err := d.Discard(0, 1); !errors.Is(err, ErrLost) {
		t.Errorf("a lost image: %v", err)
	}
	thick := sparse(t, t.TempDir(), 1<<20)
	if err := thick.Preallocate(); err != nil {
		t.Skip(err)
	}
	if err := thick.Discard(0, 1); !errors.Is(err, ErrNoDiscard) {
		t.Errorf("a preallocated image: %v", err)
	}
	d.Close()
	ro, err := OpenFile(d.Path(), FileOptions{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer ro.Close()
	if err := ro.Discard(0, 1); !errors.Is(err, ErrReadOnly) {
		t.Errorf("opened read-only: %v", err)
	}
}

// A block device gives zeros, too.
func TestDiscardDevice(t *testing.T) {
	path := filepath.Join(t.TempDir(), "v.img")
	if err := os.WriteFile(path, bytes.Repeat([]byte{7}, 4<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := OpenFile(hosttest.Loop(t, path), FileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := errors.Join(d.Discard(100, 300), d.Barrier()); errors.Is(err, ErrNoDiscard) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	got := blocksOf(1024, nil)
	if err := d.ReadAt(0, got); err != nil {
		t.Fatal(err)
	}
	for i, b := range got {
		want := byte(7)
		if 100 <= i && i < 400 {
			want = 0
		}
		if !bytes.Equal(b, bytes.Repeat([]byte{want}, BlockSize)) {
			t.Fatal(fmt.Sprint("block ", i))
		}
	}
}
