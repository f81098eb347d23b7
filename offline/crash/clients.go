package crash

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"tansy/disk"
	"tansy/fs"
)

// Several clients work at a time, each one step after the other. What may be there after a crash is what the plain
// model of the file system has after some order of their steps, up to some place in it: an order in which each step
// gives what it gave, and none comes before one that had returned when it began. All that was acknowledged as durable
// stands before that place, and nothing that had not begun. What was refused is acknowledged, too: that by which it was
// refused must be there. But it may stand behind UNSTABLE writes, which need not be, so it counts where there are none.
// So it is with a RENAME that in one of these orders is between two names of one file: that changes nothing.
//
// Times, and the numbers of inodes, depend on the order, so they are left out.

// concurrent is a run of several clients.
type concurrent struct {
	steps  [][]Step // of each client
	done   [][]did
	held   []fs.Handle // of the volume: those that clients have had from the beginning
	ways   []way       // that were found possible
	before int         // commits before the first step
	saved  []string    // if not nil, the states that are allowed
}

// did is what is known of a step that was done.
type did struct {
	step           Step
	err            error
	call, returned uint64 // by a clock of the run
	begun, acked   uint64 // in operations of the device
	idle           bool   // a RENAME that may have been between two names of one file
}

// waits tells whether a step has surely changed something, and so waited for all before it.
func (d did) waits() bool { return d.err == nil && !d.idle }

// way is a place in an order: so many steps of each client stand before it, and this is there.
type way struct {
	before []int
	tree   string
}

// holding is a volume whose handles of some names a client had before: it does not ask for these.
type holding struct {
	volume
	names map[name]fs.Handle
}

// name is a name in a directory.
type name struct {
	dir fs.Handle
	of  string
}

// Lookup gives what the name was of at the beginning.
func (v holding) Lookup(who *fs.Cred, dir fs.Handle, n []byte) (fs.Node, error) {
	if h, ok := v.names[name{dir, string(n)}]; ok {
		return fs.Node{Handle: h}, nil
	}
	return v.volume.Lookup(who, dir, n)
}

// hold looks up what clients have from the beginning.
func hold(v volume) (h holding, all []fs.Handle, err error) {
	h = holding{v, map[name]fs.Handle{}}
	for _, path := range []string{"A", "B", "foo", "A/foo", "L"} {
		if e := within(h, path, func(dir fs.Handle, n []byte) error {
			x, err := v.Lookup(root, dir, n)
			h.names[name{dir, string(n)}] = x.Handle
			all = append(all, x.Handle)
			return err
		}); e != nil {
			return h, nil, e
		}
	}
	return h, all, nil
}

// plainTree is what can be seen of a volume, but for times and the numbers of inodes. Files that clients hold are told
// from others.
func plainTree(v listed, held []fs.Handle) (string, error) {
	var lines []string
	var walk func(path string, h fs.Handle) error
	walk = func(path string, h fs.Handle) error {
		limit := fs.Limit{Bytes: 4000, Size: func(name int) int { return name + 24 }}
		for cookie, end := uint64(0), false; !end; {
			l, err := v.Readdir(root, h, cookie, 0, true, limit)
			if err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			end = l.EOF
			for _, e := range l.Entries {
				cookie = e.Cookie
				if n := string(e.Name); n == "." || n == ".." {
					continue
				}
				line, err := plain(v, e, slices.Index(held, e.Handle))
				if err != nil {
					return fmt.Errorf("%s%s: %w", path, e.Name, err)
				}
				lines = append(lines, path+string(e.Name)+line)
				if e.Attr.Type == fs.Directory {
					if err := walk(path+string(e.Name)+"/", e.Handle); err != nil {
						return err
					}
				}
			}
		}
		return nil
	}
	if err := walk("", v.Root()); err != nil {
		return "", err
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n"), nil
}

// plain is what there is of an entry but its name. held is which of the files that clients hold it is; -1: none.
func plain(v listed, e fs.Entry, held int) (string, error) {
	a := *e.Attr
	lists, err := listsOf(v, e.Handle)
	if err != nil {
		return "", err
	}
	flags, err := v.Flags(e.Handle)
	if err != nil {
		return "", err
	}
	line := fmt.Sprintf(": type %d mode %o links %d held %d flags %#x%s", a.Type, a.Mode, a.Nlink, held, flags, lists)
	switch a.Type {
	case fs.Regular:
		sum, err := contents(v, e.Handle)
		return fmt.Sprintf("%s size %d contents %x", line, a.Size, sum), err
	case fs.Symlink:
		b, _, err := v.Readlink(root, e.Handle)
		return line + " to " + string(b), err
	}
	return line, nil
}

// drawn are the steps of some clients: two operations of NFS each, or, one of ten, on flags, of which there are few.
func drawn(clients int, r *rand.Rand) (all [][]Step) {
	ops, flags := operations(false), ofFlags()
	for range clients {
		var steps []Step
		for range 2 {
			of := ops
			if r.IntN(10) == 0 {
				of = flags
			}
			steps = append(steps, of[r.IntN(len(of))].steps...)
		}
		all = append(all, steps)
	}
	return all
}

// recordClients runs the steps of several clients at a time on a copy of base, after commits (anywhere).
func recordClients(base *disk.Sim, steps [][]Step, before int, device func(disk.Disk) disk.Disk) (*disk.Sim, *history,
	error) {
	v, err := begin(base, before, device)
	if err != nil {
		return nil, nil, err
	}
	sim := v.sim
	h := &history{clients: &concurrent{steps: steps, done: make([][]did, len(steps)), before: len(v.earlier)}}
	as, held, err := hold(v)
	h.clients.held = held
	h.begun = []uint64{sim.Ops()}
	var clock atomic.Uint64
	var wg sync.WaitGroup
	for i := range steps {
		wg.Go(func() {
			for _, s := range steps[i] {
				d := did{step: s, call: clock.Add(1), begun: sim.Ops()}
				d.err = s.do(as)
				d.acked, d.returned = sim.Ops(), clock.Add(1)
				h.clients.done[i] = append(h.clients.done[i], d)
			}
		})
	}
	wg.Wait()
	if e := v.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = h.clients.order()
	}
	return sim, h, err
}

// order finds the orders of the steps that are possible. It is an error if there is none.
func (c *concurrent) order() error {
	m, as, held, err := modelled(c.before)
	if err != nil {
		return err
	}
	o := orders{c: c, names: as.names, held: held, known: map[string]bool{}}
	tree, err := plainTree(m, held)
	if err != nil {
		return err
	}
	ok, err := o.from(m, tree, make([]int, len(c.done)))
	if err == nil && !ok {
		err = errors.New("no order of the steps gives what they gave")
	}
	return err
}

// modelled is the model as it is before the first step, after so many commits, and what clients hold of it.
func modelled(before int) (m possible, as holding, held []fs.Handle, err error) {
	m = atFirst().fork()
	if before > 0 {
		err = aside(before - 1).do(m)
	}
	if err == nil {
		as, held, err = hold(m)
	}
	return m, as, held, err
}

// orders is a search for orders.
type orders struct {
	c     *concurrent
	names map[name]fs.Handle
	held  []fs.Handle
	known map[string]bool // whether a place leads on to the end
}

// from tells whether the steps behind a place, where the model has what is there, have a possible order. It notes the
// places of all of these.
func (o *orders) from(m possible, tree string, at []int) (ok bool, err error) {
	key := fmt.Sprint(at, tree)
	if ok, known := o.known[key]; known {
		return ok, nil
	}
	ok = true
	for i := range at {
		ok = ok && at[i] == len(o.c.done[i])
	}
	for i := range at {
		if at[i] == len(o.c.done[i]) || !o.mayBeNext(at, i) {
			continue
		}
		leads, err := o.next(m, tree, at, i)
		if err != nil {
			return false, err
		}
		ok = ok || leads
	}
	o.known[key] = ok
	if ok {
		o.c.ways = append(o.c.ways, way{slices.Clone(at), tree})
	}
	return ok, nil
}

// next tells whether the next step of client i may come at a place, and those behind it then have a possible order.
func (o *orders) next(m possible, tree string, at []int, i int) (ok bool, err error) {
	d := &o.c.done[i][at[i]]
	m = m.fork()
	if !sameEnd(d.step.do(holding{m, o.names}), d.err) {
		return false, nil
	}
	after, err := plainTree(m, o.held)
	if err != nil {
		return false, err
	}
	then := slices.Clone(at)
	then[i]++
	ok, err = o.from(m, after, then)
	if ok && d.step.name() == "rename" && after == tree {
		d.idle = true
	}
	return ok, err
}

// mayBeNext tells whether no step of another client that is still to come had returned when the next one of client i
// began.
func (o *orders) mayBeNext(at []int, i int) bool {
	call := o.c.done[i][at[i]].call
	for k, n := range at {
		if k != i && n < len(o.c.done[k]) && o.c.done[k][n].returned < call {
			return false
		}
	}
	return true
}

// sameEnd tells whether two steps ended alike.
func sameEnd(a, b error) bool {
	var x, y fs.Errno
	if errors.As(a, &x) && errors.As(b, &y) {
		return x == y
	}
	return a == nil && b == nil
}

// allowed are the states that a crash after n operations of the device may leave.
func (c *concurrent) allowed(n uint64) (trees []string) {
	if c.saved != nil {
		return c.saved
	}
	lossy := false
	for _, d := range slices.Concat(c.done...) {
		lossy = lossy || !d.step.promises(false)
	}
	least, most := make([]int, len(c.done)), make([]int, len(c.done))
	for i, done := range c.done {
		for k, d := range done {
			if d.acked <= n && d.step.promises(false) && (d.waits() || !lossy) {
				least[i] = k + 1
			}
			if d.begun <= n {
				most[i] = k + 1
			}
		}
	}
	for _, w := range c.ways {
		within := true
		for i, k := range w.before {
			within = within && least[i] <= k && k <= most[i]
		}
		if within && !slices.Contains(trees, w.tree) {
			trees = append(trees, w.tree)
		}
	}
	return trees
}
