package dtxn

import (
	"bytes"
	"math/rand"
	"slices"
	"testing"

	"tansy/disk"
	"tansy/internal/replay"
)

func emptyAlloc(limit uint64) *alloc {
	return newAlloc(Bitmap{First: 10, Limit: limit}, func(uint64) ([]byte, error) { return make([]byte, disk.BlockSize), nil })
}

// grow takes n bits for a file.
func grow(t *testing.T, a *alloc, owner, near uint64, n int) (took []uint64) {
	t.Helper()
	for range n {
		x, ok, err := a.takeFor(owner, near)
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		near = x
		took = append(took, x)
	}
	return took
}

// Files that grow side by side, a few blocks at a time, lie in long runs; small ones leave no gaps; and nobody gets what is another's.
func TestStreams(t *testing.T) {
	const files, pieces, piece = 16, 200, 16
	a := emptyAlloc(8 * windowBits)
	r := rand.New(rand.NewSource(int64(replay.Seed(t))))
	var last [files]uint64
	var runs [files]int
	seen := map[uint64]bool{}
	for range pieces {
		for i := range last {
			owner := uint64(1000 + i)
			if r.Intn(100) == 0 { // a transaction that fails
				a.done(grow(t, a, owner, last[i], 1+r.Intn(piece)), nil)
			}
			for _, x := range grow(t, a, owner, last[i], piece) {
				if seen[x] {
					t.Fatalf("bit %d is handed out twice", x)
				}
				if seen[x] = true; x != last[i]+1 {
					runs[i]++
				}
				last[i] = x
			}
		}
	}
	for i, n := range runs {
		if pieces*piece/n < 128 {
			t.Errorf("file %d: %d bits in %d runs", i, pieces*piece, n)
		}
	}

	a = emptyAlloc(4 * windowBits)
	grow(t, a, 7, 0, 40)
	took := grow(t, a, 7, 0, 20)
	grow(t, a, 8, 0, 20)
	a.done(slices.Clone(took), nil) // comes again
	if again := grow(t, a, 7, 0, 20); !slices.Equal(again, took) {
		t.Errorf("a transaction gets %d, and when it comes again %d", took, again)
	}

	a = emptyAlloc(4 * windowBits)
	for want := uint64(10); want < 5000; want += streamLeast - 1 {
		if took := grow(t, a, want, 0, streamLeast-1); took[0] != want || took[streamLeast-2] != want+streamLeast-2 {
			t.Fatalf("a small file lies at %d, and not behind the one before, at %d", took, want)
		}
	}
}

// What is set aside is handed out when there is nothing else, by each way to ask, and comes back when a stream is forgotten.
func TestStreamsEnd(t *testing.T) {
	for what, take := range map[string]func(a *alloc) (uint64, bool, error){
		"take":    func(a *alloc) (uint64, bool, error) { return a.take(0) },
		"takeFor": func(a *alloc) (uint64, bool, error) { return a.takeFor(3, 0) },
		"takeIn":  func(a *alloc) (uint64, bool, error) { return a.takeIn(a.first, a.limit) },
	} {
		a := emptyAlloc(windowBits)
		n := uint64(0)
		for i := range uint64(20) {
			n += uint64(len(grow(t, a, 100+i, 1000*i, 40)))
		}
		seen := map[uint64]bool{}
		for {
			x, ok, err := take(a)
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
			if seen[x] {
				t.Fatalf("%s: bit %d twice", what, x)
			}
			seen[x] = true
			n++
		}
		if n != windowBits-10 {
			t.Errorf("%s: %d bits of %d were handed out", what, n, windowBits-10)
		}
	}
	a := emptyAlloc(2 * windowBits)
	for i := range uint64(3 * maxStreams) {
		grow(t, a, 1+i, 0, 20)
	}
	aside := 0
	for _, s := range a.streams {
		aside += int(s.end - s.next)
	}
	if out := len(a.win[0].out); aside == 0 || out != aside+3*maxStreams*20 {
		t.Errorf("%d bits are handed out or set aside, %d of them set aside", out, aside)
	}
}

// Where there is little room nothing is set aside; and who has no file gets what is near.
func TestStreamsInNarrowPlaces(t *testing.T) {
	full := make([]byte, disk.BlockSize)
	for i := range full[:disk.BlockSize-disk.BlockSize/16] {
		full[i] = 0xFF
	}
	for _, owner := range []uint64{0, 7} {
		a := newAlloc(Bitmap{First: 10, Limit: windowBits}, func(uint64) ([]byte, error) { return full, nil })
		took := grow(t, a, owner, 0, 100)
		if last := took[99]; last != took[0]+99 {
			t.Error(took)
		} else if x, _, _ := a.take(last); x != last+1 {
			t.Errorf("behind %d: %d", last, x)
		}
	}
}

// However files grow and transactions fail, all bits are handed out in the end, each once: also where the room is narrow, and in pieces.
func TestStreamsLoseNothing(t *testing.T) {
	r := rand.New(rand.NewSource(int64(replay.Seed(t))))
	for range 20 {
		const windows = 3
		var maps [windows][]byte
		free := 0
		for w := range maps {
			maps[w] = bytes.Repeat([]byte{0xFF}, disk.BlockSize)
			for range r.Intn(12) {
				at := r.Intn(disk.BlockSize - 200)
				clear(maps[w][at : at+1+r.Intn(199)])
			}
			free += 8 * bytes.Count(maps[w], []byte{0})
		}
		a := newAlloc(Bitmap{Limit: windows * windowBits}, func(b uint64) ([]byte, error) { return maps[b], nil })
		seen := map[uint64]bool{}
		for len(seen) < free {
			owner, n := uint64(1+r.Intn(10)), 1+r.Intn(40)
			var took []uint64
			for range n {
				x, ok, err := a.takeFor(owner, 0)
				if err != nil {
					t.Fatal(err)
				}
				if !ok {
					break
				}
				if seen[x] {
					t.Fatalf("bit %d twice", x)
				}
				took = append(took, x)
			}
			switch {
			case len(took) == 0:
				t.Fatalf("%d of %d bits were handed out, and there are no more", len(seen), free)
			case r.Intn(3) == 0:
				a.done(took, nil)
			default:
				for _, x := range took {
					seen[x] = true
				}
			}
		}
	}
}
