package load

import (
	"math/rand/v2"
	"time"
)

// mixedIO is the most that a READ or WRITE of the mix is of, in bytes.
const mixedIO = 16 << 10

// piece is a random one of the client's file.
func (c *client) piece() (off uint64, n int) {
	n = min(mixedIO, c.cfg.IOSize)
	return rand.Uint64N(c.cfg.FileSize/uint64(n)) * uint64(n), n
}

// mix is what the clients of a file server of an office ask for, of 100 calls, about as SPEC SFS97 has it for NFSv3.
var mix = []struct {
	of100 int
	do    func(c *client) (bytes int, err error) // of data
}{
	{35, func(c *client) (int, error) {
		c.StartLookup(c.dir, fileName, func(h Handle) error { return Expect("LOOKUP", h, c.file) })
		return 0, c.Wait(0)
	}},
	{15, func(c *client) (int, error) {
		c.StartGetattr(c.file, func(uint64) error { return nil })
		return 0, c.Wait(0)
	}},
	{20, func(c *client) (int, error) {
		off, n := c.piece()
		c.StartReadAll(c.file, c.p, off, off+uint64(n), func() {})
		return n, c.Wait(0)
	}},
	{10, func(c *client) (int, error) {
		off, n := c.piece()
		c.p.Fill(c.buf[:n], off)
		c.StartWrite(c.file, off, c.buf[:n], Unstable, func(uint64) error { return nil })
		return n, c.Wait(0)
	}},
	{5, func(c *client) (int, error) {
		_, err := c.Commit(c.file)
		return 0, err
	}},
	{10, func(c *client) (int, error) {
		_, err := c.List(c.dir)
		return 0, err
	}},
	{5, func(c *client) (int, error) {
		if c.made == 0 {
			c.StartCreate(c.dir, madeName(0), nil)
		} else {
			c.StartRemove(c.dir, madeName(0))
		}
		c.made = 1 - c.made
		return 0, c.Wait(0)
	}},
}

// mixed does one call of the mix.
func (c *client) mixed() error {
	n := rand.IntN(100)
	at := time.Now()
	for _, m := range mix {
		if n -= m.of100; n < 0 {
			bytes, err := m.do(c)
			c.took(at, bytes)
			return err
		}
	}
	panic("load: the mix is of less than 100 calls")
}
