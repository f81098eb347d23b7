package volume_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log"

	"tansy/disk"
	"tansy/journal"
	"tansy/txn"
	"tansy/txn/volume"
)

// A store of records: a bit for each tells whether it is taken, and the allocator finds those that are not. Long work
// is divided by the size of its transactions.
func Example() {
	sizes := volume.Sizes{Bits: 2000, Blocks: 2000}
	d := disk.NewMem(sizes.Bytes()) // in real life: disk.CreateFile, and disk.OpenFile from then on
	if err := volume.Create(d, "records 1", sizes); err != nil {
		log.Fatal(err)
	}
	v, err := volume.Open(d, "records 1", journal.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer v.Close()
	free, err := v.Allocator(v.Bits)
	if err != nil {
		log.Fatal(err)
	}
	for stored := uint64(0); stored < 1200; {
		next := stored
		err := v.Run(true, func(t *txn.Txn) error { // again if it is in conflict with others, so it begins anew
			for next = stored; next < 1200 && t.Size()+2 <= txn.MaxBlocks; next++ {
				n, err := free.Take(t, 0)
				if err != nil {
					return err
				}
				record := make([]byte, txn.BlockSize)
				binary.LittleEndian.PutUint64(record, next)
				if err := t.Write(v.Blocks.Object(n), record); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			log.Fatal(err)
		}
		stored = next
		fmt.Println(stored, "are stored")
	}
	left, err := free.Free()
	fmt.Println(left, "are free", err)
	// Output:
	// 498 are stored
	// 996 are stored
	// 1200 are stored
	// 800 are free <nil>
}

// What is no volume of the program is told from one that is, and left alone.
func ExampleOpen() {
	d := disk.NewMem(1 << 24)
	_, err := volume.Open(d, "records 1", journal.Options{})
	fmt.Println(errors.Is(err, volume.ErrForeign), err)
	// Output: true volume: block 0: no such volume: it does not begin with "TansyTxn"
}
