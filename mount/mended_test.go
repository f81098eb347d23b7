//go:build linux

package mount

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"tansy/fs"
)

// What finds no room, and had a file kept for nothing, is told so: that file is none that went.
func TestNoRoomForKeeping(t *testing.T) {
	d := emptyVolume(t, 6000)
	k, v := newKernel(t, d, true, false)
	k.create("f")
	tries := 0
	err := k.withRoom(func() error {
		return k.losing(k.root, []byte("f"), func() error { return errors.New("it is open") }, func(fs.Handle) error {
			if tries++; tries > 10 {
				return errors.New("it goes on and on")
			}
			return fs.ErrNoSpc
		})
	})
	if err != fs.ErrNoSpc || tries != 1 {
		t.Errorf("after %d tries: %v", tries, err)
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

// A file that was made without a name, and got one, is a file like others: its links are told as they are.
func TestNamedLater(t *testing.T) {
	d := emptyVolume(t, 6000)
	k, v := newKernel(t, d, true, false)
	var made fuse.CreateOut
	k.ok("tmpfile", k.Tmpfile(nil, &fuse.CreateIn{InHeader: atRoot, Mode: 0o644}, &made))
	var out fuse.EntryOut
	k.ok("link", k.Link(nil, &fuse.LinkIn{InHeader: atRoot, Oldnodeid: made.NodeId}, "f", &out))
	var a fuse.AttrOut
	k.ok("getattr", k.GetAttr(nil, &fuse.GetAttrIn{InHeader: fuse.InHeader{NodeId: made.NodeId}}, &a))
	if _, kept := k.nodes.isOpen(made.NodeId); kept || out.Nlink != 1 || a.Nlink != 1 {
		t.Errorf("kept: %v; it has %d links, and then %d", kept, out.Nlink, a.Nlink)
	}
	if n := closed(t, d, v); n != 0 {
		t.Errorf("%d files are kept", n)
	}
}

// Few copies are made at a time, as each takes memory. Who waits for one can be interrupted.
func TestCopiesAtATime(t *testing.T) {
	d := emptyVolume(t, 6000)
	k, v := newKernel(t, d, true, false)
	f := k.create("f")
	var all [][]byte
	for range copiers {
		all = append(all, <-k.copying)
	}
	in := fuse.CopyFileRangeIn{InHeader: fuse.InHeader{NodeId: f}, NodeIdOut: f, Len: 1}
	stop := make(chan struct{})
	close(stop)
	if _, st := k.CopyFileRange(stop, &in); st != fuse.Status(syscall.EINTR) {
		t.Errorf("no memory is free: %v", st)
	}
	for _, b := range all {
		k.copying <- b
	}
	for range 2 * copiers {
		if _, st := k.CopyFileRange(nil, &in); st != fuse.OK {
			t.Errorf("copy: %v", st)
		}
	}
	closed(t, d, v)
}
