package main

import (
	"context"
	"fmt"
	"time"

	"tansy/bench/internal/rig"
	"tansy/tools/load"
)

// rpcConnections is the number of connections of the rpc workload.
const rpcConnections = 8

// roundTrips measures calls that cost nothing but the way: NULL, and GETATTR of
// one file.
func roundTrips(b *bench) error {
	conns, dirs, done, err := b.clients("rpc", rpcConnections)
	if err != nil {
		return err
	}
	defer done()
	size := func(uint64) error { return nil }
	for _, c := range []struct {
		name  string
		reply int // bytes
		start func(i int)
	}{
		{"NULL", 28, func(i int) { conns[i].StartNull() }},
		{"GETATTR", 28 + 4 + load.AttrSize, func(i int) { conns[i].StartGetattr(dirs[0], size) }},
	} {
		c.start(0)
		call := len(conns[0].Queued())
		if err := conns[0].Wait(0); err != nil {
			return err
		}
		e, err := rig.StartEcho(call, c.reply)
		if err != nil {
			return err
		}
		ours := func(d time.Duration) (float64, error) {
			rate, _, err := rig.Repeat(context.Background(), d, rpcConnections, func(i, _ int) error {
				for range 64 {
					c.start(i)
					if err := conns[i].Wait(b.rpcDepth - 1); err != nil {
						return err
					}
				}
				return nil
			})
			for _, c := range conns {
				if err == nil {
					err = c.Wait(0)
				}
			}
			return rate * 64, err
		}
		floor := func(d time.Duration) (float64, error) { return e.Measure(d, rpcConnections, b.rpcDepth) }
		name := fmt.Sprintf("%s, connections: %d, calls in flight: %d", c.name, rpcConnections, b.rpcDepth)
		err = b.compare(name, "/s", 0.5, ours, floor)
		e.Stop()
		if err != nil {
			return err
		}
	}
	return nil
}
