// Command serve serves a simplenfs volume: go run ./example/simplenfs/serve IMAGE
//
// It makes the image if there is none. It has no way to be stopped but a signal, and needs none: a volume is open again
// after any crash.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log"
	"net"

	"tansy/disk"
	"tansy/example/simplenfs"
)

func main() {
	addr := flag.String("listen", "127.0.0.1:2049", "address")
	flag.Parse()
	d, err := disk.OpenFile(flag.Arg(0), disk.FileOptions{})
	if errors.Is(err, fs.ErrNotExist) {
		if d, err = disk.CreateFile(flag.Arg(0), simplenfs.Size*disk.BlockSize); err == nil {
			err = simplenfs.Create(d)
		}
	}
	check(err)
	v, err := simplenfs.Open(d)
	check(err)
	l, err := net.Listen("tcp", *addr)
	check(err)
	host, port, err := net.SplitHostPort(l.Addr().String())
	check(err)
	fmt.Printf("mount -t nfs -o vers=3,tcp,port=%s,mountport=%s,nolock %s:/ DIR\n", port, port, host)
	check(v.Server().Serve(l))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
