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

// TestRoomForWhoWaits: commits that nobody waits for fill whole groups. But once somebody waits for another one, they leave room in the next
// groups, so that one more that is waited for finds some however many of them there are. All are done in the end.
func TestRoomForWhoWaits(t *testing.T) {
	const floods, blocks = 60, 16
	if found, _ := flood(t, floods, blocks, false); found < MaxBlocks/blocks {
		t.Errorf("%d commits found room, where a group has room for %d", found, MaxBlocks/blocks)
	}
	found, room := flood(t, floods, blocks, true)
	if found == floods {
		t.Errorf("all %d commits of %d blocks found room", floods, blocks)
	}
	if !room {
		t.Errorf("a commit that is waited for found no room behind %d others", found)
	}
}

// flood commits what nobody waits for, while the device is held up: a commit before, if that is waited for. It returns how many found room, and
// whether one that is waited for then does.
func flood(t *testing.T, commits, blocks uint64, waited bool) (found uint64, room bool) {
	synctest.Test(t, func(t *testing.T) {
		p := Params{Start: 0, Units: 64, Ring: 2000}
		d := &heldDisk{Disk: disk.NewMem(p.Home() + (commits+2)*blocks), leave: make(chan struct{})}
		if err := Format(d, p); err != nil {
			t.Fatal(err)
		}
		j, err := Open(d, p, quiet)
		if err != nil {
			t.Fatal(err)
		}
		left, begun := make(chan error, commits+2), uint64(0)
		commit := func(wait bool) {
			var ws []Write
			for i := range blocks {
				ws = append(ws, Write{p.Home() + begun*blocks + i, contents(begun)})
			}
			begun++
			go func() { left <- j.Commit(ws, wait) }()
			synctest.Wait() // until it is done, or waits
		}
		d.held.Store(true)
		if waited {
			commit(true)
		}
		before := j.Position().Commits
		for range commits {
			commit(false)
		}
		found = j.Position().Commits - before
		commit(true)
		room = j.Position().Commits == before+found+1
		d.held.Store(false)
		close(d.leave)
		for range begun {
			if err := <-left; err != nil {
				t.Error(err)
			}
		}
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	return found, room
}
