package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"tansy/bench/internal/rig"
	"tansy/tools/load"
)

// smallfile is the classic of synchronous servers: each client looks up a name,
// creates the file, writes 100 bytes durably, and removes it. Three of the four
// steps must be durable before the next begins.
func smallfile(b *bench) error {
	for _, clients := range []int{1, 8, 32} {
		goal := 0.7
		if clients == 32 {
			goal = 0
		}
		if err := smallfileRow(b, clients, goal); err != nil {
			return err
		}
	}
	return nil
}

func smallfileRow(b *bench, clients int, goal float64) error {
	conns, dirs, done, err := b.clients("small", clients)
	if err != nil {
		return err
	}
	defer done()
	if err := checkSmallfile(conns[0], dirs[0]); err != nil {
		return err
	}
	locals := make([]string, clients)
	for i := range locals {
		if locals[i], err = os.MkdirTemp(b.dir, "small-"); err != nil {
			return err
		}
		defer os.RemoveAll(locals[i])
	}
	var files, barriers float64
	ours := func(d time.Duration) (float64, error) {
		before, _ := b.diskCounts()
		rate, n, err := rig.Repeat(context.Background(), d, clients, func(i, k int) error {
			return conns[i].SmallFile(dirs[i], fmt.Sprint("file", k))
		})
		if after, ok := b.diskCounts(); ok {
			barriers += float64(after.Barriers - before.Barriers)
		}
		files += n
		return rate, err
	}
	floor := func(d time.Duration) (float64, error) {
		rate, _, err := rig.Repeat(context.Background(), d, clients, func(i, k int) error {
			return rig.SmallFile(locals[i], fmt.Sprint("file", k))
		})
		return rate, err
	}
	if err := b.compare(fmt.Sprintf("smallfile, clients: %d", clients), "/s", goal, ours, floor); err != nil {
		return err
	}
	if barriers > 0 {
		b.table.note("  barriers per durable step", barriers/(3*files), "")
	}
	return nil
}

// benchDir names the directory of client i in a workload; it is different in
// every run.
func benchDir(workload string, i int) string {
	return fmt.Sprintf("bench-%d-%s-%d", os.Getpid(), workload, i)
}

// clients makes connections, and a directory for each.
func (b *bench) clients(name string, n int) (conns []*load.Conn, dirs []load.Handle, done func(), err error) {
	names := make([]string, n)
	var root load.Handle
	done = func() {
		for i, c := range conns {
			if i < len(dirs) {
				c.StartRmdir(root, names[i])
				c.Wait(0) // best effort: the volume is ours or somebody will see what is left
			}
			c.Close()
		}
	}
	defer func() {
		if err != nil {
			done()
		}
	}()
	for i := range n {
		c, err := load.Dial(b.addr, n == 1)
		if err != nil {
			return conns, dirs, done, err
		}
		conns = append(conns, c)
		if root, err = c.Mount("/"); err != nil {
			return conns, dirs, done, err
		}
		names[i] = benchDir(name, i)
		dir, err := c.Mkdir(root, names[i])
		if err != nil {
			return conns, dirs, done, err
		}
		dirs = append(dirs, dir)
	}
	return conns, dirs, done, nil
}

// checkSmallfile reads back what one round wrote.
func checkSmallfile(c *load.Conn, dir load.Handle) error {
	c.StartCreate(dir, "check", func(h load.Handle) error {
		h = append(load.Handle(nil), h...)
		c.StartWrite(h, 0, load.SmallData, load.FileSync, func(uint64) error {
			c.StartRead(h, 0, 200, func(got []byte) error { return load.Expect("small file", got, load.SmallData) })
			return nil
		})
		return nil
	})
	if err := c.Wait(0); err != nil {
		return err
	}
	c.StartRemove(dir, "check")
	return c.Wait(0)
}
