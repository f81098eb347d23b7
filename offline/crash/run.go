package crash

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"tansy/disk"
	"tansy/fs"
)

// bases are the volumes that sequences work on, by the size of the device in blocks. All are small, so that an image is
// quickly recovered and checked. The first has room for all. The others have room for little more than what is there,
// so that blocks are soon used again; the last can grow.
var bases = map[uint64]base{roomy: {}, tight: {tight: true}, growing: {tight: true, begins: tight, most: 16 << 20}}

const (
	roomy   = 2200
	tight   = 1380
	growing = 1600
)

// base is a volume.
type base struct {
	tight  bool
	begins uint64 // it has so many blocks of the device; 0: all
	most   uint64 // it may have so many bytes; 0: it cannot grow
}

// start makes the volume on a device of so many blocks, with what there is before the first step, all of it durable.
func start(blocks uint64) (*disk.Sim, error) {
	sim, b := disk.NewSim(blocks*disk.BlockSize), bases[blocks]
	var made disk.Disk = sim
	if b.begins > 0 {
		made = disk.NewPrefix(sim, b.begins)
	}
	clock := &steppedClock{}
	if err := fs.Mkfs(made, fs.MkfsOptions{Inodes: 256, Zeroed: true, MaxBytes: b.most, Clock: clock.now}); err != nil {
		return nil, err
	}
	v, err := fs.Open(sim, fs.Options{Clock: clock.now, Log: quiet})
	if err != nil {
		return nil, err
	}
	for _, s := range first {
		if err := s.do(v); err != nil {
			return nil, fmt.Errorf("%s: %w", s, err)
		}
	}
	if err := v.Close(); err != nil {
		return nil, err
	}
	return sim.Crash(disk.KeepAll), nil
}

// startAll makes all volumes.
func startAll() (map[uint64]*disk.Sim, error) {
	all := map[uint64]*disk.Sim{}
	for n := range bases {
		sim, err := start(n)
		if err != nil {
			return nil, err
		}
		all[n] = sim
	}
	return all, nil
}

// placed is a sequence, and the volume that it is tried on. Where that can grow, it does so at some place of it. Steps
// that somebody chose stay as they are.
func placed(steps []Step, chosen bool, r *rand.Rand) (blocks uint64, as []Step) {
	switch {
	case slices.Contains(steps, grow):
		return growing, steps
	case r.IntN(2) == 0:
		return roomy, steps
	case chosen || r.IntN(4) > 0:
		return tight, steps
	}
	return growing, slices.Insert(slices.Clone(steps), r.IntN(len(steps)), grow)
}

// steppedClock goes on by a second with each step, so that equal sequences have equal time stamps.
type steppedClock struct{ steps atomic.Int64 }

func (c *steppedClock) now() time.Time { return time.Unix(1e9+c.steps.Load(), 0) }

// history is a run of a sequence: what was seen, and when, counted in operations of the device.
type history struct {
	steps  []Step
	states []string // states[i] after i steps; the first is that before
	begun  []uint64 // begun[i] when step i was called
	done   []uint64 // done[i] when it had returned
	local  bool

	clients *concurrent // nil: one did all of that; else nothing but begun[0] is there
}

// most is how many commits there are at most before the first step. The log of a volume of this size has units for 17
// groups, which are used again and again.
const most = 40

// running is a volume that steps are done on.
type running struct {
	*fs.FS
	sim   *disk.Sim
	clock *steppedClock
}

// begin opens a copy of base, does so many commits by which the log is somewhere else, and begins to record.
func begin(base *disk.Sim, before int, device func(disk.Disk) disk.Disk) (v running, err error) {
	v.sim, v.clock = base.Crash(disk.KeepAll), &steppedClock{}
	v.clock.steps.Store(100)
	var d disk.Disk = v.sim
	if device != nil {
		d = device(v.sim)
	}
	if v.FS, err = fs.Open(d, fs.Options{Clock: v.clock.now, Log: quiet}); err != nil {
		return v, fmt.Errorf("opening the volume: %w", err)
	}
	for i := 0; i < before && err == nil; i++ {
		err = aside(i).do(v)
	}
	v.sim.Record()
	if err != nil {
		err = errors.Join(err, v.Close())
	}
	return v, err
}

// aside is step i of those that come before the first one.
func aside(i int) Step { return Step(fmt.Sprintf("chmod foo %o", 0o600+i%2)) }

// record runs a sequence on a copy of base, after so many commits. A step that finds no room ends it, and is not among
// the steps of the history.
func record(base *disk.Sim, steps []Step, before int, device func(disk.Disk) disk.Disk) (*disk.Sim, *history, error) {
	v, err := begin(base, before, device)
	if err != nil {
		return nil, nil, err
	}
	sim, clock := v.sim, v.clock
	h := &history{steps: steps, local: mounted(steps)}
	as := v.FS
	if h.local {
		as = v.Deferring()
	}
	state, err := Tree(v.FS, v.Root())
	h.states = append(h.states, state)
	for i, s := range steps {
		if err != nil {
			break
		}
		clock.steps.Add(1)
		h.begun = append(h.begun, sim.Ops())
		if err = s.do(as); errors.Is(err, fs.ErrNoSpc) && bases[base.Size()].tight {
			h.steps, h.begun, err = steps[:i], h.begun[:i], nil
			break
		} else if err != nil {
			err = fmt.Errorf("%s: %w", s, err)
			break
		}
		h.done = append(h.done, sim.Ops())
		var after string
		after, err = Tree(v.FS, v.Root())
		h.states = append(h.states, after)
	}
	if e := v.Close(); err == nil {
		err = e
	}
	return sim, h, err
}

// see is what counts of what can be seen of a volume.
func (h *history) see(v *fs.FS) (string, error) {
	if h.clients != nil {
		return plainTree(v, h.clients.held)
	}
	return Tree(v, v.Root())
}

// allowed are the states that a crash after n operations of the device may leave: those after lo to hi steps.
func (h *history) allowed(n uint64) (lo, hi int) {
	for i, s := range h.steps {
		if h.done[i] <= n && s.promises(h.local) {
			lo = i + 1
		}
		if h.begun[i] <= n {
			hi = i + 1
		}
	}
	return lo, hi
}
