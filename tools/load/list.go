package load

import (
	"errors"
	"fmt"
)

// listSize is how much of a listing a call asks for, in bytes.
const listSize = 64 << 10

// List reads a whole directory by READDIRPLUS, and returns the number of its entries, without "." and "..".
func (c *Conn) List(dir Handle) (entries int, err error) {
	var cookie, verf uint64
	for eof := false; err == nil && !eof; {
		err = c.call(nfsProgram, procList, func(e *encoder) {
			e.opaque(dir)
			e.u64(cookie)
			e.u64(verf)
			e.u32(listSize)
			e.u32(listSize)
		}, func(d *decoder) error {
			st := d.u32()
			skipAttr(d)
			if st != 0 {
				return status(fmt.Sprintf("READDIRPLUS from cookie %d", cookie), st)
			}
			verf = d.u64()
			page := 0
			for d.u32() != 0 {
				d.u64() // fileid
				if name := string(d.opaque()); name != "." && name != ".." {
					entries++
				}
				cookie = d.u64()
				skipAttr(d)
				if d.u32() != 0 {
					d.opaque() // handle
				}
				page++
			}
			if eof = d.u32() != 0; !eof && page == 0 {
				return errors.New("READDIRPLUS: a page without entries that is not the last one")
			}
			return nil
		})
	}
	return entries, err
}
