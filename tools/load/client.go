package load

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// client is one of the clients of a workload: it has a connection, a directory, and what it has measured.
type client struct {
	*Conn
	cfg  *Config
	dir  Handle
	name string // of dir
	file Handle // if the workload wants one; it is full
	p    Pattern
	made int    // files of the workload that are to be removed
	buf  []byte // for WRITEs

	latency Histogram
	bytes   uint64
}

// fileName is the name of the file that a client reads and writes.
const fileName = "file"

// connect makes a client with an empty directory.
func connect(cfg *Config, root Handle, i int) (c *client, err error) {
	c = &client{
		cfg: cfg, name: fmt.Sprintf("tansy-bench-%d-%d", cfg.run, i),
		p: Pattern{File: uint64(i)}, buf: make([]byte, max(cfg.IOSize, smallIO)),
	}
	if c.Conn, err = cfg.dial(cfg.Addr, cfg.Clients == 1); err != nil {
		return nil, err
	}
	if c.dir, err = c.Mkdir(root, c.name); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// mountRoot is the handle of the export.
func mountRoot(cfg *Config) (Handle, error) {
	m, err := cfg.dial(cfg.MountAddr, true)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	return m.Mount(cfg.Export)
}

// makeFile makes the file, durable, with all of its contents.
func (c *client) makeFile(ctx context.Context) error {
	c.StartCreate(c.dir, fileName, func(h Handle) error {
		c.file = slices.Clone(h)
		return nil
	})
	if err := c.Wait(0); err != nil {
		return err
	}
	buf := c.buf[:c.cfg.IOSize]
	for off := uint64(0); off < c.cfg.FileSize; off += uint64(len(buf)) {
		if err := ctx.Err(); err != nil {
			return err
		}
		c.p.Fill(buf, off)
		c.StartWrite(c.file, off, buf, Unstable, func(uint64) error { return nil })
		if err := c.Wait(c.cfg.Depth - 1); err != nil {
			return err
		}
	}
	if err := c.Wait(0); err != nil {
		return err
	}
	_, err := c.Commit(c.file)
	return err
}

// forget removes the files that a workload has made, and what was measured.
func (c *client) forget() error {
	for i := range c.made {
		c.StartRemove(c.dir, madeName(i))
		if err := c.Wait(c.cfg.Depth - 1); err != nil {
			return err
		}
	}
	c.made, c.latency, c.bytes = 0, Histogram{}, 0
	return c.Wait(0)
}

// close removes all that the client has made.
func (c *client) close(root Handle) error {
	defer c.Close()
	for left := -1; left != len(c.pending); { // after an error; others of these calls fail as well, perhaps
		left = len(c.pending)
		c.Wait(0)
	}
	if err := c.forget(); err != nil {
		return err
	}
	if c.file != nil {
		c.StartRemove(c.dir, fileName)
	}
	if err := c.Wait(0); err != nil { // calls that are in flight together are in no order
		return err
	}
	c.StartRmdir(root, c.name)
	return c.Wait(0)
}

func madeName(i int) string { return fmt.Sprintf("made-%07d", i) }

// took counts an operation that began then and is done.
func (c *client) took(begin time.Time, bytes int) {
	c.latency.Add(time.Since(begin))
	c.bytes += uint64(bytes)
}
