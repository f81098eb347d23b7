package check

import (
	"maps"
	"slices"

	"tansy/disk"
)

// view reads the volume as recovery will leave it: blocks that the log still has
// to install come from there.
type view struct {
	d   disk.Disk
	log map[uint64][]byte
}

// read fills buf with block a.
func (v *view) read(a uint64, buf []byte) error {
	if b, ok := v.log[a]; ok {
		copy(buf, b)
		return nil
	}
	return v.d.ReadAt(a, [][]byte{buf})
}

// scan calls f for the blocks [from, to) in order. The buffer is f's until it returns.
func (v *view) scan(from, to uint64, f func(a uint64, buf []byte) error) error {
	const batch = 64
	mem := make([]byte, batch*disk.BlockSize)
	var bufs [batch][]byte
	for i := range bufs {
		bufs[i] = mem[i*disk.BlockSize : (i+1)*disk.BlockSize]
	}
	for a := from; a < to; {
		n := min(to-a, batch)
		if err := v.d.ReadAt(a, bufs[:n]); err != nil {
			return err
		}
		for i, buf := range bufs[:n] {
			if b, ok := v.log[a+uint64(i)]; ok {
				copy(buf, b)
			}
			if err := f(a+uint64(i), buf); err != nil {
				return err
			}
		}
		a += n
	}
	return nil
}

// eachLogged calls f for the blocks that come from the log, in order.
func (v *view) eachLogged(f func(a uint64)) {
	for _, a := range slices.Sorted(maps.Keys(v.log)) {
		f(a)
	}
}
