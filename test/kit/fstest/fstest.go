// Package fstest compares file systems: it does the same random operations on
// two of them and reports the first result that differs. The model (fs/model) is
// the oracle; the other may be the verified file system or a client at the other
// end of a socket.
package fstest

import (
	"fmt"
	"math/rand"
	"time"

	"tansy/fs"
)

// Clock is a clock that stands still between operations, so that both file
// systems put down the same times.
type Clock struct{ now time.Time }

// NewClock starts at a fixed time.
func NewClock() *Clock { return &Clock{time.Unix(1_700_000_000, 5)} }

// Now is an fs.Clock.
func (c *Clock) Now() time.Time { return c.now }

// step goes on a second or so most of the time; else the clock stands still or goes back, as clocks do.
func (c *Clock) step(r *rand.Rand) {
	switch r.Intn(8) {
	case 0:
	case 1:
		c.now = c.now.Add(-time.Duration(r.Intn(5_000_000)) * time.Microsecond)
	default:
		c.now = c.now.Add(1_000_003 * time.Microsecond)
	}
}

// Options of a Comparer.
type Options struct {
	Seed  int64
	Clock *Clock // both file systems must use it; nil: times are not compared
	// MaxOffset bounds the offsets of reads and writes, in bytes; default 256 KiB.
	MaxOffset int
	// MaxWrite bounds the data of one WRITE, in bytes; default 20,000.
	MaxWrite int
	// Far adds offsets around the limits of files.
	Far bool
}

// Comparer does operations on two file systems.
type Comparer struct {
	opt  Options
	rnd  *rand.Rand
	a, b fs.FileSystem
	// Objects are pairs of handles that mean the same, the root first. Some of
	// them are stale.
	objs  []pair
	index map[fs.Handle]int // by a's handle
	log   []string
}

type pair struct{ a, b fs.Handle }

// New makes a Comparer of two empty file systems.
func New(a, b fs.FileSystem, opt Options) *Comparer {
	if opt.MaxOffset == 0 {
		opt.MaxOffset = 256 << 10
	}
	if opt.MaxWrite == 0 {
		opt.MaxWrite = 20000
	}
	c := &Comparer{opt: opt, rnd: rand.New(rand.NewSource(opt.Seed)), a: a, b: b, index: map[fs.Handle]int{}}
	c.learn(a.Root(), b.Root())
	return c
}

// Run does n operations and then compares everything that can be reached. The
// error tells the seed and the last operations.
func (c *Comparer) Run(n int) error {
	for i := range n {
		if c.opt.Clock != nil {
			c.opt.Clock.step(c.rnd)
		}
		if err := c.step(); err != nil {
			return c.fail(fmt.Sprintf("operation %d", i), err)
		}
	}
	if err := c.CompareTrees(); err != nil {
		return c.fail("at the end", err)
	}
	return nil
}

func (c *Comparer) fail(where string, err error) error {
	s := ""
	for _, l := range c.log {
		s += "\n  " + l
	}
	return fmt.Errorf("seed %d, %s: %w; last operations:%s", c.opt.Seed, where, err, s)
}

// note records an operation for the report.
func (c *Comparer) note(format string, args ...any) {
	if len(c.log) > 30 {
		c.log = c.log[1:]
	}
	c.log = append(c.log, fmt.Sprintf(format, args...))
}

// learn pairs two handles. It returns an error if one is known with another
// partner.
func (c *Comparer) learn(a, b fs.Handle) error {
	if i, ok := c.index[a]; ok {
		if c.objs[i].b != b {
			return fmt.Errorf("object %d has handles %v and %v, now %v", i, a, c.objs[i].b, b)
		}
		return nil
	}
	for i, o := range c.objs {
		if o.b == b {
			return fmt.Errorf("handle %v of object %d was given out for another object", b, i)
		}
	}
	c.index[a] = len(c.objs)
	c.objs = append(c.objs, pair{a, b})
	return nil
}
