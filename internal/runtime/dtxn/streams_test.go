package dtxn

import (
	"bytes"
	"math/bits"
	"math/rand"
	"slices"
	"testing"

	"tansy/disk"
	"tansy/test/kit/replay"
)

func emptyAlloc(limit uint64) *alloc {
	return newAlloc(Bitmap{First: 10, Limit: limit},
		func(uint64) ([]byte, error) { return make([]byte, disk.BlockSize), nil })
}

// grow takes n bits for a file.
func grow(t *testing.T, a *alloc, owner, near uint64, n int) (took []uint64) {
	t.Helper()
	for range n {
		x, ok, err := a.takeFor(place{owner: owner, near: near})
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		near = x
		took = append(took, x)
	}
	return took
}

// Files that grow side by side, a few blocks at a time, lie in long runs; small ones leave no gaps; and nobody gets
// what is another's.
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

// What is set aside is handed out when there is nothing else, by each way to ask, and comes back when a stream is
// forgotten.
func TestStreamsEnd(t *testing.T) {
	for what, take := range map[string]func(a *alloc) (uint64, bool, error){
		"take":    func(a *alloc) (uint64, bool, error) { return a.take(0) },
		"takeFor": func(a *alloc) (uint64, bool, error) { return a.takeFor(place{owner: 3}) },
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
	n := 0
	for i := range uint64(3 * maxStreams) {
		n += aside(a, 1+i)
	}
	if out := len(a.win[0].out); n == 0 || out != n+3*maxStreams*20 {
		t.Errorf("%d bits are handed out or set aside, %d of them set aside", out, n)
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

// However files grow and transactions fail, all bits are handed out in the end, each once: also where the room is
// narrow, and in pieces.
func TestStreamsLoseNothing(t *testing.T) {
	r := rand.New(rand.NewSource(int64(replay.Seed(t))))
	rounds := 20
	if testing.Short() {
		rounds = 4
	}
	for range rounds {
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
				x, ok, err := a.takeFor(place{owner, 0, uint64(r.Intn(3000)), r.Intn(2) == 0})
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

// On the line of a file its blocks come in order, and before those that an indirect block refers to there is room for
// that, and for those above it.
func TestLine(t *testing.T) {
	next := uint64(0)
	for n := uint64(0); n < 3*512*512; n++ {
		if k := n - 12; n >= 12 && k%512 == 0 {
			next++
			if k == 512 || k >= 512+512*512 && (k-512-512*512)%(512*512) == 0 {
				next++
			}
			if k == 512+512*512 {
				next++
			}
			if at := onLine(n, true); at != next-1 {
				t.Fatalf("what leads to block %d is at %d, not %d", n, at, next-1)
			}
			if m := n + uint64(rand.Intn(512)); onLine(m, true) != onLine(n, true) {
				t.Fatalf("what leads to block %d is elsewhere than what leads to %d", m, n)
			}
		}
		if at := onLine(n, false); at != next {
			t.Fatalf("block %d is at %d, not %d", n, at, next)
		}
		next++
	}
}

// Pieces of a file that come out of order lie as those that come in order, nearly; so do those of files side by side;
// and nobody gets what is another's, also where transactions fail.
func TestPositions(t *testing.T) {
	const piece, underWay = 16, 12
	for _, c := range []struct {
		files uint64
		least int // bits of a run, in the mean
	}{{1, 1200}, {5, 128}, {64, 48}} {
		files, pieces := c.files, 400
		r := rand.New(rand.NewSource(int64(replay.Seed(t))))
		a := emptyAlloc(64 * windowBits)
		lies := make([]map[uint64]uint64, files) // by place on the line
		next, waiting := make([]uint64, files), make([][]uint64, files)
		seen := map[uint64]bool{}
		for range pieces {
			for f := range files {
				for len(waiting[f]) < underWay {
					if r.Intn(10) > 0 { // else it is a hole
						waiting[f] = append(waiting[f], next[f])
					}
					next[f]++
				}
				k := r.Intn(underWay)
				if waiting[f][0]+2*underWay < next[f] {
					k = 0 // it has waited long
				}
				n := waiting[f][k]
				waiting[f] = slices.Delete(waiting[f], k, k+1)
				take := func() (took []uint64) {
					for i := range uint64(piece) {
						x, ok, err := a.takeFor(place{1 + f, 0, piece*n + i, true})
						if !ok || err != nil {
							t.Fatal(ok, err)
						}
						took = append(took, x)
					}
					return took
				}
				if r.Intn(20) == 0 {
					a.done(take(), nil)
				}
				for i, x := range take() {
					if seen[x] {
						t.Fatalf("bit %d is handed out twice", x)
					}
					seen[x] = true
					if lies[f] == nil {
						lies[f] = map[uint64]uint64{}
					}
					lies[f][piece*n+uint64(i)] = x
				}
			}
		}
		taken, runs := 0, len(lies)
		for _, l := range lies {
			for at, x := range l {
				if y, ok := l[at-1]; ok && y != x-1 {
					runs++
				}
			}
			taken += len(l)
		}
		t.Logf("%d files: %d bits in %d runs", files, taken, runs)
		if taken/runs < c.least {
			t.Errorf("%d files: %d bits in %d runs", files, taken, runs)
		}
	}
}

// What is proposed for a block, and for what leads to it, is its place beside the others of the file.
func TestPositionOfHint(t *testing.T) {
	s := newSystem(t)
	must(t, s.Run(false, false, func(x *Txn) error {
		x.owner = 7
		at := func(n uint64, leads bool) uint64 {
			x.Position(n, leads)
			ok, b := x.AllocHint(Blocks, 0)
			if !ok {
				t.Fatal("no block is free")
			}
			return b
		}
		first := at(20, false)
		for _, c := range []struct {
			n     uint64
			leads bool
			where uint64
		}{
			{0, false, first - 21}, {12, true, first - 9}, {12, false, first - 8}, {21, false, first + 1},
			{30, false, first + 10},
		} {
			if b := at(c.n, c.leads); b != c.where {
				t.Errorf("for block %d (what leads there: %v): %d, not %d", c.n, c.leads, b, c.where)
			}
		}
		return nil
	}))
}

// at takes a bit for a place on the line of a file.
func at(t *testing.T, a *alloc, owner, at uint64) uint64 {
	t.Helper()
	x, ok, err := a.takeFor(place{owner, 0, at, true})
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	return x
}

// aside is how many bits are set aside for a file.
func aside(a *alloc, owner uint64) (n int) {
	for _, s := range a.streams {
		if s.owner == owner {
			for _, w := range s.aside {
				n += bits.OnesCount64(w)
			}
		}
	}
	return n
}

// What was skipped keeps its place, whoever comes in between, and however often.
func TestSkipped(t *testing.T) {
	full := bytes.Repeat([]byte{0xFF}, disk.BlockSize)
	clear(full[disk.BlockSize-400:])
	end := newAlloc(Bitmap{First: 10, Limit: 4 * windowBits}, func(w uint64) ([]byte, error) {
		if w == 0 {
			return full, nil
		}
		return make([]byte, disk.BlockSize), nil
	})
	for where, a := range map[string]*alloc{"empty": emptyAlloc(4 * windowBits), "the end of a window": end} {
		const step, steps = 3, 2 * maxStreams
		first := at(t, a, 7, 0)
		for k := uint64(1); k <= steps; k++ {
			if x := at(t, a, 7, k*step); x != first+k*step {
				t.Fatalf("%s: place %d of the line is %d, and place 0 %d", where, k*step, x, first)
			}
		}
		grow(t, a, 8, first, 500)
		for k := range uint64(step * steps) {
			if k%step != 0 {
				if x := at(t, a, 7, k); x != first+k {
					t.Fatalf("%s: place %d of the line is %d, and place 0 %d", where, k, x, first)
				}
			}
		}
	}
}

// What was skipped long ago is anybody's again.
func TestSkippedLongAgo(t *testing.T) {
	a := emptyAlloc(4 * windowBits)
	const taken = 4 * reach
	for k := range uint64(taken) {
		at(t, a, 7, 2*k)
	}
	out := 0
	for _, w := range a.win {
		out += len(w.out)
	}
	if n := aside(a, 7); n == 0 || n > reach || out != taken+n {
		t.Errorf("%d bits are handed out or set aside, %d were taken, and %d are set aside", out, taken, n)
	}
}

// A file that has to go on elsewhere, and is no small one, goes where there is room, not to the next gap.
func TestMoves(t *testing.T) {
	const gaps, room = 400, 20_000 / 64 * 64
	bitmap := make([]byte, disk.BlockSize)
	for i := gaps / 8; i < room/8; i += 2 {
		bitmap[i] = 0xFF
	}
	a := newAlloc(Bitmap{First: 10, Limit: windowBits}, func(uint64) ([]byte, error) { return bitmap, nil })
	for _, x := range grow(t, a, 7, 0, 2000) {
		if x >= gaps && x < room {
			t.Fatalf("it lies in a gap, at %d", x)
		}
	}
}

// What is written here and there in a file lies together, and takes nothing from other files; nor does a file that has
// many lines.
func TestHereAndThere(t *testing.T) {
	a := emptyAlloc(16 * windowBits)
	const others = maxStreams - 4
	for f := range uint64(others) {
		grow(t, a, 1000+f, 0, 20)
	}
	all := func() (n int) {
		for f := range uint64(others) {
			n += aside(a, 1000+f)
		}
		return n
	}
	before := all()
	r := rand.New(rand.NewSource(int64(replay.Seed(t))))
	least, most := ^uint64(0), uint64(0)
	for range 1000 {
		x := at(t, a, 8, uint64(r.Intn(1<<30)))
		least, most = min(least, x), max(most, x)
	}
	if most-least > 2000 {
		t.Errorf("1000 blocks lie between %d and %d", least, most)
	}
	for range 20_000 {
		at(t, a, 9, uint64(r.Intn(100)))
	}
	if n := all(); before == 0 || n != before {
		t.Errorf("%d bits were set aside for files, and when others have written here and there %d", before, n)
	}
}
