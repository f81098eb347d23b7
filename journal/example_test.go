package journal_test

import (
	"bytes"
	"fmt"

	"tansy/disk"
	"tansy/journal"
)

// Two blocks change together, or not at all.
func Example() {
	d := disk.NewMem(4096 * disk.BlockSize) // in real life: disk.OpenFile
	p := journal.Params{Units: 64, Ring: 1000, Key: [32]byte{1, 2, 3}}
	if err := journal.Format(d, p); err != nil {
		panic(err)
	}
	j, err := journal.Open(d, p, journal.Options{})
	if err != nil {
		panic(err)
	}
	from, to := p.Home(), p.Home()+1
	err = j.Commit([]journal.Write{
		{Addr: from, Data: bytes.Repeat([]byte("-"), disk.BlockSize)},
		{Addr: to, Data: bytes.Repeat([]byte("+"), disk.BlockSize)},
	}, true) // true: return when it is durable
	if err != nil {
		panic(err)
	}
	buf := make([]byte, disk.BlockSize)
	for _, a := range []uint64{from, to} {
		if err := j.Read(a, buf); err != nil {
			panic(err)
		}
		fmt.Printf("%s\n", buf[:3])
	}
	if err := j.Close(); err != nil {
		panic(err)
	}
	// Output:
	// ---
	// +++
}
