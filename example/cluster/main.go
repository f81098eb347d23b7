// Cluster runs four volumes on three hosts, on this machine, through the upgrade of one host after the other and the
// failure of one, while clients work on all volumes: none of them sees an error. It is the design of
// docs/design/scale.md, small.
//
//	go run ./example/cluster
//
// Here hosts are groups of processes, and the address of a volume is one of the loopback device, 127.9.0.N, on which a
// server listens only when the volume is its own: so it is where the volume is. In the place of Ceph there is a
// stand-in for its helper, with files for images, and their locks (test/kit/rbdtest): what is shown is where volumes go
// and what clients see, and not that a fence holds. All else is the program as it is. Needs Linux, and Go, to build the
// program.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"tansy/test/kit/commandline"
)

func main() {
	seed := flag.Uint64("seed", 1, "seed of the clients' load")
	verbose := flag.Bool("v", false, "show what the servers log")
	commandline.Parse("usage: go run ./example/cluster [flags]", 0, 0)
	dir, err := os.MkdirTemp("", "tansy-cluster-")
	if err == nil {
		defer os.RemoveAll(dir)
		err = run(dir, *seed, *verbose)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.RemoveAll(dir)
		os.Exit(1)
	}
}

// run is the whole of it, in an empty folder.
func run(dir string, seed uint64, verbose bool) error {
	c, err := newCluster(dir, verbose)
	if err != nil {
		return err
	}
	defer c.kill()
	for _, v := range c.volumes {
		if err := c.place(v); err != nil {
			return err
		}
	}
	c.show("all hosts are up")
	load, err := c.work(seed)
	if err != nil {
		return err
	}
	if err := c.story(load); err != nil {
		return err
	}
	if err := load.stop(); err != nil {
		return err
	}
	for _, v := range c.volumes {
		if err := c.retire(v); err != nil {
			return err
		}
		if err := command(filepath.Join(dir, "new"), "check", "--data", v.name); err != nil {
			return err
		}
	}
	fmt.Println("all volumes are clean")
	return nil
}

// story is what happens to the hosts. After each step all clients have to go on.
func (c *cluster) story(load *load) error {
	step := func(what string, do func() error) error {
		if err := do(); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		if err := load.progress(); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		c.show(what)
		return nil
	}
	for _, h := range c.hosts {
		err := step(h.name+" is drained", func() error { return c.drain(h) })
		if err == nil {
			h.binary = filepath.Join(c.dir, "new")
			err = step(h.name+" is upgraded, and back", func() error { return c.back(h) })
		}
		if err != nil {
			return err
		}
	}
	if err := c.allNew(); err != nil {
		return err
	}
	failing := c.hosts[0]
	if err := step(failing.name+" fails", func() error { return c.fail(failing) }); err != nil {
		return err
	}
	if err := step(failing.name+" is back", func() error { return c.back(failing) }); err != nil {
		return err
	}
	return step("volumes are moved home", c.home)
}
