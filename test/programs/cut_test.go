//go:build linux

package programs

import (
	"math/rand/v2"
	"testing"

	"tansy/disk"
	"tansy/test/kit/nbdtest"
)

// A cutting is a device at the other end of a connection, whose power is cut after some number of writes and barriers:
// it loses and tears what no barrier has covered.
type cutting struct {
	server nbdtest.Server
	name   string
	now    *disk.Sim
	device func(*disk.Sim) disk.Disk // what is exported of it
	most   float64                   // writes and barriers until a cut
}

func newCutting(t *testing.T) *cutting {
	c := &cutting{now: disk.NewSim(size), most: 2000}
	c.as(func(d *disk.Sim) disk.Disk { return d })
	c.name = c.server.Start(t, c.now)
	t.Cleanup(func() { c.now.Close() }) // before the server ends, which waits for what is stuck in it
	return c
}

// as has whoever connects from now on see the device as something else.
func (c *cutting) as(device func(*disk.Sim) disk.Disk) {
	c.device = device
	c.server.SetDisk(device(c.now))
}

func (c *cutting) volume() string { return c.name }

func (c *cutting) due(r *rand.Rand, soon bool) (<-chan struct{}, func()) {
	most := c.most
	if soon {
		most = 100
	}
	return c.now.FreezeAfter(c.now.Ops()+few(r, most), true), func() {}
}

func (c *cutting) crash(r *rand.Rand) {
	c.now.FreezeAfter(0, true)
	left := c.now.Crash(disk.RandomChoice(r, true))
	c.now.Close()
	c.now = left
	c.server.SetDisk(c.device(left))
}
