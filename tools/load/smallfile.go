package load

import "fmt"

// SmallData is what SmallFile writes.
var SmallData = func() []byte {
	b := make([]byte, PatternBlock)
	Pattern{File: 100}.Fill(b, 0)
	return b[:100]
}()

// SmallFile looks up a name, creates the file, writes 100 bytes durably, and removes it: the classic of
// synchronous servers. Three of the four steps must be durable before the next begins.
func (c *Conn) SmallFile(dir Handle, name string) error {
	c.StartLookup(dir, name, func(h Handle) error {
		if h != nil {
			return fmt.Errorf("LOOKUP %s: found what is not there", name)
		}
		return nil
	})
	if err := c.Wait(0); err != nil {
		return err
	}
	c.StartCreate(dir, name, func(h Handle) error {
		c.StartWrite(h, 0, SmallData, FileSync, func(uint64) error { return nil })
		return nil
	})
	if err := c.Wait(0); err != nil {
		return err
	}
	c.StartRemove(dir, name)
	return c.Wait(0)
}
