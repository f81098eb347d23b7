//go:build linux

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"tansy/bench/internal/figures"
	"tansy/tools/load"
)

// directorySizes are the numbers of entries.
func directorySizes(o options) (ns []int) {
	for n := 1000; n < o.entries; n *= 10 {
		ns = append(ns, n)
	}
	return append(ns, o.entries)
}

func directoryMetrics(o options) (ms []figures.Metric) {
	for _, n := range directorySizes(o) {
		of := fmt.Sprintf("%s entries: ", figures.Number(float64(n)))
		ms = append(ms, figures.Metric{Name: of + "growing to that", Unit: "CREATEs/s"},
			figures.Metric{Name: of + "LOOKUP at random", Unit: "us", Lower: true},
			figures.Metric{Name: of + "READDIRPLUS of all", Unit: "entries/s"})
	}
	return ms
}

// calls in flight while a directory grows.
const growing = 64

// directories has a directory grow, and looks names up and lists it at each of the sizes.
func directories(ctx context.Context, s *served) (fs []float64, err error) {
	c, dir, err := s.connect("directory")
	if err != nil {
		return nil, err
	}
	defer c.Close()
	name := func(i int) string { return fmt.Sprintf("entry-%07d", i) }
	have := 0
	for _, n := range directorySizes(s.options) {
		begin := time.Now()
		for i := have; i < n && ctx.Err() == nil; i++ {
			c.StartCreate(dir, name(i), nil)
			if err := c.Wait(growing - 1); err != nil {
				return nil, err
			}
		}
		if err := c.Wait(0); err != nil {
			return nil, err
		}
		grown := float64(n-have) / time.Since(begin).Seconds()
		have = n

		looked, begin := 0, time.Now()
		for ; time.Since(begin) < s.duration && ctx.Err() == nil; looked++ {
			k := rand.IntN(n)
			c.StartLookup(dir, name(k), func(h load.Handle) error {
				if h == nil {
					return fmt.Errorf("LOOKUP %s: WRONG ANSWER, there is none", name(k))
				}
				return nil
			})
			if err := c.Wait(0); err != nil {
				return nil, err
			}
		}
		lookup := micros(time.Since(begin)) / float64(looked)

		listed, begin := 0, time.Now()
		for time.Since(begin) < s.duration && ctx.Err() == nil {
			entries, err := c.List(dir)
			if err == nil && entries != n {
				err = fmt.Errorf("WRONG LISTING: %d entries of %d", entries, n)
			}
			if err != nil {
				return nil, err
			}
			listed += entries
		}
		fs = append(fs, grown, lookup, float64(listed)/time.Since(begin).Seconds())
	}
	return fs, ctx.Err()
}
