package nbd

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"tansy/disk"
	"tansy/disk/disktest"
	"tansy/test/kit/nbdtest"
)

// may tells which contents of each block a crash may leave: the first is what the last barrier covered, then come
// those that were written since.
type may [][][]byte

// TestCrash: a server that loses, or tears, what was not flushed leaves every block as the last barrier covered it, or
// as it was written since.
func TestCrash(t *testing.T) {
	for _, behind := range []bool{false, true} {
		for _, flags := range []uint16{nbdtest.All, nbdtest.HasFlags | nbdtest.Flush} {
			crash(t, flags, behind)
		}
	}
}

func crash(t *testing.T, flags uint16, behind bool) {
	const blocks = 8
	guessed := 0
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 5))
		sim := disk.NewSim(blocks * disk.BlockSize)
		s := nbdtest.Server{Flags: flags, Least: 1, Preferred: 1, Most: 3 * disk.BlockSize}
		d := device(t, s.Start(t, sim), Options{WriteBehind: behind})
		left := make(may, blocks)
		for a := range left {
			left[a] = disktest.Vector(1)
		}
		for n := range 60 {
			a := r.Uint64N(blocks)
			switch k := 1 + r.IntN(int(blocks-a)); {
			case n%20 < 10 && n%2 == 0, n%20 >= 10 && r.IntN(3) > 0: // often, as a journal does it
				if r.IntN(4) == 0 && d.Discards() {
					must(t, d.Discard(a, 1))
					left[a] = append(left[a], disktest.Vector(1)[0])
					break
				}
				bufs := disktest.Pattern(k, r.Uint64())
				must(t, d.WriteAt(a, bufs))
				for i, b := range bufs {
					left[a+uint64(i)] = append(left[a+uint64(i)], b)
				}
			default:
				must(t, d.Barrier())
				for a, all := range left {
					left[a] = all[len(all)-1:]
				}
			}
			for _, choice := range []disk.Choice{disk.LoseAll, disk.KeepAll, disk.RandomChoice(r, true)} {
				left.check(t, sim.Crash(choice))
			}
			if t.Failed() {
				t.Fatalf("seed %d, after operation %d", seed, n)
			}
		}
		for _, q := range s.Requests() {
			if q.Command == nbdtest.Write && q.Flags != 0 {
				guessed++
			}
		}
		must(t, d.Close())
	}
	if offered := flags&nbdtest.FUA != 0; offered != (guessed > 0) {
		t.Errorf("flags %#x: %d writes with FUA", flags, guessed)
	}
}

func (left may) check(t *testing.T, after *disk.Sim) {
	for a, all := range left {
		got := disktest.Vector(1)
		must(t, after.ReadAt(uint64(a), got))
		for lo := 0; lo < disk.BlockSize; lo += disk.SectorSize {
			if !slices.ContainsFunc(all, func(b []byte) bool { return bytes.Equal(b[lo:lo+disk.SectorSize], got[0][lo:lo+disk.SectorSize]) }) {
				t.Errorf("block %d: a sector is what was neither durable nor written since", a)
				break
			}
		}
	}
}

// TestCrashBesideOthers: a barrier covers what its caller wrote, whatever others do meanwhile.
func TestCrashBesideOthers(t *testing.T) {
	for seed := range uint64(40) {
		sim := disk.NewSim(disktest.Blocks * disk.BlockSize)
		var s nbdtest.Server
		d := device(t, s.Start(t, sim), Options{WriteBehind: seed%2 == 1})
		var wg sync.WaitGroup
		var mu sync.Mutex
		for g := range uint64(4) {
			wg.Go(func() {
				r := rand.New(rand.NewPCG(seed, g))
				for i := range uint64(30) {
					want := disktest.Pattern(2, g<<8|i)
					if err := d.WriteAt(g*2, want); err != nil {
						t.Error(err)
						return
					}
					if r.IntN(3) == 0 {
						continue
					}
					if err := d.Barrier(); err != nil {
						t.Error(err)
						return
					}
					got := disktest.Vector(2)
					mu.Lock() // crashes cost memory
					err := sim.Crash(disk.LoseAll).ReadAt(g*2, got)
					mu.Unlock()
					if err != nil || !slices.EqualFunc(got, want, bytes.Equal) {
						t.Errorf("seed %d: what was written before the barrier is lost", seed)
						return
					}
				}
			})
		}
		wg.Wait()
		must(t, d.Close())
	}
}

// TestOneRoundTrip: who writes once and wants a barrier, again and again, gets it with one request.
func TestOneRoundTrip(t *testing.T) {
	var s nbdtest.Server
	sim := disk.NewSim(100 * disk.BlockSize)
	d := device(t, s.Start(t, sim), Options{})
	for i := range uint64(10) {
		must(t, d.WriteAt(i, disktest.Pattern(1, i)))
		must(t, d.Barrier())
	}
	if n := s.Count(nbdtest.Flushing); n != 2 { // that of Open, and that of the first barrier
		t.Errorf("%d flushes", n)
	}
	// Two writes: the guess is wrong once, and the next time none is made.
	for range 2 {
		must(t, d.WriteAt(1, disktest.Pattern(1, 1)))
		must(t, d.WriteAt(2, disktest.Pattern(1, 2)))
		must(t, d.Barrier())
	}
	last := s.Requests()
	last = last[len(last)-3:]
	if last[0].Flags != 0 || last[1].Flags != 0 || last[2].Command != nbdtest.Flushing {
		t.Errorf("the last requests were %v", last)
	}
}

// TestLateWrite: a flush that begins beside a write does not cover it.
func TestLateWrite(t *testing.T) {
	var b writes
	b.init(false, false)
	flushes := 0
	flush := func() error { flushes++; return nil }
	begin := func(b *writes) *write { return b.begin(0, 1, 1, true) }
	end := func(b *writes, w *write) { b.end(w, 0, nil, false) }
	end(&b, begin(&b))
	late := begin(&b) // under way
	must(t, b.barrier(flush))
	end(&b, late)
	must(t, b.barrier(flush))
	must(t, b.barrier(flush))
	if flushes != 2 {
		t.Errorf("%d flushes, want 2", flushes)
	}
	// FUA would be for nothing, then: the next barrier has to flush.
	var guess writes
	guess.init(true, false)
	begin(&guess)
	must(t, guess.barrier(func() error { return nil }))
	if begin(&guess).Fua {
		t.Error("FUA beside a write that has none")
	}
	// The same of a write that begins during the flush.
	end(&b, begin(&b))
	must(t, b.barrier(func() error { end(&b, begin(&b)); return nil }))
	must(t, b.barrier(flush))
	if flushes != 3 {
		t.Errorf("%d flushes, want 3", flushes)
	}
}
