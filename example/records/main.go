// Command records counts its runs in two blocks of a file. A crash at any time leaves the blocks equal: each run
// changes both of them, or none.
package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"

	"tansy/disk"
	"tansy/journal"
	"tansy/txn"
	"tansy/txn/volume"
)

// format is the name of this program and its format: a volume of another name is refused.
const format = "records 1"

func main() {
	file := flag.String("file", "records.img", "where the records are; the first run makes it")
	flag.Parse()
	n, err := count(*file)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("run", n)
}

// count counts a run, and returns how many there were.
func count(file string) (n uint64, err error) {
	sizes := volume.Sizes{Blocks: 2000}
	d, err := disk.OpenFile(file, disk.FileOptions{})
	if errors.Is(err, os.ErrNotExist) {
		d, err = disk.CreateFile(file, sizes.Bytes())
	}
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	v, err := volume.Open(d, format, journal.Options{}) // which recovers it after a crash
	if errors.Is(err, volume.ErrForeign) {
		if err = volume.Create(d, format, sizes); err == nil { // refuses a file that holds something
			v, err = volume.Open(d, format, journal.Options{})
		}
	}
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()

	one, other := v.Blocks.Object(0), v.Blocks.Object(1)
	err = v.Run(true, func(t *txn.Txn) error { // true: it is durable when Run returns
		record, err := t.ReadForUpdate(one)
		if err != nil {
			return err
		}
		record = bytes.Clone(record)
		n = binary.LittleEndian.Uint64(record) + 1
		binary.LittleEndian.PutUint64(record, n)
		return errors.Join(t.Write(one, record), t.Write(other, record))
	})
	return n, err
}
