package crash

import (
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"tansy/disk"
	"tansy/fs"
	"tansy/offline/check"
)

// judged is what was seen of a sequence.
type judged struct {
	Count
	states map[uint64]struct{}
}

// hashes are of this process alone.
var hashes = maphash.MakeSeed()

// work is what is tried: a sequence, or the steps of several clients.
type work struct {
	steps   []Step
	clients [][]Step
}

// record runs it on a copy of base, after commits (anywhere).
func (w work) record(base *disk.Sim, before int, o Options) (*disk.Sim, *history, error) {
	if w.clients != nil {
		return recordClients(base, w.clients, before, o.Device)
	}
	return record(base, w.steps, before, o.Device)
}

// judgeAll runs what is to be tried, and judges what a crash leaves at each moment of it.
func judgeAll(base *disk.Sim, w work, o Options, r *rand.Rand) (c judged, f *Finding) {
	c.states = map[uint64]struct{}{}
	if refused(w.steps) >= 0 {
		c.Impossible++
		return c, nil
	}
	failed := func(problem string) *Finding {
		return &Finding{Steps: w.steps, Clients: w.clients, Blocks: base.Size(), Problem: problem}
	}
	sim, h, err := w.record(base, anywhere(r), o)
	if err != nil {
		return c, failed("before any crash: " + err.Error())
	}
	if len(h.begun) == 0 {
		c.Impossible++
		return c, nil
	}
	same, err := newEquals(base, sim.Varying())
	if err != nil {
		return c, failed(err.Error())
	}
	seen := map[uint64]bool{}
	images := o.Images
	if images == 0 {
		images = 4
	}
	for n := h.begun[0]; n <= sim.Ops(); n++ {
		c.Moments++
		for image := range sim.At(n).Crashes(images, r.Uint64(), true) {
			sum := same.image(image)
			if seen[sum] {
				c.Same++
				continue
			}
			seen[sum] = true
			j := judge{h: h, moment: n, image: image.Crash(disk.KeepAll), same: same, count: &c.Count}
			if err := j.all(image, r, &c); err != nil {
				return c, j.finding(err)
			}
		}
	}
	return c, nil
}

// judge judges one image.
type judge struct {
	h      *history
	moment uint64
	image  *disk.Sim // as the crash left it
	got    string    // the state that was recovered
	damage *Damage   // what the medium has done to the image, if anything
	same   *equals   // what was recovered before
	count  *Count
}

// all is everything that must hold of d, which has the blocks of the image.
func (j *judge) all(d *disk.Sim, r *rand.Rand, c *judged) error {
	c.Images++
	if tree, ok := j.same.foresee(d); ok && r.IntN(doubts) > 0 {
		c.Foreseen++
		j.got = tree
		return j.right()
	}
	d.Record()
	equal := c.Equal
	if err := j.recovered(d); err != nil {
		return err
	}
	c.states[maphash.String(hashes, j.got)] = struct{}{}
	first := j.got
	if r.IntN(4) == 0 { // crashes once more, within the recovery
		c.Images++
		again := d.At(r.Uint64N(d.Ops() + 1)).Crash(disk.RandomChoice(r, true))
		if err := j.recovered(again); err != nil {
			return fmt.Errorf("after a crash within the recovery: %w", err)
		}
		if j.got != first {
			return errors.New("a recovery that crashed gives another state than one that did not")
		}
	}
	if j.h.clients == nil && r.IntN(8) == 0 { // the medium fails as well
		c.Images++
		c.Damaged++
		if err := j.rotten(hit(j.image, j.same.varying, r)); err != nil {
			return err
		}
	}
	often := 4
	if c.Equal > equal { // as another one was
		often = 32
	}
	if r.IntN(often) == 0 {
		return used(d)
	}
	return nil
}

// doubts: one of so many images is recovered although it is known what comes of that.
const doubts = 32

// quiet is where volumes say what is wrong. It is told as what was found.
var quiet = slog.New(slog.DiscardHandler)

// options are those of each recovery.
var options = fs.Options{Clock: func() time.Time { return time.Unix(2e9, 0) }, Log: quiet, CacheBytes: 4 << 20}

// recovered recovers d. Its state must be one that is allowed, and the checker must find it clean.
func (j *judge) recovered(d *disk.Sim) error {
	t := newTraced(d, j.same.varying)
	v, err := fs.Open(t, options)
	if err != nil {
		return fmt.Errorf("the volume cannot be opened: %w", err)
	}
	sum := j.same.learn(t)
	if tree, known := j.same.trees[sum]; known {
		j.got = tree
		j.count.Equal++
	} else if j.got, err = j.h.see(v); err == nil {
		j.same.trees[sum] = j.got
	}
	if e := v.Close(); err == nil {
		err = e
	}
	if err != nil {
		return fmt.Errorf("the volume cannot be read: %w", err)
	}
	if err := j.right(); err != nil {
		return err
	}
	return j.clean(d)
}

// right is an error if the state that was recovered is none that the crash may leave.
func (j *judge) right() error {
	if j.h.clients != nil {
		if !slices.Contains(j.h.clients.allowed(j.moment), j.got) {
			return errors.New("no order of the steps, up to any place that has what was acknowledged, gives the state")
		}
		return nil
	}
	lo, hi := j.h.allowed(j.moment)
	if slices.Contains(j.h.states[lo:hi+1], j.got) {
		return nil
	}
	for i, s := range j.h.states {
		if s == j.got {
			return fmt.Errorf("the state is that after %d steps: it must be one of those after %d to %d", i, lo, hi)
		}
	}
	return fmt.Errorf("the state is none that there ever was: it must be one of those after %d to %d steps", lo, hi)
}

// clean is an error if the checker finds something in what was recovered, or did so before.
func (j *judge) clean(d *disk.Sim) error {
	sum := j.same.log.sum(d)
	if j.same.clean[sum] {
		return nil
	}
	if err := clean(d); err != nil {
		return err
	}
	j.same.clean[sum] = true
	return nil
}

// clean is an error if the checker finds something.
func clean(d disk.Disk) error {
	rep, err := check.Volume(d, check.Options{Data: true})
	if err != nil {
		return fmt.Errorf("the check fails: %w", err)
	}
	if rep.Clean() {
		return nil
	}
	var lines []string
	for _, p := range rep.Problems {
		lines = append(lines, p.String())
	}
	return errors.New("the check finds: " + strings.Join(lines, "; "))
}

// used works with a volume that was recovered.
func used(d disk.Disk) error {
	v, err := fs.Open(d, options)
	if err != nil {
		return fmt.Errorf("the volume cannot be opened a second time: %w", err)
	}
	for _, s := range []Step{
		"mkdir N", "setdefault N u::rwx,u:99:r--,g::r-x,m::r-x,o::---", "create N/n", "write N/n 0 50000",
		"rename N/n n", "remove n", "rmdir N",
	} {
		if err = s.do(v); err != nil {
			err = fmt.Errorf("the recovered volume cannot be used: %s: %w", s, err)
			break
		}
	}
	if e := v.Close(); err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	return clean(d)
}
