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
// so that blocks are soon used again, and have access lists; the last can grow.
var bases = map[uint64]base{
	roomy: {}, tight: {tight: true, lists: true},
	growing: {tight: true, lists: true, begins: tight, most: 16 << 20},
}

const (
	roomy   = 2200
	tight   = 1380
	growing = 1600
)

// base is a volume.
type base struct {
	tight  bool
	lists  bool   // some files have access lists
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
	steps := first
	if b.lists {
		steps = slices.Concat(first, firstLists)
	}
	for _, s := range steps {
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

	earlier []string // lines of the file that commits before the first step have changed, as it was before these

	clients *concurrent // nil: one did all of that; else nothing but begun[0] is there
}

// most is how many commits there are at most before the first step. The log of a volume of this size has units for 17
// groups, which are used again and again.
const most = 40

// nearlyFull is how many units of the log are left at most before the first step, if the log's header is held back.
const nearlyFull = 5

// anywhere is how many commits come before the first step: below most, or most and the units that are left then.
func anywhere(r *rand.Rand) int { return r.IntN(most + nearlyFull) }

// running is a volume that steps are done on.
type running struct {
	*fs.FS
	sim   *disk.Sim
	clock *steppedClock

	earlier []string // see history: a line for each commit before the first step
	brake   *brake   // if the log's header is held back
}

// Close closes the volume.
func (v running) Close() error {
	if v.brake != nil {
		v.brake.letGo()
	}
	return v.FS.Close()
}

// begin opens a copy of base, does commits by which the log is somewhere else (anywhere), and begins to record.
func begin(base *disk.Sim, before int, device func(disk.Disk) disk.Disk) (v running, err error) {
	v.sim, v.clock = base.Crash(disk.KeepAll), &steppedClock{}
	v.clock.steps.Store(100)
	var d disk.Disk = v.sim
	if device != nil {
		d = device(v.sim)
	}
	if before >= most {
		p, err := placeOfLog(base)
		if err != nil {
			return v, err
		}
		v.brake = &brake{Disk: d, log: p}
		d = v.brake
	}
	if v.FS, err = fs.Open(d, fs.Options{Clock: v.clock.now, Log: quiet}); err != nil {
		return v, fmt.Errorf("opening the volume: %w", err)
	}
	enough := func(done int) bool { return done == before }
	if v.brake != nil {
		v.brake.hold(v.Stats().Journal.Units)
		enough = func(int) bool { return v.brake.left() <= uint64(before-most) }
	}
	for i := 0; !enough(i) && err == nil; i++ {
		var line string
		if line, err = lineOf(v.FS, setAside); err == nil {
			v.earlier = append(v.earlier, line)
			err = aside(i).do(v)
		}
	}
	v.sim.Record()
	if err != nil {
		err = errors.Join(err, v.Close())
	}
	return v, err
}

// aside is step i of those that come before the first one.
func aside(i int) Step { return Step(fmt.Sprintf("chmod %s %o", setAside, 0o600+i%2)) }

// setAside is the file that those change.
const setAside = "foo"

// lineOf is the line of a file in the description of the volume.
func lineOf(v *fs.FS, name string) (string, error) {
	n, err := v.Lookup(root, v.Root(), []byte(name))
	if err != nil {
		return "", err
	}
	line, err := describe(v, fs.Entry{Handle: n.Handle, Attr: &n.Attr})
	return name + line, err
}

// record runs a sequence on a copy of base, after commits (anywhere). A step that finds no room ends it, and is not
// among the steps of the history.
func record(base *disk.Sim, steps []Step, before int, device func(disk.Disk) disk.Disk) (*disk.Sim, *history, error) {
	v, err := begin(base, before, device)
	if err != nil {
		return nil, nil, err
	}
	sim, clock := v.sim, v.clock
	h := &history{steps: steps, local: mounted(steps), earlier: v.earlier}
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

// idle tells whether step i is a RENAME between two names of one file. It changes nothing, and waits for nothing: what
// is UNSTABLE before it need not be durable.
func (h *history) idle(i int) bool {
	return h.steps[i].name() == "rename" && h.states[i] == h.states[i+1]
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
		if h.done[i] <= n && s.promises(h.local) && !h.idle(i) {
			lo = i + 1
		}
		if h.begun[i] <= n {
			hi = i + 1
		}
	}
	return lo, hi
}
