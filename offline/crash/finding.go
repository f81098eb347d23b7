package crash

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"

	"tansy/disk"
	"tansy/fs"
)

// Finding is a crash after which the volume is not what it must be. As a file it is JSON, and the image lies beside it.
type Finding struct {
	Problem string
	Steps   []Step
	Local   bool   // as on a mount: a step is durable when one says so that comes later
	Blocks  uint64 // of the volume

	Moment uint64   // the crash came after so many operations of the device
	Begun  []uint64 // how many there were when each step was called
	Done   []uint64 // and when it had returned

	States []string // before the first step, and after each
	Before []string // lines of a file, as it was before commits that came before the first step
	Got    string   // the state that was recovered; empty if none could be

	Clients [][]Step    // if several were at work; there are no Steps then, nor Begun, Done, and States
	Allowed []string    // the states that the crash might leave of what they did
	Held    []fs.Handle // of the files by which the states tell that they are the same

	Damage *Damage // what the medium did to the image besides, if anything

	image *disk.Sim
}

func (j *judge) finding(err error) *Finding {
	f := &Finding{
		Problem: err.Error(), Steps: j.h.steps, Local: j.h.local, Moment: j.moment, Begun: j.h.begun, Done: j.h.done,
		States: j.h.states, Before: j.h.earlier, Got: j.got, Blocks: j.image.Size(), Damage: j.damage, image: j.image,
	}
	if c := j.h.clients; c != nil {
		f.Begun, f.Clients, f.Allowed, f.Held = nil, c.steps, c.allowed(j.moment), c.held
	}
	return f
}

// tries is how often a shorter sequence is tried, as what runs in the background does not come at the same time twice.
const tries = 3

// Shorten leaves out steps as long as something is found without them, and returns the last finding.
func (f *Finding) Shorten(o Options) (*Finding, error) {
	base, err := start(f.Blocks)
	if err != nil {
		return nil, err
	}
	for n := 0; ; {
		less, ok := f.work().without(n)
		if !ok {
			return f, nil
		}
		if g := discover(base, less, o); g != nil {
			f = g
		} else {
			n++
		}
	}
}

// work is what was done.
func (f *Finding) work() work { return work{f.Steps, f.Clients} }

// without leaves out step n, counted through all clients; not ok: there is none, or no other one.
func (w work) without(n int) (less work, ok bool) {
	if w.clients == nil {
		if n >= len(w.steps) || len(w.steps) == 1 {
			return w, false
		}
		return work{steps: slices.Delete(slices.Clone(w.steps), n, n+1)}, true
	}
	for i, steps := range w.clients {
		if n < len(steps) {
			less.clients = slices.Clone(w.clients)
			less.clients[i] = slices.Delete(slices.Clone(steps), n, n+1)
			return less, true
		}
		n -= len(steps)
	}
	return w, false
}

// discover tries some work some times, and returns what is found.
func discover(base *disk.Sim, w work, o Options) *Finding {
	for n := range uint64(tries) {
		if _, f := judgeAll(base, w, o, rand.New(rand.NewPCG(o.Seed, n))); f != nil {
			return f
		}
	}
	return nil
}

// imageOf is the name of the image that belongs to a file.
func imageOf(path string) string { return path + ".img" }

// Save writes a finding to a new file, and beside it the image as the crash left it, if there is one.
func (f *Finding) Save(path string) error {
	text, err := json.MarshalIndent(f, "", " ")
	if err != nil {
		return err
	}
	if err := create(path, func(w *os.File) error {
		_, err := w.Write(append(text, '\n'))
		return err
	}); err != nil || f.image == nil {
		return err
	}
	return create(imageOf(path), func(w *os.File) error {
		b, zeros := make([]byte, disk.BlockSize), make([]byte, disk.BlockSize)
		for a := range f.image.Size() {
			if err := f.image.ReadAt(a, [][]byte{b}); err != nil {
				return err
			}
			if slices.Equal(b, zeros) {
				continue
			}
			if _, err := w.WriteAt(b, int64(a)*disk.BlockSize); err != nil {
				return err
			}
		}
		return w.Truncate(int64(f.image.Size()) * disk.BlockSize)
	})
}

// create makes a new file.
func create(path string, do func(*os.File) error) error {
	w, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	return errors.Join(do(w), w.Close())
}

// Load reads what Save has written.
func Load(path string) (*Finding, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	f := new(Finding)
	if err := json.Unmarshal(text, f); err != nil {
		return nil, fmt.Errorf("%s is not what `tansy crash` saves: %w", path, err)
	}
	if f.Blocks == 0 { // there was one volume at first
		f.Blocks = roomy
	}
	if err := f.check(); err != nil {
		return nil, fmt.Errorf("%s is not what `tansy crash` saves: %w", path, err)
	}
	r, err := os.Open(imageOf(path))
	if errors.Is(err, os.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if n := len(f.Steps); f.Clients == nil && (len(f.Begun) != n || len(f.Done) != n || len(f.States) != n+1) {
		return nil, fmt.Errorf("%s is not what `tansy crash` saves with an image: its steps and states do not fit", path)
	}
	f.image = disk.NewSim(f.Blocks * disk.BlockSize)
	b := make([]byte, disk.BlockSize)
	for a := range f.image.Size() {
		if _, err := io.ReadFull(r, b); err != nil {
			return nil, fmt.Errorf("%s: %w", imageOf(path), err)
		}
		if err := f.image.WriteAt(a, [][]byte{b}); err != nil {
			return nil, err
		}
	}
	return f, f.image.Barrier()
}

// check is an error if the steps, which a file may have from anybody, are none, or the volume is none that is tried.
func (f *Finding) check() error {
	if _, ok := bases[f.Blocks]; !ok {
		return fmt.Errorf("no volume of %d blocks is tried", f.Blocks)
	}
	if f.Clients == nil {
		_, err := parseAll(f.Steps, Parse)
		return err
	}
	some := len(f.Steps) > 0
	for _, steps := range f.Clients {
		read, err := parseAll(steps, parse)
		if err != nil {
			return err
		}
		some = some || slices.ContainsFunc(read, Step.alone)
	}
	if some {
		return errors.New("several clients have none but the steps of NFS, and on flags")
	}
	return nil
}

// parseAll reads steps that have to be as they are written.
func parseAll(steps []Step, parse func(string) ([]Step, error)) ([]Step, error) {
	text := make([]string, len(steps))
	for i, s := range steps {
		text[i] = string(s)
	}
	read, err := parse(strings.Join(text, "\n"))
	if err == nil && !slices.Equal(read, steps) {
		err = errors.New("a step is not as it is written")
	}
	return read, err
}

// Again recovers the image once more. It returns nil if all is as it must be now.
func (f *Finding) Again() error {
	if f.image == nil {
		base, err := start(f.Blocks)
		if err != nil {
			return err
		}
		if g := discover(base, f.work(), Options{Images: 16}); g != nil {
			return errors.New(g.Problem)
		}
		return nil
	}
	h := &history{steps: f.Steps, states: f.States, begun: f.Begun, done: f.Done, local: f.Local, earlier: f.Before}
	if f.Clients != nil {
		h.clients = &concurrent{held: f.Held, saved: f.Allowed}
	}
	same, err := newEquals(f.image, nil)
	if err != nil {
		return err
	}
	j := judge{h: h, moment: f.Moment, image: f.image, same: same, count: new(Count)}
	if f.Damage != nil {
		err = j.rotten(f.Damage)
	} else {
		err = j.recovered(f.image.Crash(disk.KeepAll))
	}
	f.Got = j.got
	return err
}

// Print shows a finding step by step: what was acknowledged as durable, and what of the state is not as it must be.
func (f *Finding) Print(w io.Writer) {
	fmt.Fprintf(w, "%s\n\n", f.Problem)
	if f.image == nil || f.Clients != nil {
		for i, steps := range append([][]Step{f.Steps}, f.Clients...) {
			if i > 0 {
				fmt.Fprintf(w, "client %d\n", i)
			}
			for _, s := range steps {
				fmt.Fprintf(w, "  %s\n", s)
			}
		}
		f.printAllowed(w)
		return
	}
	h := &history{steps: f.Steps, states: f.States, begun: f.Begun, done: f.Done, local: f.Local}
	lo, hi := h.allowed(f.Moment)
	for i, s := range f.Steps {
		what := "had not begun"
		switch {
		case i < lo:
			what = "was acknowledged as durable"
		case f.Done[i] <= f.Moment:
			what = "had returned, and need not be durable"
		case i < hi:
			what = "was under way"
		}
		fmt.Fprintf(w, "  %-40s %s\n", s, what)
	}
	fmt.Fprintf(w, "  the machine crashed after %d operations of the device\n", f.Moment)
	if f.Damage != nil {
		fmt.Fprintf(w, "  and the medium failed: %s\n", f.Damage)
	}
	if f.Got == "" || slices.Contains(f.States[lo:hi+1], f.Got) {
		return
	}
	fmt.Fprintf(w, "\nThe recovered volume (+) and the state that is the least it must have (-):\n")
	for _, line := range difference(f.States[lo], f.Got) {
		fmt.Fprintln(w, line)
	}
}

// printAllowed shows how the state that was recovered differs from those that several clients might leave.
func (f *Finding) printAllowed(w io.Writer) {
	if f.image != nil {
		fmt.Fprintf(w, "the machine crashed after %d operations of the device\n", f.Moment)
	}
	if f.Got == "" || slices.Contains(f.Allowed, f.Got) {
		return
	}
	for _, state := range f.Allowed {
		fmt.Fprintf(w, "\nThe recovered volume (+) and a state that it might have (-):\n")
		for _, line := range difference(state, f.Got) {
			fmt.Fprintln(w, line)
		}
	}
}

// difference are the lines of two states that only one has.
func difference(want, got string) (lines []string) {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for _, line := range w {
		if !slices.Contains(g, line) {
			lines = append(lines, "- "+line)
		}
	}
	for _, line := range g {
		if !slices.Contains(w, line) {
			lines = append(lines, "+ "+line)
		}
	}
	return lines
}
