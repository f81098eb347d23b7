package crash

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tansy/fs"
	"tansy/test/kit/replay"
)

// TestClients: nothing is found of what several clients do at a time.
func TestClients(t *testing.T) {
	seed := replay.Seed(t)
	limit := uint64(15)
	if *planted {
		limit = 3000
	}
	for _, clients := range []int{2, 3} {
		c, f, err := Explore(t.Context(), Options{Clients: clients, Limit: limit, Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		if f != nil {
			t.Fatal(text(f))
		}
		t.Logf("%+v", c)
	}
}

// TestClientsLies: a device that does not keep a promise is found by what several clients do, too. What is found has no
// more steps than what showed it, can be saved and read, and its image alone shows it again.
func TestClientsLies(t *testing.T) {
	seed := replay.Seed(t)
	o := Options{Clients: 3, Limit: 500, Seed: seed, Device: lies["each second barrier does nothing"]}
	c, f, err := Explore(t.Context(), o)
	if err != nil || f == nil {
		t.Fatalf("nothing is found in %+v: %v", c, err)
	}
	steps := func(f *Finding) (n int) {
		for _, s := range f.Clients {
			n += len(s)
		}
		return n
	}
	short, err := f.Shorten(o)
	if err != nil || steps(short) > steps(f) || short.Clients == nil {
		t.Fatalf("%q becomes %q: %v", f.Clients, short.Clients, err)
	}
	path := filepath.Join(t.TempDir(), "found.json")
	if err := short.Save(path); err != nil {
		t.Fatal(err)
	}
	again, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if now := again.Again(); (now == nil) != (short.image == nil) {
		t.Errorf("shown again: %v", now)
	}
	if got := text(again); got != text(short) || !strings.Contains(got, "client 2\n") {
		t.Errorf("%s\nbecomes\n%s", text(short), got)
	}
	t.Log(text(again))
}

// ended is a step that gave err, from one reading of the clock to another, and from one operation of the device on
// until there were so many.
func ended(step Step, err error, call, returned, begun, acked uint64) did {
	return did{step: step, err: err, call: call, returned: returned, begun: begun, acked: acked}
}

// treeAfter is what the model has after some steps.
func treeAfter(t *testing.T, steps ...Step) string {
	t.Helper()
	m, _, held, err := modelled(0)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range steps {
		if err := s.do(m); err != nil {
			t.Fatal(err)
		}
	}
	tree, err := plainTree(m, held)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// TestOrders: which orders of steps are possible is told by what they gave and by when they began and returned, and
// what a crash may leave by that and by what was acknowledged.
func TestOrders(t *testing.T) {
	const made, gone = Step("create bar"), Step("remove bar")
	tree := func(steps ...Step) string { return treeAfter(t, steps...) }
	for name, x := range map[string]struct {
		a, b   did // of two clients
		moment uint64
		want   []string // nil: there is no order
	}{
		"one after the other": {
			ended(made, nil, 1, 2, 1, 2), ended(gone, nil, 3, 4, 2, 3), 3, []string{tree()}},
		"at a time, and the order is told by what they gave": {
			ended(made, nil, 1, 4, 1, 3), ended(gone, nil, 2, 3, 1, 2), 3, []string{tree()}},
		"what was acknowledged first was done last": {
			ended(made, nil, 2, 3, 1, 2), ended(gone, fs.ErrNoEnt, 1, 4, 1, 3), 3, []string{tree(made)}},
		"not yet begun": {
			ended(made, nil, 1, 2, 1, 2), ended(gone, nil, 3, 4, 7, 8), 3, []string{tree(made)}},
		"an error is acknowledged, too, by which what it tells of has to be there": {
			ended(made, nil, 1, 6, 1, 9), ended(made, fs.ErrExist, 2, 3, 2, 3), 3, []string{tree(made)}},
		"an error behind what may be lost": {
			ended("unstable foo 0 10", nil, 1, 2, 1, 1), ended(gone, fs.ErrNoEnt, 3, 4, 1, 2), 2,
			[]string{tree(), tree("unstable foo 0 10")}},
		"a rename that changes nothing behind what may be lost": {
			ended("unstable foo 0 10", nil, 1, 2, 1, 1), ended("rename foo foo", nil, 3, 4, 1, 2), 2,
			[]string{tree(), tree("unstable foo 0 10")}},
		"a rename that changes something, behind what may be lost": {
			ended("unstable foo 0 10", nil, 1, 2, 1, 1), ended("rename foo bar", nil, 3, 4, 1, 2), 2,
			[]string{tree("unstable foo 0 10", "rename foo bar")}},
		"under way": {
			ended(made, nil, 1, 2, 1, 2), ended(gone, nil, 3, 4, 3, 8), 3, []string{tree(made), tree()}},
		"what gave what it cannot": {
			ended(made, fs.ErrExist, 1, 2, 1, 2), ended(gone, nil, 3, 4, 2, 3), 3, nil},
		"the other order, which was not": {
			ended(made, nil, 1, 2, 1, 2), ended(gone, fs.ErrNoEnt, 3, 4, 2, 3), 3, nil},
	} {
		c := &concurrent{done: [][]did{{x.a}, {x.b}}}
		err := c.order()
		if (err == nil) != (x.want != nil) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := c.allowed(x.moment)
		slices.Sort(got)
		slices.Sort(x.want)
		if err == nil && !slices.Equal(got, x.want) {
			t.Errorf("%s: allowed is\n%s", name, strings.Join(got, "\nor\n"))
		}
	}
}

// TestIdleOrders: a RENAME makes durable what is UNSTABLE before it if it changes something in each order that is
// possible, and not if there is one in which both names are of one file.
func TestIdleOrders(t *testing.T) {
	const linked, written, gone, moved = Step("link foo bar"), Step("unstable foo 0 10"), Step("remove bar"),
		Step("rename foo bar")
	lost := treeAfter(t, linked)
	for name, x := range map[string]struct {
		gone did
		then []did
		want bool // what is UNSTABLE may be lost
	}{
		"bar is removed before":     {ended(gone, nil, 5, 6, 3, 3), nil, false},
		"bar is removed at a time":  {ended(gone, nil, 5, 9, 3, 9), nil, true},
		"bar is removed afterwards": {ended(gone, nil, 9, 10, 5, 9), nil, true},
		"bar is removed at a time, and foo is not there afterwards": {
			ended(gone, nil, 5, 9, 3, 9), []did{ended("remove foo", fs.ErrNoEnt, 10, 11, 9, 9)}, false},
	} {
		done := [][]did{
			{ended(linked, nil, 1, 2, 1, 2), ended(written, nil, 3, 4, 2, 2), x.gone},
			append([]did{ended(moved, nil, 7, 8, 3, 4)}, x.then...),
		}
		for range 2 {
			c := &concurrent{done: done}
			if err := c.order(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			allowed := c.allowed(4)
			if got := slices.Contains(allowed, lost); got != x.want || len(allowed) == 0 {
				t.Errorf("%s: allowed is\n%s", name, strings.Join(allowed, "\nor\n"))
			}
			done = [][]did{slices.Clone(done[1]), slices.Clone(done[0])}
			for _, d := range done {
				for i := range d {
					d[i].idle = false
				}
			}
		}
	}
}
