package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"tansy/disk"
)

// The tests here run a history of commits on a device that records it, and then look
// at what a crash at any moment of it leaves.

var quiet = Options{Log: slog.New(slog.DiscardHandler), Linger: time.Hour}

// small is a log that wraps round all the time.
var small = Params{Start: 1, Units: 4, Ring: MinRing, Key: [32]byte{7}, UUID: [16]byte{9}}

// homeBlocks is the number of home blocks that are used.
const homeBlocks = 64

// coded is p with a tree of codes for n home blocks.
func coded(p Params, n uint64) Params {
	p.Pages, _ = PagesFor(n)
	p.Start += 2 * p.Pages
	return p
}

// trees are the sizes of the tree of codes that histories run with, by home blocks: none, one page, two levels, three.
var trees = []Params{small, coded(small, homeBlocks), coded(small, 600), coded(small, 70_000)}

// stride is the distance of the home blocks that are used: they are in many pages of the tree.
func stride(p Params) uint64 {
	if p.Pages <= 1 {
		return 1
	}
	return (254*p.Pages - 252) / homeBlocks
}

// used is the a-th home block that is used.
func used(p Params, a uint64) uint64 { return p.Home() + a*stride(p) }

// sizeOf is the size of a device for p.
func sizeOf(p Params) uint64 {
	if p.Pages <= 1 {
		return p.Home() + homeBlocks
	}
	return p.Home() + 254*p.Pages - 252 // the least that so many pages are for
}

// A history is commits in order: history[i] sets blocks to values.
type history []map[uint64]uint64

func newHistory(r *rand.Rand, n int) history {
	h := make(history, n)
	for i := range h {
		h[i] = map[uint64]uint64{}
		for k := 1 + r.IntN(6); k > 0; k-- {
			h[i][uint64(r.IntN(homeBlocks))] = uint64(i + 1)
		}
		if r.IntN(12) == 0 { // now and then a large one: that fills its unit, that just does not fit, of all blocks
			for a := range []uint64{UnitBlocks - 1, UnitBlocks, homeBlocks}[r.IntN(3)] {
				h[i][a] = uint64(i + 1)
			}
		}
	}
	return h
}

// state is the value of each block after the first n commits.
func (h history) state(n int) (s [homeBlocks]uint64) {
	for _, c := range h[:n] {
		for a, v := range c {
			s[a] = v
		}
	}
	return s
}

// contents is a block that says v everywhere.
func contents(v uint64) []byte {
	b := make([]byte, disk.BlockSize)
	for i := 0; i < len(b); i += 8 {
		binary.LittleEndian.PutUint64(b[i:], v)
	}
	return b
}

func (h history) writes(p Params, i int) (ws []Write) {
	for a, v := range h[i] {
		ws = append(ws, Write{used(p, a), contents(v)})
	}
	return ws
}

// readState reads all blocks, and fails the test on a torn one.
func readState(t *testing.T, j *Journal, p Params) (s [homeBlocks]uint64) {
	t.Helper()
	buf := make([]byte, disk.BlockSize)
	for a := range s {
		if err := j.Read(used(p, uint64(a)), buf); err != nil {
			t.Fatal(err)
		}
		s[a] = binary.LittleEndian.Uint64(buf)
		if !bytes.Equal(buf, contents(s[a])) {
			t.Fatalf("block %d is torn", a)
		}
	}
	return s
}

// prefix is how many commits of h make up s, at least lo; -1 = none do.
func (h history) prefix(s [homeBlocks]uint64, lo int) int {
	for n := len(h); n >= lo; n-- {
		if h.state(n) == s {
			return n
		}
	}
	return -1
}

func formatted(t *testing.T, p Params) *disk.Sim {
	t.Helper()
	d := disk.NewSim(sizeOf(p) * disk.BlockSize)
	if err := Format(d, p); err != nil {
		t.Fatal(err)
	}
	return d
}

// recovered opens d and returns the state it finds.
func recovered(t *testing.T, d disk.Disk, p Params) [homeBlocks]uint64 {
	t.Helper()
	j, err := Open(d, p, quiet)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	return readState(t, j, p)
}

// Every crash leaves a prefix of the history with all that was acknowledged; so does
// a crash within the recovery, and the same prefix.
func TestCrash(t *testing.T) {
	for seed := int64(1); seed <= 8/few; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			testCrash(t, seed, trees[seed%4])
		})
	}
}

func testCrash(t *testing.T, seed int64, p Params) {
	r := rand.New(rand.NewPCG(uint64(seed), 0))
	h := newHistory(r, 60)
	d := formatted(t, p)
	d.Record()
	j, err := Open(d, p, quiet)
	if err != nil {
		t.Fatal(err)
	}
	type ack struct {
		ops uint64
		n   int
	}
	var acks []ack // after ops operations the first n commits were acknowledged
	first := d.Ops()
	for i := range h {
		wait := r.IntN(3) == 0
		if err := j.Commit(h.writes(p, i), wait); err != nil {
			t.Fatal(err)
		}
		if wait {
			acks = append(acks, ack{d.Ops(), i + 1})
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	for n := first; n <= d.Ops(); n++ {
		lo := 0
		for _, a := range acks {
			if a.ops <= n {
				lo = a.n
			}
		}
		for img := range d.At(n).Crashes(3, uint64(seed)+n, true) {
			img.Record()
			s := recovered(t, img, p)
			got := h.prefix(s, lo)
			if got < 0 {
				t.Fatalf("seed %d: crash after operation %d: recovered %v, which is no prefix from %d commits on", seed, n, s, lo)
			}
			again := img.At(r.Uint64N(img.Ops() + 1)).Crash(disk.RandomChoice(r, true))
			if s2 := recovered(t, again, p); s2 != s {
				t.Fatalf("seed %d: crash after operation %d: %v after a recovery that crashed, %v without", seed, n, s2, s)
			}
		}
	}
}

// Life goes on after a crash, again and again, with several clients at once: each keeps
// writing one number to its own blocks, which always agree.
func TestCrashLives(t *testing.T) {
	const clients, per = 4, 5
	for seed := int64(1); seed <= 12/few; seed++ {
		r := rand.New(rand.NewPCG(uint64(seed), 0))
		p := trees[seed%4]
		var d disk.Disk = formatted(t, p)
		var last [clients]uint64
		for life := 0; life < 5; life++ {
			sim := d.(*disk.Sim)
			sim.FreezeAfter(sim.Ops()+uint64(1+r.IntN(200)), false)
			acked := last
			started := last
			if j, err := Open(sim, p, quiet); err == nil {
				var wg sync.WaitGroup
				for c := 0; c < clients; c++ {
					wg.Add(1)
					go func() {
						defer wg.Done()
						for v := last[c] + 1; ; v++ {
							var ws []Write
							for k := 0; k < per; k++ {
								ws = append(ws, Write{used(p, uint64(k*clients+c)), contents(v)})
							}
							started[c] = v
							wait := v%3 == 0
							if err := j.Commit(ws, wait); err != nil {
								if !errors.Is(err, ErrReadOnly) || !errors.Is(err, disk.ErrFrozen) {
									t.Error(err)
								}
								return
							}
							if wait {
								acked[c] = v
							}
						}
					}()
				}
				wg.Wait()
				j.Close()
			} else if !errors.Is(err, disk.ErrFrozen) {
				t.Fatal(err)
			}
			d = sim.Crash(disk.RandomChoice(r, true))
			s := recovered(t, d.(*disk.Sim).Crash(disk.KeepAll), p)
			for c := 0; c < clients; c++ {
				for k := 1; k < per; k++ {
					if s[k*clients+c] != s[c] {
						t.Fatalf("seed %d life %d: client %d: %d and %d", seed, life, c, s[c], s[k*clients+c])
					}
				}
				if s[c] < acked[c] || s[c] > started[c] {
					t.Fatalf("seed %d life %d: client %d: %d, acknowledged %d, started %d", seed, life, c, s[c], acked[c], started[c])
				}
				last[c] = s[c]
			}
		}
	}
}

// A device that fails at any operation: errors, no panic, nothing acknowledged that is
// not there afterwards, and reads go on.
func TestDeviceErrors(t *testing.T) {
	boom := errors.New("boom")
	for n := uint64(0); n < 120; n += few {
		r := rand.New(rand.NewPCG(uint64(int64(n)), 0))
		h := newHistory(r, 25)
		p := trees[n/2%4]
		sim := formatted(t, p)
		f := disk.NewFault(sim, n, nil)
		f.SetPlan(disk.FailFrom(n, boom, disk.Write, disk.Barrier))
		if n%2 == 0 {
			f.SetPlan(disk.FailAt(n, boom)) // the next one would succeed
		}
		acked, accepted, appended := 0, 0, 0
		j, err := Open(f, p, quiet)
		if err != nil {
			if !errors.Is(err, boom) {
				t.Fatal(err)
			}
		} else {
			for i := range h {
				wait := r.IntN(2) == 0
				err := j.Commit(h.writes(p, i), wait)
				if err != nil {
					if !errors.Is(err, ErrReadOnly) || !errors.Is(err, boom) {
						t.Fatal(err)
					}
					if err2 := j.Commit(h.writes(p, i), wait); !errors.Is(err2, ErrReadOnly) {
						t.Fatalf("a commit after the failure: %v", err2)
					}
					if wait { // it may be in the history
						appended = max(appended, i+1)
					}
					break
				}
				accepted, appended = i+1, i+1
				if wait {
					acked = i + 1
				}
			}
			f.SetPlan(nil)
			if s := readState(t, j, p); h.prefix(s, 0) < 0 {
				t.Fatalf("operation %d failed: reads give %v", n, s)
			}
			err = j.Close()
			if err == nil { // the one that was refused may not have come into the history at all
				acked = accepted
			}
		}
		s := recovered(t, sim.Crash(disk.RandomChoice(r, true)), p)
		if got := h.prefix(s, acked); got < 0 || got > appended {
			t.Fatalf("operation %d failed: found %d commits, acknowledged %d, appended %d", n, got, acked, appended)
		}
	}
}
