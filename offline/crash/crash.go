// Package crash explores what a crash of the machine may leave of a volume, with the real code on a simulated device.
//
// A workload is a sequence of steps: operations, as NFS or a local mount does them, and what makes them durable. It
// runs once, and the device records its writes and barriers. Then, for each of these, the machine crashes after it: of
// what no barrier covered, each block may be old or new, or a mixture of sectors. Each such image is recovered, now and
// then with a crash within the recovery, too. Then these must hold:
//
//   - the state is one that there was: after the last step that was acknowledged as durable, or a later one;
//   - the checker, which shares no code with the file system, finds nothing wrong, and all contents match their codes;
//   - the volume can be used, and is as sound after that.
//
// Sequences of one and two operations over a small name space are tried all, those of three by samples. That these
// find most of what can go wrong was seen by CrashMonkey and ACE (Mohan et al., OSDI 2018).
//
// Several clients at a time are judged by the orders of their steps that are possible (clients.go).
//
// Now and then a block decays, too, or cannot be read (media.go). Then there is an error, or what would be there
// without that.
//
// It leaves out what one operation of several transactions shows in the middle (the steps are small enough for one);
// tests of package fs do that.
//
//	crash.go   what is explored, side by side
//	steps.go   the steps, and their text
//	lists.go   access lists of steps
//	flags.go   flags of steps, and beside the plain model
//	space.go   all sequences of so many operations
//	possible.go which of them can be done
//	run.go     one sequence, recorded
//	brake.go   a log that is full
//	clients.go several clients at a time, and what may be there after a crash of these
//	judge.go   one image, recovered and judged
//	media.go   the same with a block that is lost
//	equal.go   whether two were recovered to the same
//	foreseen.go whether one will be recovered to what was judged before
//	tree.go    what can be seen of a volume
//	finding.go what was found: saved, made smaller, shown again
package crash

import (
	"context"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"tansy/disk"
)

// Options say what is explored. The zero value explores all sequences of one operation.
type Options struct {
	Length  int    // operations of a sequence, 1 to 3; 0: 1
	Seed    uint64 // of the order of sequences, of the images, and of the samples
	Images  int    // the most for each moment, without those of crashes within recovery; 0: 4
	Steps   []Step // if there are any, this sequence alone is tried, again and again
	Clients int    // if not 0, so many at a time do two operations each, drawn at random, up to Limit times
	Workers int    // sequences at a time; 0: one for each processor

	// Limit ends the exploration after so many sequences; 0: when there are no more.
	Limit uint64

	// Device, if it is not nil, stands between the volume and the simulated device. With a device that does not keep
	// its promises the exploration has to find something.
	Device func(disk.Disk) disk.Disk

	// Progress is told what was done so far, by one goroutine at a time, a few times a second; nil: nobody is.
	Progress func(Count)
}

// Count is how much was explored.
type Count struct {
	Sequences  uint64 // tried
	All        uint64 // there are
	Impossible uint64 // of those tried, and not run: an operation would be refused, as that of a name that is not there
	Moments    uint64 // after which the machine crashed
	Images     uint64 // recovered and judged, with those of crashes within recovery
	Same       uint64 // not judged, as one of the same sequence had the same blocks
	Foreseen   uint64 // of the images: what comes of them was known before
	Equal      uint64 // of the images: recovered to what another one was, which was read and checked
	States     uint64 // different ones that were recovered
	Damaged    uint64 // of the images: with a block that the medium has lost
	Refused    uint64 // of these: that was not opened
	Partly     uint64 // of these: of which something could not be read
}

// again is how often a sequence of Options.Steps is tried: what runs in the background does not come at the same time
// twice.
const again = 20

// Explore tries sequences until all were tried, ctx ends, or something is found. The finding is nil if nothing was. The
// error is that of ctx, or says why nothing could be tried.
func Explore(ctx context.Context, o Options) (Count, *Finding, error) {
	s := space(max(o.Length, 1))
	all, at := s.size(), s.at
	switch {
	case len(o.Steps) > 0:
		all, at = again, func(uint64) []Step { return o.Steps }
	case o.Clients > 0:
		all, at = math.MaxUint32, nil
	}
	limit := all
	if o.Limit > 0 {
		limit = min(limit, o.Limit)
	}
	starts, err := startAll()
	if err != nil {
		return Count{}, nil, err
	}
	x := &explorer{options: o, starts: starts, all: all, states: map[uint64]struct{}{}}
	order := permutation(all, o.Seed)
	workers := o.Workers
	if workers == 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	var next atomic.Uint64
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for ctx.Err() == nil && x.found.Load() == nil {
				n := next.Add(1) - 1
				if n >= limit {
					return
				}
				if at == nil {
					x.try(nil, n)
				} else {
					x.try(at(order(n)), order(n))
				}
			}
		})
	}
	wg.Wait()
	x.report(true)
	if f := x.found.Load(); f != nil {
		return x.count, f, nil
	}
	return x.count, nil, ctx.Err()
}

// explorer is an exploration.
type explorer struct {
	options Options
	starts  map[uint64]*disk.Sim // by their sizes
	all     uint64
	found   atomic.Pointer[Finding]

	mu     sync.Mutex
	count  Count
	states map[uint64]struct{} // by their hashes
	told   time.Time
}

// try explores a sequence, or what some clients do.
func (x *explorer) try(steps []Step, n uint64) {
	r := rand.New(rand.NewPCG(x.options.Seed, n))
	blocks, w := uint64(roomy), work{}
	if x.options.Clients > 0 {
		w.clients = drawn(x.options.Clients, r)
	} else {
		blocks, w.steps = placed(steps, len(x.options.Steps) > 0, r)
	}
	c, f := judgeAll(x.starts[blocks], w, x.options, r)
	x.mu.Lock()
	c.Sequences++
	x.count.Add(c.Count)
	for s := range c.states {
		x.states[s] = struct{}{}
	}
	x.count.States = uint64(len(x.states))
	x.mu.Unlock()
	if f != nil {
		x.found.CompareAndSwap(nil, f)
	}
	x.report(false)
}

// Add adds what another exploration has counted. States that both had count twice.
func (c *Count) Add(d Count) {
	c.Sequences += d.Sequences
	c.Impossible += d.Impossible
	c.Moments += d.Moments
	c.Images += d.Images
	c.Same += d.Same
	c.Foreseen += d.Foreseen
	c.Equal += d.Equal
	c.All += d.All
	c.Damaged += d.Damaged
	c.Refused += d.Refused
	c.Partly += d.Partly
	c.States += d.States
}

// report tells what was done so far.
func (x *explorer) report(end bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.count.All = x.all
	if now := time.Now(); x.options.Progress != nil && (end || now.Sub(x.told) > 250*time.Millisecond) {
		x.told = now
		x.options.Progress(x.count)
	}
}

// permutation is an order of the numbers below n: each comes once. Seed 0 leaves them as they are.
func permutation(n, seed uint64) func(uint64) uint64 {
	if seed == 0 || n < 3 {
		return func(i uint64) uint64 { return i }
	}
	r := rand.New(rand.NewPCG(seed, n))
	begin, step := r.Uint64N(n), 1+r.Uint64N(n-1)
	for gcd(step, n) != 1 {
		step = 1 + r.Uint64N(n-1)
	}
	return func(i uint64) uint64 { return (begin + i*step) % n }
}

func gcd(a, b uint64) uint64 {
	for b > 0 {
		a, b = b, a%b
	}
	return a
}
