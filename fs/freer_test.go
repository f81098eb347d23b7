package fs

import (
	"sync"
	"testing"

	"tansy/fs/internal/background"
)

// An operation that finds the volume full waits for as much space as it needs to be
// freed, not for all that the freer has to do.
func TestFullVolumeFreesWhatItNeeds(t *testing.T) {
	v := newFS(t)
	root := &Cred{}
	make := func(name string) Handle {
		t.Helper()
		n, err := v.Create(root, v.Root(), []byte(name), Guarded, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		return n.Handle
	}
	v.free.Close() // from now on nothing is freed in the background
	large := make("large")
	data := [MaxIO]byte{}
	for off := uint64(0); ; off += MaxIO {
		_, _, _, err := v.Write(root, large, off, data[:], Unstable)
		if err == ErrNoSpc {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := v.Remove(root, v.Root(), []byte("large")); err != nil {
		t.Fatal(err)
	}
	small := make("small")
	if n, _, _, err := v.Write(root, small, 0, data[:], Unstable); err != nil || n != MaxIO {
		t.Fatalf("%d bytes written: %v", n, err)
	}
	if !v.free.Waiting() {
		t.Error("one write had to wait until all was freed")
	}
	for off := uint64(0); off < 70*MaxIO; off += MaxIO { // nearly all there is
		if _, _, _, err := v.Write(root, small, off, data[:], Unstable); err != nil {
			t.Fatalf("at %d: %v", off, err)
		}
	}
}

// An operation that found the volume full tries again when the freer was through
// with its work in the meantime.
func TestFreedWhileFull(t *testing.T) {
	v := newFS(t)
	v.free.Close()
	v.free.Wake()
	tries := 0
	var c call
	err := v.run(&c, procSetattr, func(*txn) {
		if tries++; tries == 1 {
			var background sync.WaitGroup
			background.Go(func() { v.free.Help(1) }) // a moment before the end of this try
			background.Wait()
			c.Result = uint32(ErrNoSpc)
			return
		}
		c.Result = 0
	})
	if err != nil || tries != 2 {
		t.Error(tries, err)
	}
	if err := v.run(&c, procSetattr, func(*txn) { c.Result = uint32(ErrNoSpc) }); err != ErrNoSpc {
		t.Error(err)
	}
}

// A file that was cut by very much can grow again at once, by any operation: what was cut
// off is freed first, in thousands of transactions here, and no client hears of it.
func TestGrowingAgain(t *testing.T) {
	v := newFS(t)
	v.free.Close()
	v.freeStep = 1
	data := [MaxIO]byte{}
	const size = 6 * MaxIO
	cut := func() Handle {
		t.Helper()
		n, err := v.Create(root, v.Root(), []byte("f"), Unchecked, &SetAttr{}, 0)
		want(t, err, 0)
		for off := uint64(0); off < size; off += MaxIO {
			_, _, _, err := v.Write(root, n.Handle, off, data[:], Unstable)
			want(t, err, 0)
		}
		_, err = v.Setattr(root, n.Handle, &SetAttr{Size: new(uint64)}, nil)
		want(t, err, 0)
		return n.Handle
	}
	big := uint64(2 * size)
	_, _, _, err := v.Write(root, cut(), 0, data[:10], Unstable)
	want(t, err, 0)
	_, err = v.Setattr(root, cut(), &SetAttr{Size: &big}, nil)
	want(t, err, 0)
	cut()
	n, err := v.Create(root, v.Root(), []byte("f"), Unchecked, &SetAttr{Size: &big}, 0)
	want(t, err, 0)
	if n.Attr.Size != big {
		t.Errorf("%d bytes", n.Attr.Size)
	}
}

// The same with many clients at one file and the background at work.
func TestGrowingAgainTogether(t *testing.T) {
	v := newFS(t)
	v.free.Close()
	v.freeStep = 1
	v.free = background.NewFreer(duties{v}, v.log)
	v.free.Start()
	defer v.free.Close()
	h := create(t, v, root, v.Root(), "f")
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			data := [MaxIO]byte{}
			for off := uint64(0); off < 8*MaxIO; off += MaxIO {
				if _, _, _, err := v.Write(root, h, off, data[:], Unstable); err != nil {
					t.Error(err)
				}
				if _, err := v.Setattr(root, h, &SetAttr{Size: new(uint64)}, nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

// A mount that removes or replaces an open file's name may find that it is another file's by now. That one goes as
// with any other call, and the background is told: else its blocks would be free only after the next start.
func TestFreedWhenAnotherIsOpen(t *testing.T) {
	for _, replace := range []bool{false, true} {
		v := newFS(t)
		v.free.Close()
		v.free.Help(1)
		open, other := create(t, v, root, v.Root(), "open"), create(t, v, root, v.Root(), "other")
		var data [MaxIO]byte
		_, _, _, err := v.Write(root, other, 0, data[:], Unstable)
		want(t, err, 0)
		if v.free.Waiting() {
			t.Fatal("something waits to be freed already")
		}
		if replace {
			_, _, err = v.RenameOpen(root, v.Root(), []byte("open"), v.Root(), []byte("other"), open)
		} else {
			_, err = v.RemoveOpen(root, v.Root(), []byte("other"), open)
		}
		want(t, err, 0)
		if !v.free.Waiting() {
			t.Errorf("replaced %v: nobody frees the blocks of the file that is gone", replace)
		}
	}
}

// What the freer commits is not taken for commits of others.
func TestFreerCommits(t *testing.T) {
	v := newFS(t)
	v.free.Close()
	v.freeStep = 1
	h := create(t, v, root, v.Root(), "f")
	var data [MaxIO]byte
	_, _, _, err := v.Write(root, h, 0, data[:], Unstable)
	want(t, err, 0)
	_, err = v.Remove(root, v.Root(), []byte("f"))
	want(t, err, 0)
	before, steps := duties{v}.OtherCommits(), v.free.Steps()
	v.free.Help(100)
	if n := v.free.Steps() - steps; n < 100 {
		t.Fatalf("%d steps", n)
	}
	if now := (duties{v}).OtherCommits(); now != before {
		t.Errorf("%d commits of others, and %d after steps of the freer", before, now)
	}
	create(t, v, root, v.Root(), "g")
	if now := (duties{v}).OtherCommits(); now != before+1 {
		t.Errorf("%d commits of others, and %d after one of them", before, now)
	}
}
