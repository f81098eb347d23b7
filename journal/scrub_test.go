package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"tansy/disk"
	"tansy/internal/gen/journal/journalthreads"
	"tansy/test/kit/replay"
)

// scrubbed is what a pass over j finds; it must come to its end.
func scrubbed(t *testing.T, j *Journal) (ScrubCounts, []Finding) {
	t.Helper()
	n, found, err := scrubAll(context.Background(), j)
	if err != nil {
		t.Fatal(err)
	}
	return n, found
}

func scrubAll(ctx context.Context, j *Journal) (ScrubCounts, []Finding, error) {
	var found []Finding
	s := Scrub{
		Before:   func(context.Context, uint64) error { return nil },
		Found:    func(f Finding) { found = append(found, f) },
		Progress: func(ScrubCounts) {},
	}
	n, err := s.Run(ctx, j)
	return n, found, err
}

// opened opens the volume and reads its bitmap.
func (w *lived) opened(t *testing.T, d disk.Disk) *Journal {
	t.Helper()
	j, err := Open(d, w.p, quiet)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// TestScrubFindsDamage: each block that has a code is damaged under a journal that is open, in each way; a scrub finds
// it and nothing else, and when it is as before, nothing.
func TestScrubFindsDamage(t *testing.T) {
	seed := replay.Seed(t)
	r := rand.New(rand.NewPCG(seed, 0))
	p := bitmappedFor(64, 600)
	w := live(t, r, p, 30)
	j := w.opened(t, w.d)
	defer j.Close()
	if n, found := scrubbed(t, j); len(found) > 0 || n.Good < p.Pages || n.Pending+n.Damaged+n.Unchecked > 0 {
		t.Fatal(n, found)
	}
	tries := 0
	pages := map[uint64]int{}
	for a := p.Start - 2*p.Pages; a < w.d.Size(); a++ {
		if a == p.Start {
			a = p.Home()
		}
		tree := a < p.Start
		for _, h := range harms {
			if !tree && few > 1 && r.IntN(few) > 0 {
				continue
			}
			whole := block(t, w.d, a)
			other := p.Start - 1 - r.Uint64N(2*p.Pages)
			if !tree {
				other = p.Bitmap + r.Uint64N(p.Limit-p.Bitmap)
			}
			bad := h.do(r, slices.Clone(whole), block(t, w.d, other), block(t, w.older, a))
			if bytes.Equal(bad, whole) {
				continue
			}
			tries++
			put(t, w.d, a, bad)
			n, found := scrubbed(t, j)
			put(t, w.d, a, whole)
			what := fmt.Sprintf("block %d %s: %v, found %v", a, h.name, n, found)
			if tree { // one place of a page counts
				if len(found) > 0 {
					a0 := a - (a-(p.Start-2*p.Pages))%2
					if len(found) != 1 || found[0].Block != a0 || !found[0].InMemory || !errors.Is(found[0].Err, ErrNotAsWritten) {
						t.Error(what)
					}
					pages[a0]++
				}
				continue
			}
			free := a >= p.First && a < p.Limit && !w.v.used[a-p.First]
			if free != (len(found) == 0) {
				t.Fatal(what)
			}
			// The bitmap is read by the scrub itself, so it is in memory.
			if !free && (len(found) != 1 || found[0].Block != a || !errors.Is(found[0].Err, ErrNotAsWritten) || found[0].InMemory != (a == p.Bitmap) || n.Damaged != 1) {
				t.Error(what)
			}
			if slices.Contains(j.Damaged(), a) != (!free && a != p.Bitmap) {
				t.Errorf("%s; listed: %v", what, j.Damaged())
			}
		}
	}
	if len(pages) == 0 {
		t.Error("no damage of a page was found")
	}
	if _, found := scrubbed(t, j); len(found) > 0 {
		t.Error(found)
	}
	t.Logf("%d damages, %d of %d pages found damaged", tries, len(pages), p.Pages)
}

// TestScrubPageNotInMemory: what has its code in a damaged page cannot be checked, and the page is told of once.
func TestScrubPageNotInMemory(t *testing.T) {
	r := rand.New(rand.NewPCG(replay.Seed(t), 0))
	p := bitmappedFor(64, 600)
	w := live(t, r, p, 30)
	first := p.Start - 2*p.Pages
	for a := first; a < first+2; a++ { // of the page with the codes of the first home blocks
		put(t, w.d, a, make([]byte, disk.BlockSize))
	}
	j := w.opened(t, w.d)
	defer j.Close()
	n, found := scrubbed(t, j)
	if len(found) != 1 || found[0].Block != first || found[0].InMemory || n.Damaged != 1 || n.Unchecked < 100 {
		t.Fatal(n, found)
	}
}

// TestScrubLeavesTheCacheAlone: but for the bitmap.
func TestScrubLeavesTheCacheAlone(t *testing.T) {
	r := rand.New(rand.NewPCG(replay.Seed(t), 0))
	p := bitmappedFor(64, 600)
	w := live(t, r, p, 30)
	j := w.opened(t, w.d)
	defer j.Close()
	scrubbed(t, j)
	if s := j.Stats(); s.Cached != 1 {
		t.Error(s.Cached, "blocks are in the cache")
	}
}

// TestScrubInMemory: a block that the medium has lost, and that is in the cache, is read from there, and whole again
// when it was written.
func TestScrubInMemory(t *testing.T) {
	r := rand.New(rand.NewPCG(replay.Seed(t), 0))
	p := bitmappedFor(64, 600)
	w := live(t, r, p, 30)
	j := w.opened(t, w.d)
	defer j.Close()
	a, b := p.Bitmap+1, make([]byte, disk.BlockSize)
	if err := j.Read(a, b); err != nil {
		t.Fatal(err)
	}
	put(t, w.d, a, bytes.Repeat([]byte{1}, disk.BlockSize))
	if n, found := scrubbed(t, j); len(found) != 1 || found[0].Block != a || !found[0].InMemory || n.Damaged != 1 || len(j.Damaged()) > 0 {
		t.Fatal(n, found, j.Damaged())
	}
	if err := j.Read(a, b); err != nil {
		t.Fatal(err)
	}
	if err := j.Commit([]Write{{a, b}}, true); err != nil {
		t.Fatal(err)
	}
	if n, found := scrubbed(t, j); len(found) > 0 || n.Pending == 0 {
		t.Fatal("about to be written:", n, found)
	}
	journalthreads.Drain(j.core)
	if n, found := scrubbed(t, j); len(found) > 0 || n.Pending > 0 {
		t.Fatal("written:", n, found)
	}
}

// TestScrubUnreadable: a block that the device cannot read is told with the device's reason, and the rest is checked.
func TestScrubUnreadable(t *testing.T) {
	r := rand.New(rand.NewPCG(replay.Seed(t), 0))
	p := bitmappedFor(64, 600)
	w := live(t, r, p, 30)
	boom := errors.New("boom")
	whole, _ := scrubbed(t, w.opened(t, w.d.Crash(disk.KeepAll)))
	for _, a := range []uint64{p.Home(), p.Home() + 70, p.Bitmap - 1} {
		f := disk.NewFault(w.d.Crash(disk.KeepAll), 1, nil)
		j := w.opened(t, f)
		f.SetPlan(func(op disk.Op, _ *rand.Rand) disk.Harm {
			if op.Kind == disk.Read && op.Addr <= a && a < op.Addr+uint64(op.Blocks) {
				return disk.Harm{Err: boom}
			}
			return disk.Harm{}
		})
		n, found := scrubbed(t, j)
		if len(found) != 1 || found[0].Block != a || !errors.Is(found[0].Err, boom) || n.Good != whole.Good-1 || len(j.Damaged()) > 0 {
			t.Errorf("block %d: %v, found %v; of %v", a, n, found, whole)
		}
		_ = j.Close()
	}
}

// TestScrubEnds: when its context is done, before the next read; and when another has opened the volume, whatever that
// writes.
func TestScrubEnds(t *testing.T) {
	r := rand.New(rand.NewPCG(replay.Seed(t), 0))
	p := bitmappedFor(64, 600)
	w := live(t, r, p, 30)
	j := w.opened(t, w.d)
	ctx, cancel := context.WithCancel(context.Background())
	calls := 0
	s := Scrub{
		Before:   func(context.Context, uint64) error { calls++; cancel(); return nil },
		Found:    func(f Finding) { t.Error(f) },
		Progress: func(ScrubCounts) {},
	}
	if _, err := s.Run(ctx, j); err != context.Canceled || calls != 1 {
		t.Error(err, calls)
	}
	other := w.opened(t, w.d)
	readVolume(t, other, p)
	if err := w.change(r, other, 20); err != nil {
		t.Fatal(err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	if n, found, err := scrubAll(context.Background(), j); !errors.Is(err, ErrNotOwner) || len(found) > 0 {
		t.Error("another has the volume:", n, found, err)
	}
	_ = j.Close()
}

// TestScrubHonest: on a device that is honest nothing is ever called damaged, whatever is committed, installed, and
// freed meanwhile, and whatever a crash before has left in free blocks.
func TestScrubHonest(t *testing.T) {
	seed := replay.Seed(t)
	rounds := 12
	if testing.Short() {
		rounds = 4
	}
	if *long {
		rounds = 400
	}
	p := bitmappedFor(64, 600)
	d := disk.NewSim(deviceOf(p) * disk.BlockSize)
	if err := Format(d, p); err != nil {
		t.Fatal(err)
	}
	var passes, good, pending, torn atomic.Uint64
	for round := range rounds {
		r := rand.New(rand.NewPCG(seed, uint64(round)))
		d.Record()
		first := d.Ops()
		j, err := Open(slow{d, p}, p, quiet)
		if err != nil {
			t.Fatal(err)
		}
		v := readVolume(t, j, p)
		for i, u := range v.used {
			if !u && j.Read(p.First+uint64(i), make([]byte, disk.BlockSize)) != nil {
				torn.Add(1)
			}
		}
		ctx, stop := context.WithCancel(context.Background())
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				for {
					n, found, err := scrubAll(ctx, j)
					if len(found) > 0 {
						t.Errorf("round %d: %v", round, found)
					}
					if err != nil {
						return
					}
					passes.Add(1)
					good.Add(n.Good)
					pending.Add(n.Pending)
				}
			})
		}
		at := 0
		for i := range 150 {
			ws, bulk := v.change(r, p, uint64(1000*round+i+1), &at)
			if err := commit(r, j, ws, bulk, r.IntN(3) == 0); err != nil {
				t.Fatal(err)
			}
		}
		stop()
		wg.Wait()
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		if r.IntN(4) > 0 { // it crashed on the way
			d = d.At(first + r.Uint64N(d.Ops()-first+1)).Crash(disk.RandomChoice(r, true))
		}
	}
	if passes.Load() == 0 || pending.Load() == 0 {
		t.Errorf("%d passes, %d blocks that were to be written: this tries nothing", passes.Load(), pending.Load())
	}
	t.Logf("%d passes, %d blocks checked, %d that were to be written, %d torn free ones",
		passes.Load(), good.Load(), pending.Load(), torn.Load())
}

// TestScrubHoles: blocks in a hole of the device are checked, and count a share of those that hold something. One that
// was lost there is found.
func TestScrubHoles(t *testing.T) {
	r := rand.New(rand.NewPCG(replay.Seed(t), 0))
	p := bitmappedFor(64, 600)
	w := live(t, r, p, 30)
	cost := func(d disk.Disk, found int) (all uint64) {
		t.Helper()
		j := w.opened(t, d)
		defer j.Close()
		s := Scrub{
			Before:   func(_ context.Context, n uint64) error { all += n; return nil },
			Found:    func(Finding) { found-- },
			Progress: func(ScrubCounts) {},
		}
		n, err := s.Run(context.Background(), j)
		if err != nil || found != 0 {
			t.Errorf("%v, %d findings are missing, %v", err, found, n)
		}
		return all
	}
	full := cost(w.d, 0)
	const n = ScrubRun // of the blocks before those that the bitmap tells of
	empty := holed{w.d, p.Home(), p.Home() + n}
	if got, want := cost(empty, 0), full-n+n/HoleShare; got != want {
		t.Errorf("with a hole of %d blocks a pass counts %d, want %d, without %d", n, got, want, full)
	}
	for a := p.Home(); ; a++ { // a block that has something, of which the device knows nothing any more
		if b := block(t, w.d, a); !bytes.Equal(b, make([]byte, len(b))) {
			put(t, w.d, a, make([]byte, len(b)))
			cost(holed{w.d, a, a + 1}, 1)
			return
		}
	}
}

// holed is a device that has no data in the blocks from a on before end.
type holed struct {
	disk.Disk
	a, end uint64
}

func (d holed) NextData(a uint64) (uint64, error) {
	if a >= d.a && a < d.end {
		a = d.end
	}
	return a, nil
}

// TestScrubPassesOver: blocks of a layout that are not there are not looked at, and do not count; damage of the others
// is found where the layout has it.
func TestScrubPassesOver(t *testing.T) {
	r := rand.New(rand.NewPCG(replay.Seed(t), 0))
	p := bitmappedFor(64, 600)
	w := live(t, r, p, 30)
	whole, _ := scrubbed(t, w.opened(t, w.d.Crash(disk.KeepAll)))
	gap, end := p.Home()+10, p.Home()+10+2*ScrubRun // these are zeros
	pieced := func(d disk.Disk) disk.Disk {
		return disk.NewPieced(d, w.d.Size(), func(a uint64) (there bool, at, n uint64) {
			switch {
			case a < gap:
				return true, a, gap - a
			case a < end:
				return false, 0, end - a
			}
			return true, a, w.d.Size() - a
		})
	}
	j := w.opened(t, pieced(w.d))
	all := j.Scrubbed(w.d.Size())
	reads := uint64(0)
	s := Scrub{
		Before:   func(_ context.Context, n uint64) error { reads += n; return nil },
		Found:    func(f Finding) { t.Error(f) },
		Progress: func(ScrubCounts) {},
	}
	n, err := s.Run(context.Background(), j)
	if err != nil || n.Done() != whole.Done()-(end-gap) {
		t.Errorf("%v, %v; want %d less than %v", n, err, end-gap, whole)
	}
	if want := p.Pages + w.d.Size() - p.Home() - (end - gap); all != want || reads > want+2*p.Pages {
		t.Errorf("%d blocks are there, %d are to be read, want %d", all, reads, want)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	for _, a := range []uint64{gap - 1, end} {
		d := w.d.Crash(disk.KeepAll)
		put(t, d, a, bytes.Repeat([]byte{1}, disk.BlockSize))
		j := w.opened(t, pieced(d))
		if n, found := scrubbed(t, j); len(found) != 1 || found[0].Block != a {
			t.Errorf("block %d: %v, found %v", a, n, found)
		}
		_ = j.Close()
	}
}
