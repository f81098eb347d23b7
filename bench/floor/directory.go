package floor

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"tansy/tools/load"
)

// Numbers of operations in one measurement of a directory.
const (
	creates = 1000
	lookups = 20_000
)

// directory measures CREATE, LOOKUP, and REMOVE in directories of three sizes, and a listing by READDIRPLUS, each entry
// of it: their cost must not grow with the directory.
func directory(b *bench) error {
	sizes := []int{1000, 10_000, 100_000}
	sizes = slices.DeleteFunc(sizes, func(n int) bool { return n > b.entries })
	if last := sizes[len(sizes)-1]; last < b.entries {
		sizes = append(sizes, b.entries)
	}
	conns, dirs, done, err := b.clients("directory", len(sizes))
	if err != nil {
		return err
	}
	defer done()
	c := conns[0]
	var grown []*bigDir
	var ms []measurement
	for i, n := range sizes {
		d := &bigDir{c: c, dir: dirs[i], depth: b.depth, size: n}
		begin := time.Now()
		if err := d.create(0, n); err != nil {
			return err
		}
		if i == len(sizes)-1 {
			b.table.note(fmt.Sprintf("growing a directory to %d", n), float64(n)/time.Since(begin).Seconds(), "/s")
		}
		grown = append(grown, d)
		ms = append(ms, d.measureCreate, d.measureLookup, d.measureRemove, d.measureList)
	}
	v, err := b.inTurns(true, ms...)
	if err != nil {
		return err
	}
	for i, n := range sizes[1:] {
		goal := 0.0
		if n == b.entries {
			goal = 1.5
		}
		for k, op := range []string{"CREATE", "LOOKUP", "REMOVE", "one entry of a listing"} {
			b.table.row(fmt.Sprintf("%s in a directory of %d", op, n), v[4*(i+1)+k], v[k], "us", goal, true)
		}
	}
	for _, d := range grown {
		if err := d.remove(0, d.size); err != nil {
			return err
		}
	}
	return nil
}

// bigDir is a directory with entries numbered from 0.
type bigDir struct {
	c     *load.Conn
	dir   load.Handle
	depth int
	size  int
}

func entryName(i int) string { return fmt.Sprintf("entry-%07d", i) }

// pipelined starts n operations, with a bounded number in flight.
func (d *bigDir) pipelined(n int, start func(i int)) error {
	for i := range n {
		start(i)
		if err := d.c.Wait(d.depth - 1); err != nil {
			return err
		}
	}
	return d.c.Wait(0)
}

func (d *bigDir) create(from, to int) error {
	return d.pipelined(to-from, func(i int) { d.c.StartCreate(d.dir, entryName(from+i), nil) })
}

func (d *bigDir) remove(from, to int) error {
	return d.pipelined(to-from, func(i int) { d.c.StartRemove(d.dir, entryName(from+i)) })
}

// micros is the cost of one of n operations since begin.
func micros(n int, begin time.Time) float64 {
	return float64(time.Since(begin).Microseconds()) / float64(n)
}

func (d *bigDir) measureCreate(time.Duration) (float64, error) {
	begin := time.Now()
	if err := d.create(d.size, d.size+creates); err != nil {
		return 0, err
	}
	cost := micros(creates, begin)
	return cost, d.remove(d.size, d.size+creates)
}

func (d *bigDir) measureRemove(time.Duration) (float64, error) {
	if err := d.create(d.size, d.size+creates); err != nil {
		return 0, err
	}
	begin := time.Now()
	err := d.remove(d.size, d.size+creates)
	return micros(creates, begin), err
}

func (d *bigDir) measureList(time.Duration) (float64, error) {
	begin := time.Now()
	n, err := d.c.List(d.dir)
	if err == nil && n != d.size {
		err = fmt.Errorf("READDIRPLUS: %d entries of %d", n, d.size)
	}
	return micros(n, begin), err
}

// measureLookup looks up names at random, one in eight of which does not exist.
func (d *bigDir) measureLookup(time.Duration) (float64, error) {
	r := rand.New(rand.NewPCG(1, uint64(d.size)))
	begin := time.Now()
	err := d.pipelined(lookups, func(i int) {
		k := r.IntN(d.size)
		if i%8 == 0 {
			k += d.size
		}
		d.c.StartLookup(d.dir, entryName(k), func(h load.Handle) error {
			if (h != nil) != (k < d.size) {
				return fmt.Errorf("LOOKUP %s: WRONG ANSWER among %d entries", entryName(k), d.size)
			}
			return nil
		})
	})
	return micros(lookups, begin), err
}
