package fs_test

import (
	"fmt"
	"log"

	"tansy/disk"
	"tansy/fs"
)

// Make a volume, write a file, and find it again after a restart.
func Example() {
	d := disk.NewMem(20000 * disk.BlockSize) // or disk.OpenFile
	if err := fs.Mkfs(d, fs.MkfsOptions{}); err != nil {
		log.Fatal(err)
	}
	v, err := fs.Open(d, fs.Options{})
	if err != nil {
		log.Fatal(err)
	}
	me := &fs.Cred{UID: 0}
	n, err := v.Create(me, v.Root(), []byte("greeting"), fs.Guarded, nil, 0)
	if err != nil {
		log.Fatal(err)
	}
	if _, _, _, err := v.Write(me, n.Handle, 0, []byte("hello"), fs.FileSync); err != nil {
		log.Fatal(err)
	}
	if err := v.Close(); err != nil {
		log.Fatal(err)
	}

	if v, err = fs.Open(d, fs.Options{}); err != nil {
		log.Fatal(err)
	}
	defer v.Close()
	data, _, _, err := v.Read(me, n.Handle, 0, 100) // the handle is good for ever
	fmt.Printf("%s %v\n", data, err)
	// Output: hello <nil>
}
