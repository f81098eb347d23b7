package crash

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"tansy/disk"
	"tansy/fs"
	"tansy/test/kit/replay"
)

// TestListText: a list is written as it was read, and what is none is refused, as are flags that are none.
func TestListText(t *testing.T) {
	for _, text := range []string{firstList, otherList, plainList, defaultList, narrowList, nothing} {
		l, err := parseList(text)
		if err != nil || listText(l) != text {
			t.Errorf("%s becomes %s: %v", text, listText(l), err)
		}
	}
	for _, steps := range []string{
		"setlist foo u::rw-,g::r--", "setlist foo u::rw-,o::r--,g::r--", "setlist foo u::rw-,u:7:rw-,g::r--,o::---",
		"setlist foo u::rwz,g::r--,o::---", "setlist foo u:x:rw-,g::r--,o::---", "setlist foo x::rw-,g::r--,o::---",
		"setlist foo u::r-,g::r--,o::---", "setlists foo - x", "setlist foo m:1:r--,g::r--,o::---", "setflags foo ix",
		"setdefault foo " + defaultList, "setlist L " + plainList, "setlist bar -",
	} {
		if _, err := Parse(steps); err == nil {
			t.Errorf("%s is taken", steps)
		}
	}
}

// TestListsOfModel: the lists of the plain model become what those of a volume become.
func TestListsOfModel(t *testing.T) {
	r := rand.New(rand.NewPCG(replay.Seed(t), 1))
	base, err := start(roomy)
	if err != nil {
		t.Fatal(err)
	}
	lists, all := ofLists(), operations(false)
	for range 100 {
		steps := lists[r.IntN(len(lists))].steps
		for range 4 {
			of := lists
			if r.IntN(2) == 0 {
				of = all
			}
			steps = append(steps[:len(steps):len(steps)], of[r.IntN(len(of))].steps...)
		}
		besides(t, base, steps)
	}
}

// TestListsSeen: the lists and the flags of files count in what is seen of a volume.
func TestListsSeen(t *testing.T) {
	base, err := start(tight)
	if err != nil {
		t.Fatal(err)
	}
	_, h, err := record(base, []Step{"create A/bar", "setflags foo i"}, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(h.states[2], "\n")
	for name, want := range map[string]string{
		"foo:":   " flags 0x10 list " + firstList,
		"A/foo:": " list " + firstList,
		"A:":     " list " + defaultList + " default list " + defaultList,
		"A/bar:": " list u::rw-,u:7:rwx,g::r-x,m::r--,o::r--",
	} {
		has := func(l string) bool { return strings.HasPrefix(l, name) && strings.Contains(l, want) }
		if !slices.ContainsFunc(lines, has) {
			t.Errorf("%s has not%s:\n%s", name, want, h.states[2])
		}
	}
}

// besides does some steps on a volume and on the model.
func besides(t *testing.T, base *disk.Sim, steps []Step) {
	t.Helper()
	v, err := fs.Open(base.Crash(disk.KeepAll), options)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	}()
	_, held, err := hold(v)
	m, _, heldOfModel, e := modelled(0)
	if err != nil || e != nil {
		t.Fatal(err, e)
	}
	for _, s := range steps {
		if got, want := s.do(v), s.do(m); !sameEnd(got, want) {
			t.Errorf("%q: %s: %v, and of the model %v", steps, s, got, want)
		}
	}
	got, err := plainTree(v, held)
	want, e := plainTree(m, heldOfModel)
	if err != nil || e != nil || got != want {
		t.Errorf("%q:\n%s\nbut the model has\n%s\n%v", steps, got, want, errors.Join(err, e))
	}
}
