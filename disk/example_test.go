package disk_test

import (
	"bytes"
	"fmt"

	"tansy/disk"
)

// A write is durable once a barrier after it has returned; until then a crash may
// lose it.
func Example() {
	d := disk.NewSim(8 * disk.BlockSize) // in real life: disk.OpenFile
	block := func(s string) [][]byte { return [][]byte{bytes.Repeat([]byte(s), disk.BlockSize)} }
	if err := d.WriteAt(3, block("a")); err != nil {
		panic(err)
	}
	if err := d.Barrier(); err != nil {
		panic(err)
	}
	if err := d.WriteAt(3, block("b")); err != nil {
		panic(err)
	}
	for _, choice := range []disk.Choice{disk.LoseAll, disk.KeepAll} {
		after := d.Crash(choice)
		buf := make([]byte, disk.BlockSize)
		if err := after.ReadAt(3, [][]byte{buf}); err != nil {
			panic(err)
		}
		fmt.Printf("%s\n", buf[:3])
	}
	// Output:
	// aaa
	// bbb
}
