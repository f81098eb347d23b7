package server_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"os"
	"path/filepath"
	"time"

	"tansy/disk"
	"tansy/fs"
	"tansy/nfs/server"
)

// Serve a volume from a program of your own.
func Example() {
	image := filepath.Join(os.TempDir(), fmt.Sprintf("example-%d.img", os.Getpid()))
	defer os.Remove(image)
	d, err := disk.CreateFile(image, 1<<30) // sparse
	if err != nil {
		log.Fatal(err)
	}
	if err := errors.Join(fs.Mkfs(d, fs.MkfsOptions{Zeroed: true}), d.Close()); err != nil {
		log.Fatal(err)
	}

	addr, stop, err := serveImage(image, "127.0.0.1:0") // 2049 is the port that NFS has
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("serving on", addr.(*net.TCPAddr).IP) // mount -t nfs -o vers=3,tcp,port=PORT,mountport=PORT,nolock
	fmt.Println("stopped:", stop())
	// Output:
	// serving on 127.0.0.1
	// stopped: <nil>
}

// serveImage serves the volume in an image to everybody who reaches an address, until stop is called.
func serveImage(image, address string) (addr net.Addr, stop func() error, err error) {
	d, err := disk.OpenFile(image, disk.FileOptions{})
	if err != nil {
		return nil, nil, err
	}
	v, err := fs.Open(d, fs.Options{})
	if err != nil {
		return nil, nil, errors.Join(err, d.Close())
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, nil, errors.Join(err, v.Close(), d.Close())
	}
	id := v.VolumeID()
	s := server.New(server.Config{Volumes: []server.Volume{{FS: v, ID: [8]byte(id[:8]), Key: v.HandleKey()}}})
	go s.Serve(l)
	return l.Addr(), func() error {
		ctx, done := context.WithTimeout(context.Background(), 10*time.Second)
		defer done()
		if err := s.Shutdown(ctx); err != nil {
			return err // calls are still in progress: the volume may not be closed
		}
		return errors.Join(v.Close(), d.Close())
	}, nil
}
