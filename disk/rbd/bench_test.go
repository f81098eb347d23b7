package rbd

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"tansy/disk"
	"tansy/disk/disktest"
)

// BenchmarkImage measures an image of Ceph through a helper: the image TANSY_RBD, over whose blocks it writes. To be
// held against "rbd bench --rbd-cache=false" with as many requests in flight.
func BenchmarkImage(b *testing.B) {
	name := os.Getenv("TANSY_RBD")
	if name == "" {
		b.Skip("TANSY_RBD names no image")
	}
	d, err := Open(context.Background(), name, Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	run := func(what string, atOnce int, blocks uint64, anywhere bool, op func(a uint64, bufs [][]byte) error) {
		b.Run(what, func(b *testing.B) {
			b.SetBytes(int64(blocks * disk.BlockSize))
			var next atomic.Uint64
			errs := make([]error, atOnce)
			var working sync.WaitGroup
			for i := range atOnce {
				working.Go(func() {
					bufs := disktest.Pattern(int(blocks), uint64(i))
					for errs[i] == nil {
						n := next.Add(1) - 1
						if n >= uint64(b.N) {
							return
						}
						if anywhere {
							n = rand.Uint64()
						}
						errs[i] = op(n%(d.Size()/blocks)*blocks, bufs)
					}
				})
			}
			working.Wait()
			if err := errors.Join(errs...); err != nil {
				b.Fatal(err)
			}
		})
	}
	run("1 MiB written, 8 at a time", 8, 256, false, d.WriteAt)
	run("1 MiB read, 8 at a time", 8, 256, false, d.ReadAt)
	run("4 KiB written anywhere, 16 at a time", 16, 1, true, d.WriteAt)
	run("4 KiB written and a barrier, 1 at a time", 1, 1, true, func(a uint64, bufs [][]byte) error {
		return errors.Join(d.WriteAt(a, bufs), d.Barrier())
	})
}
