package load

import (
	"math/rand/v2"
	"time"
)

// Workload is something that clients do again and again.
type Workload struct {
	Name, About string
	Bytes       bool // its rate is that of its data
	Deep        bool // a client has several calls in flight; else it waits for each

	file bool // it wants one
	// begin queues operation i, which calls took when it is done. It may wait for it.
	begin func(c *client, i int) error
	end   func(c *client) error // or nil: what is measured, too, when all of them are done
}

// smallIO is the size of random READs and WRITEs in bytes.
const smallIO = 4096

var workloads = []Workload{
	{Name: "null", About: "NULL, which does nothing", begin: func(c *client, _ int) error {
		at := time.Now()
		c.StartNull()
		err := c.Wait(0)
		c.took(at, 0)
		return err
	}},
	{Name: "getattr", About: "GETATTR of a directory", begin: func(c *client, _ int) error {
		at := time.Now()
		c.StartGetattr(c.dir, func(uint64) error {
			c.took(at, 0)
			return nil
		})
		return c.Wait(0)
	}},
	{Name: "lookup", About: "LOOKUP of a file", file: true, begin: func(c *client, _ int) error {
		at := time.Now()
		c.StartLookup(c.dir, fileName, func(h Handle) error {
			c.took(at, 0)
			return Expect("LOOKUP", h, c.file)
		})
		return c.Wait(0)
	}},
	{Name: "create", About: "CREATE of one file after the other in one directory", begin: func(c *client, i int) error {
		at := time.Now()
		c.StartCreate(c.dir, madeName(i), func(Handle) error {
			c.made = i + 1
			c.took(at, 0)
			return nil
		})
		return c.Wait(0)
	}},
	{Name: "smallfile", About: "LOOKUP, CREATE, WRITE of 100 bytes FILE_SYNC, REMOVE; together they are one",
		begin: func(c *client, _ int) error {
			at := time.Now()
			err := c.SmallFile(c.dir, "small")
			c.took(at, 0)
			return err
		}},
	{Name: "mixed", About: "LOOKUP 35, READ 20, GETATTR 15, WRITE UNSTABLE 10, READDIRPLUS 10, COMMIT 5, " +
		"CREATE or REMOVE 5 of 100 calls; 16 KiB of data", file: true,
		begin: func(c *client, _ int) error {
			return c.mixed()
		}},
	{Name: "write", About: "WRITEs in order, UNSTABLE, and a COMMIT at the end", Bytes: true, Deep: true, file: true,
		begin: func(c *client, i int) error {
			return c.write(c.inOrder(i), c.cfg.IOSize, Unstable)
		}, end: func(c *client) error {
			_, err := c.Commit(c.file)
			return err
		}},
	{Name: "writesync", About: "WRITEs in order, FILE_SYNC", Bytes: true, Deep: true, file: true,
		begin: func(c *client, i int) error {
			return c.write(c.inOrder(i), c.cfg.IOSize, FileSync)
		}},
	{Name: "randwrite", About: "WRITEs of 4 KiB at random, FILE_SYNC", file: true, begin: func(c *client, _ int) error {
		return c.write(c.anywhere(), smallIO, FileSync)
	}},
	{Name: "read", About: "READs in order", Bytes: true, Deep: true, file: true, begin: func(c *client, i int) error {
		return c.read(c.inOrder(i), c.cfg.IOSize)
	}},
	{Name: "randread", About: "READs of 4 KiB at random", file: true, begin: func(c *client, _ int) error {
		return c.read(c.anywhere(), smallIO)
	}},
}

// Workloads are all that there are.
func Workloads() []Workload { return workloads }

// inOrder is where operation i takes place in the file, which is gone through again and again.
func (c *client) inOrder(i int) uint64 {
	n := c.cfg.FileSize / uint64(c.cfg.IOSize)
	return uint64(i) % n * uint64(c.cfg.IOSize)
}

// anywhere is a place for a small operation.
func (c *client) anywhere() uint64 { return rand.Uint64N(c.cfg.FileSize/smallIO) * smallIO }

// write has the file hold there what it has held before.
func (c *client) write(off uint64, n int, stable uint32) error {
	c.p.Fill(c.buf[:n], off)
	at := time.Now()
	c.StartWrite(c.file, off, c.buf[:n], stable, func(uint64) error {
		c.took(at, n)
		return nil
	})
	return nil
}

// read reads and checks n bytes.
func (c *client) read(off uint64, n int) error {
	at := time.Now()
	c.StartReadAll(c.file, c.p, off, off+uint64(n), func() { c.took(at, n) })
	return nil
}
