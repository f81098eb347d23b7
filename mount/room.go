//go:build linux || darwin

package mount

import (
	"sync"
	"time"

	"tansy/fs"
)

// What a program removes, and nobody has open, makes room before unlink(2) returns on other file systems. Here the
// kernel has forgotten the file by then, but says so a moment later (kept.go). So what finds no room waits for that.

// forgetting is how long a call waits for files to be let go. The kernel says what it has forgotten as soon as somebody
// reads what it asks, or after a few more things that it asks. What a program has open it does not forget.
const forgetting = 100 * time.Millisecond

// keepsake is how many files the volume keeps for the mount. Its methods may be called concurrently.
type keepsake struct {
	patience time.Duration // how long a call waits; 0: it does not

	mu    sync.Mutex
	kept  int
	went  uint64        // how many were kept, and were let go
	fewer chan struct{} // closed with the next one that goes; nil: nobody waits
}

// add counts one more.
func (k *keepsake) add() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.kept++
}

// remove counts one less. gone: the volume has let it go, which may have made room; else it never kept it.
func (k *keepsake) remove(gone bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.kept--
	if !gone {
		return
	}
	k.went++
	if k.fewer != nil {
		close(k.fewer)
		k.fewer = nil
	}
}

// room begins something that may find no room.
func (k *keepsake) room() room {
	k.mu.Lock()
	defer k.mu.Unlock()
	return room{keepsake: k, seen: k.went}
}

// withRoom calls do, and again while it finds no room and files are let go. Who calls it holds nothing.
func (f *fileSystem) withRoom(do func() error) error {
	room := f.nodes.kept.room()
	err := do()
	for err == fs.ErrNoSpc && room.more() {
		err = do()
	}
	return err
}

// A room is for one caller.
type room struct {
	*keepsake
	seen uint64           // files that had gone before the last try
	late <-chan time.Time // when there is to be no other one
}

// more waits until there may be more room than when the last try began. It is false if there is none to be expected,
// and when it has been asked for as long as a call waits, whatever was let go meanwhile. Who calls it holds nothing.
func (r *room) more() bool {
	if r.patience == 0 {
		return false
	}
	if r.late == nil {
		r.late = time.After(r.patience)
	}
	for {
		select {
		case <-r.late:
			return false
		default:
		}
		r.mu.Lock()
		if r.went != r.seen {
			r.seen = r.went
			r.mu.Unlock()
			return true
		}
		if r.kept == 0 {
			r.mu.Unlock()
			return false
		}
		if r.fewer == nil {
			r.fewer = make(chan struct{})
		}
		fewer := r.fewer
		r.mu.Unlock()
		select {
		case <-fewer:
		case <-r.late:
			return false
		}
	}
}
