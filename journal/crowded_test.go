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

// TestRoomForWhoWaits: commits that nobody waits for fill whole groups. But once somebody waits for another one, they
// leave room in the next groups, so that one more that is waited for finds some however many of them there are; unless
// it was a large one, as those are that give back the room of free blocks. All are done in the end.
func TestRoomForWhoWaits(t *testing.T) {
	const floods, blocks = 60, 16
	for _, waited := range []uint64{0, 240} {
		if found, _ := flood(t, floods, blocks, waited); found < MaxBlocks/blocks {
			t.Errorf("%d commits found room behind one of %d, where a group has room for %d", found, waited, MaxBlocks/blocks)
		}
	}
	found, room := flood(t, floods, blocks, blocks)
	if found == floods {
		t.Errorf("all %d commits of %d blocks found room", floods, blocks)
	}
	if !room {
		t.Errorf("a commit that is waited for found no room behind %d others", found)
	}
}

// flood makes commits of so many blocks that nobody waits for, while the device is held up, behind one of as many
// blocks as waited says, if any, that is waited for. It returns how many found room, and whether one that is waited for
// then does.
func flood(t *testing.T, commits, blocks, waited uint64) (found uint64, room bool) {
	synctest.Test(t, func(t *testing.T) {
		p := Params{Start: 0, Units: 64, Ring: 2000}
		size := (p.Home() + waited + (commits+1)*blocks) * disk.BlockSize
		d := &heldDisk{Disk: disk.NewMem(size), leave: make(chan struct{})}
		if err := Format(d, p); err != nil {
			t.Fatal(err)
		}
		j, err := Open(d, p, quiet)
		if err != nil {
			t.Fatal(err)
		}
		left, next, begun := make(chan error, commits+2), p.Home(), 0
		commit := func(blocks uint64, wait bool) {
			var ws []Write
			for range blocks {
				ws = append(ws, Write{next, contents(next)})
				next++
			}
			begun++
			go func() { left <- j.Commit(ws, wait) }()
			synctest.Wait() // until it is done, or waits
		}
		d.held.Store(true)
		if waited > 0 {
			commit(waited, true)
		}
		before := j.Position().Commits
		for range commits {
			commit(blocks, false)
		}
		found = j.Position().Commits - before
		commit(blocks, true)
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
