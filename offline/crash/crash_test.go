package crash

import (
	"errors"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"tansy/disk"
	"tansy/fs"
	"tansy/test/kit/replay"
)

// text is what is printed of a finding.
func text(f *Finding) string {
	var b strings.Builder
	f.Print(&b)
	return b.String()
}

var (
	length  = flag.Int("length", 0, "have TestExplore try all sequences of so many operations")
	planted = flag.Bool("planted", false, "have TestExplore try as many as it takes for a fault that was put in")
)

// TestExplore: nothing is found. Some sequences of one operation are tried, and some of two.
func TestExplore(t *testing.T) {
	seed := replay.Seed(t)
	limits := []uint64{1: 40, 2: 60, 3: 100} // most of three are refused
	switch {
	case testing.Short():
		limits = []uint64{1: 12, 2: 25} // three of five of two are impossible, and not all may be
	case *planted:
		limits = []uint64{1: space(1).size(), 2: 2000}
	}
	for n, limit := range limits {
		switch {
		case *length > 0:
			limit = 0
		case n == 0:
			continue
		}
		if *length > 0 && n != *length {
			continue
		}
		c, f, err := Explore(t.Context(), Options{Length: n, Limit: limit, Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		if f != nil {
			t.Fatal(text(f))
		}
		if *length > 0 && c.Sequences != c.All || c.Impossible == c.Sequences ||
			c.Images < c.Sequences || c.Moments == 0 || c.States < 2 || c.Equal == 0 || c.Equal == c.Images {
			t.Errorf("%+v", c)
		}
		t.Logf("%+v", c)
	}
}

// TestRefused: steps are refused as it is expected, of sequences of one operation. That others are not, TestExplore
// sees.
func TestRefused(t *testing.T) {
	base, err := start(roomy)
	if err != nil {
		t.Fatal(err)
	}
	s := space(1)
	for n := range s.size() {
		steps := s.at(n)
		if refused(steps) < 0 {
			continue
		}
		if _, _, err := record(base, steps, 0, nil); !errors.As(err, new(fs.Errno)) || errors.Is(err, fs.ErrIO) {
			t.Errorf("%q: %v", steps, err)
		}
	}
}

// TestIdle: a RENAME between two names of one file makes nothing durable that was UNSTABLE; another one does.
func TestIdle(t *testing.T) {
	base, err := start(roomy)
	if err != nil {
		t.Fatal(err)
	}
	for last, want := range map[Step]int{"rename foo bar": 1, "rename foo B/foo": 3} {
		sim, h, err := record(base, []Step{"link foo bar", "unstable foo 9000 3000", last}, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		if lo, hi := h.allowed(sim.Ops()); lo != want || hi != 3 {
			t.Errorf("%s: the states after %d to %d steps are allowed, not those after %d to 3", last, lo, hi, want)
		}
	}
}

// lies are devices that do not keep a promise: what the exploration has to find.
var lies = map[string]func(disk.Disk) disk.Disk{
	"no barrier does anything":             func(d disk.Disk) disk.Disk { return &liar{Disk: d, barriers: 1} },
	"each second barrier does nothing":     func(d disk.Disk) disk.Disk { return &liar{Disk: d, barriers: 2} },
	"each tenth write is lost":             func(d disk.Disk) disk.Disk { return &liar{Disk: d, lost: 10} },
	"each fifth write is late":             func(d disk.Disk) disk.Disk { return &liar{Disk: d, late: 5} },
	"each tenth write hits the next block": func(d disk.Disk) disk.Disk { return &liar{Disk: d, astray: 10} },
}

// liar does what a device does, but for each so manieth operation, if that is not 0.
type liar struct {
	disk.Disk
	barriers, lost, late, astray int

	mu      sync.Mutex
	n, m    int
	pending func() error
}

func (l *liar) Barrier() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.n++; l.barriers > 0 && l.n%l.barriers == 0 {
		return nil
	}
	err := l.Disk.Barrier()
	if l.pending != nil { // comes behind the barrier that was to cover it
		err, l.pending = l.pending(), nil
	}
	return err
}

func (l *liar) WriteAt(a uint64, bufs [][]byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.m++
	hit := func(every int) bool { return every > 0 && l.m%every == 0 }
	switch {
	case hit(l.lost):
		return nil
	case hit(l.late) && l.pending == nil:
		var copies [][]byte
		for _, b := range bufs {
			copies = append(copies, slices.Clone(b))
		}
		l.pending = func() error { return l.Disk.WriteAt(a, copies) }
		return nil
	case hit(l.astray) && a+uint64(len(bufs)) < l.Size():
		a++
	}
	return l.Disk.WriteAt(a, bufs)
}

// TestLies: a device that does not keep a promise is found, with a sequence that is not longer than the one that showed
// it. What is found can be saved, read, and shown again: by the image alone, whatever the device does then.
func TestLies(t *testing.T) {
	seed := replay.Seed(t)
	for name, device := range lies {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := Options{Length: 2, Seed: seed, Device: device, Limit: 500, Workers: 1}
			c, f, err := Explore(t.Context(), o)
			if err != nil || f == nil {
				t.Fatalf("nothing is found in %+v: %v", c, err)
			}
			short, err := f.Shorten(o)
			if err != nil || len(short.Steps) > len(f.Steps) {
				t.Fatalf("%q becomes %q: %v", f.Steps, short.Steps, err)
			}
			path := filepath.Join(t.TempDir(), "found.json")
			if err := short.Save(path); err != nil {
				t.Fatal(err)
			}
			if err := short.Save(path); !os.IsExist(err) {
				t.Errorf("saved once more: %v", err)
			}
			again, err := Load(path)
			if err != nil || again.Problem != short.Problem || !slices.Equal(again.Steps, short.Steps) {
				t.Fatalf("%+v: %v", again, err)
			}
			if now := again.Again(); (now == nil) != (short.image == nil) {
				t.Errorf("%s: shown again: %v", short.Problem, now)
			}
			var text strings.Builder
			again.Print(&text)
			if !strings.Contains(text.String(), again.Problem) || !strings.Contains(text.String(), string(again.Steps[0])) {
				t.Error(text.String())
			}
			t.Logf("after %d sequences, %d images:\n%s", c.Sequences, c.Images, &text)
		})
	}
}

// TestLoadWhatever: a file that nobody saved is refused, whatever it has, with an image beside it or without.
func TestLoadWhatever(t *testing.T) {
	base, err := start(roomy)
	if err != nil {
		t.Fatal(err)
	}
	good := &Finding{
		Steps: []Step{"create bar"}, Begun: []uint64{1}, Done: []uint64{2}, States: []string{"a", "b"}, image: base,
		Blocks: base.Size(),
	}
	saved := filepath.Join(t.TempDir(), "good")
	if err := good.Save(saved); err != nil {
		t.Fatal(err)
	}
	if f, err := Load(saved); err != nil {
		t.Fatal(f, err)
	}
	for _, text := range []string{
		"", "{}", "no", `{"Steps": [""]}`, `{"Steps": ["create"]}`, `{"Steps": ["no"]}`, `{"Steps": ["write foo x 1"]}`,
		`{"Blocks": 2200, "Steps": ["create bar"]}`,
		`{"Blocks": 2200, "Steps": ["create bar"], "Begun": [1], "States": ["", ""]}`,
		`{"Blocks": 2200, "Steps": ["create bar"], "Begun": [1], "Done": [2]}`,
		`{"Blocks": 2200, "Steps": ["create bar\\nsync"]}`,
		`{"Blocks": 5, "Steps": ["create bar"], "Begun": [1], "Done": [2], "States": ["a", "b"]}`,
	} {
		if err := os.WriteFile(saved, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if f, err := Load(saved); err == nil {
			t.Errorf("%s: %+v", text, f)
		}
	}
}

// TestFullLog: with its header held back, the log is as full before the first step as it is asked to be, and a sequence
// that needs more room than there is comes to its end.
func TestFullLog(t *testing.T) {
	base, err := start(roomy)
	if err != nil {
		t.Fatal(err)
	}
	for left := range nearlyFull {
		v, err := begin(base, most+left, nil)
		if err != nil {
			t.Fatal(err)
		}
		units := v.Stats().Journal.Units
		if got := v.brake.left(); got != uint64(left) || units < 2 {
			t.Errorf("%d units of %d are left, not %d", got, units, left)
		}
		if used := v.Stats().Journal.UnitsUsed; left > 0 && used < units-uint64(left) {
			t.Errorf("%d units of %d are used, and %d are to be left", used, units, left)
		}
		for i := range 2 * int(units) {
			if err := aside(i).do(v); err != nil {
				t.Fatal(err)
			}
		}
		if v.brake.left() != 0 {
			t.Error("the log was never full")
		}
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestDamage: each harm is noticed where it hits what is seen, or what is seen is what was there.
func TestDamage(t *testing.T) {
	r := rand.New(rand.NewPCG(replay.Seed(t), 1))
	base, err := start(roomy)
	if err != nil {
		t.Fatal(err)
	}
	c, h := Count{}, &history{done: []uint64{0}, begun: []uint64{0}}
	same, err := newEquals(base, nil)
	if err != nil {
		t.Fatal(err)
	}
	tree := func(d disk.Disk) string {
		v, err := fs.Open(d, options)
		if err != nil {
			t.Fatal(err)
		}
		defer v.Close()
		s, err := Tree(v, v.Root())
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	h.states = []string{tree(base.Crash(disk.KeepAll))}
	for range 200 {
		j := &judge{h: h, image: base, same: same, count: &c}
		if err := j.rotten(hit(base, nil, r)); err != nil {
			t.Fatal(err)
		}
	}
	if c.Refused == 0 || c.Partly == 0 {
		t.Errorf("%+v", c)
	}
	// What is there is no part of another state.
	h.states[0] = strings.ReplaceAll(h.states[0], "contents ", "contents 0")
	j := &judge{h: h, image: base, same: same, count: &c}
	if err := j.rotten(&Damage{How: exchanged}); err == nil {
		t.Error("other contents are not noticed")
	}
}
