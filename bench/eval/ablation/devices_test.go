package ablation

import (
	"sync"
	"testing"

	"tansy/disk"
	"tansy/disk/disktest"
)

// What is put before a device is one, too.
func TestDevices(t *testing.T) {
	t.Run(TwoBarriers, func(t *testing.T) {
		disktest.Run(t, func(*testing.T) disk.Disk { return &twice{Disk: disk.NewMem(disktest.Blocks * disk.BlockSize)} })
	})
}

// Nobody writes while somebody else has writes without a barrier.
func TestOneAtATime(t *testing.T) {
	d := &oneAtATime{Disk: disk.NewMem(10 * disk.BlockSize)}
	busy := 0 // a race, if two have their turn at once
	var writers sync.WaitGroup
	for i := range uint64(4) {
		writers.Go(func() {
			for range 100 {
				for range 2 {
					if err := d.WriteAt(i, [][]byte{make([]byte, disk.BlockSize)}); err != nil {
						t.Error(err)
					}
					busy++
				}
				if busy != 2 {
					t.Errorf("%d writes in a turn", busy)
				}
				busy = 0
				if err := d.Barrier(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
}
