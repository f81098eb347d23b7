//go:build linux

package mount

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"tansy/fs"
)

// What finds no room, and had a file kept for nothing, is told so: that file is none that went. Its attributes, which
// somebody may have asked for meanwhile, are asked for anew.
func TestNoRoomForKeeping(t *testing.T) {
	d := emptyVolume(t, 6000)
	k, v := newKernel(t, d, true, false)
	f := k.create("f")
	var forgotten []uint64
	k.forget = func(id uint64, from, _ int64) fuse.Status {
		if from < 0 { // the attributes alone
			forgotten = append(forgotten, id)
		}
		return fuse.OK
	}
	tries := 0
	err := k.withRoom(func() error {
		return k.losing(k.root, []byte("f"), func() error { return errors.New("it is open") }, func(fs.Handle) error {
			if tries++; tries > 10 {
				return errors.New("it goes on and on")
			}
			return fs.ErrNoSpc
		})
	})
	if err != fs.ErrNoSpc || tries != 1 || !slices.Equal(forgotten, []uint64{f}) {
		t.Errorf("after %d tries: %v; of %v, and not %d, the kernel forgets the attributes", tries, err, forgotten, f)
	}
	if n := closed(t, d, v); n != 0 {
		t.Errorf("%d files are kept", n)
	}
}

// A call waits for no longer than it may, whatever others let go meanwhile; and not at all where nothing can be let go
// that a program has not closed.
func TestPatienceEnds(t *testing.T) {
	k := keepsake{patience: time.Millisecond}
	r, begun := k.room(), time.Now()
	others := func() {
		k.add()
		k.remove(true)
	}
	for others(); r.more(); others() {
		if time.Since(begun) > 20*time.Second {
			t.Fatal("it goes on and on")
		}
	}
	n := newNodes(fs.Handle{Ino: 1}, true)
	n.kept.add()
	r = n.kept.room()
	n.kept.remove(true)
	if r.more() {
		t.Error("who closes a file is waited for")
	}
}
