package journal

import (
	"sync/atomic"
	"testing"
	"testing/synctest"

	"tansy/disk"
)

// heldDisk holds up what is written while it is held.
type heldDisk struct {
	disk.Disk
	held  atomic.Bool
	leave chan struct{}
}

func (d *heldDisk) WriteAt(a uint64, bufs [][]byte) error {
	if d.held.Load() {
		<-d.leave
	}
	return d.Disk.WriteAt(a, bufs)
}

// TestRoomForWhoWaits: once somebody waits for commits, others that nobody waits for leave room in the next groups, so that a commit finds some however
// many of these there are; and all are done in the end.
func TestRoomForWhoWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const floods, blocks = 60, 16
		p := Params{Start: 0, Units: 64, Ring: 2000}
		d := &heldDisk{Disk: disk.NewMem(p.Home() + (floods+2)*blocks), leave: make(chan struct{})}
		if err := Format(d, p); err != nil {
			t.Fatal(err)
		}
		j, err := Open(d, p, quiet)
		if err != nil {
			t.Fatal(err)
		}
		left := make(chan error, floods+2)
		commit := func(k uint64, wait bool) {
			var ws []Write
			for i := range uint64(blocks) {
				ws = append(ws, Write{p.Home() + k*blocks + i, contents(k)})
			}
			go func() { left <- j.Commit(ws, wait) }()
			synctest.Wait() // until it is done, or waits
		}
		d.held.Store(true)
		commit(0, true) // it is being written meanwhile
		for k := range uint64(floods) {
			commit(2+k, false)
		}
		before := j.Position().Commits
		if before-1 == floods {
			t.Errorf("all %d commits of %d blocks found room", floods, blocks)
		}
		if commit(1, true); j.Position().Commits != before+1 {
			t.Errorf("a commit that is waited for found no room behind %d others", before-1)
		}
		d.held.Store(false)
		close(d.leave)
		for range cap(left) {
			if err := <-left; err != nil {
				t.Error(err)
			}
		}
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
}
