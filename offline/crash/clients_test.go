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

// TestOrders: which orders of steps are possible is told by what they gave and by when they began and returned, and
// what a crash may leave by that and by what was acknowledged.
func TestOrders(t *testing.T) {
	const made, gone = Step("create bar"), Step("remove bar")
	tree := func(steps ...Step) string {
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
	for name, x := range map[string]struct {
		a, b   did // of two clients
		moment uint64
		want   []string // nil: there is no order
	}{
		"one after the other": {
			did{made, nil, 1, 2, 1, 2}, did{gone, nil, 3, 4, 2, 3}, 3, []string{tree()}},
		"at a time, and the order is told by what they gave": {
			did{made, nil, 1, 4, 1, 3}, did{gone, nil, 2, 3, 1, 2}, 3, []string{tree()}},
		"what was acknowledged first was done last": {
			did{made, nil, 2, 3, 1, 2}, did{gone, fs.ErrNoEnt, 1, 4, 1, 3}, 3, []string{tree(made)}},
		"not yet begun": {
			did{made, nil, 1, 2, 1, 2}, did{gone, nil, 3, 4, 7, 8}, 3, []string{tree(made)}},
		"an error is acknowledged, too, by which what it tells of has to be there": {
			did{made, nil, 1, 6, 1, 9}, did{made, fs.ErrExist, 2, 3, 2, 3}, 3, []string{tree(made)}},
		"an error behind what may be lost": {
			did{"unstable foo 0 10", nil, 1, 2, 1, 1}, did{gone, fs.ErrNoEnt, 3, 4, 1, 2}, 2,
			[]string{tree(), tree("unstable foo 0 10")}},
		"a rename that changes nothing behind what may be lost": {
			did{"unstable foo 0 10", nil, 1, 2, 1, 1}, did{"rename foo foo", nil, 3, 4, 1, 2}, 2,
			[]string{tree(), tree("unstable foo 0 10")}},
		"under way": {
			did{made, nil, 1, 2, 1, 2}, did{gone, nil, 3, 4, 3, 8}, 3, []string{tree(made), tree()}},
		"what gave what it cannot": {
			did{made, fs.ErrExist, 1, 2, 1, 2}, did{gone, nil, 3, 4, 2, 3}, 3, nil},
		"the other order, which was not": {
			did{made, nil, 1, 2, 1, 2}, did{gone, fs.ErrNoEnt, 3, 4, 2, 3}, 3, nil},
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
