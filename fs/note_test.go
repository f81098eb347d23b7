package fs_test

import (
	"bytes"
	"fmt"
	"testing"

	"tansy/disk"
	"tansy/fs"
	"tansy/offline/check"
)

// A note is what was set last, through reopening; it is no attribute that anybody sees, nor damage.
func TestNotes(t *testing.T) {
	d := disk.NewMem(4000 * disk.BlockSize)
	mkfs(t, d, fs.MkfsOptions{Zeroed: true, Inodes: 64})
	v := open(t, d, fs.Options{})
	if note, err := v.Note("one"); err != fs.ErrNoEnt {
		t.Errorf("a volume without notes has %q, %v", note, err)
	}
	long := bytes.Repeat([]byte("long"), 900)
	for _, x := range []struct{ name, value string }{{"one", "a"}, {"other", "b"}, {"one", ""}, {"one", string(long)}} {
		if err := v.SetNote(x.name, []byte(x.value)); err != nil {
			t.Fatal(err)
		}
		if note, err := v.Note(x.name); err != nil || string(note) != x.value {
			t.Errorf("%s is %q, %v", x.name, note, err)
		}
	}
	seen := func(want string) {
		t.Helper()
		if names, err := v.ListXattr(v.Root()); err != nil || string(names) != want {
			t.Errorf("the attributes are %q, %v, want %q", names, err, want)
		}
	}
	seen("")
	closeFS(t, v)
	if _, err := v.Note("one"); err != fs.ErrClosed {
		t.Errorf("of a closed volume: %v", err)
	}
	v = open(t, d, fs.Options{})
	seen("")
	if err := v.SetXattr(v.Root(), []byte("user.a"), []byte("x"), false, false); err != nil {
		t.Fatal(err)
	}
	seen("user.a\x00")
	if err := v.SetNote("one", append(long, make([]byte, 600)...)); err != fs.ErrNoSpc {
		t.Errorf("a note that is too long: %v", err)
	}
	closeFS(t, v)
	if r, err := check.Volume(d, check.Options{Data: true}); err != nil || !r.Clean() || r.Xattrs != 1 {
		t.Errorf("%d files with attributes, %v, %v", r.Xattrs, r.Problems, err)
	}
	v = open(t, d, fs.Options{ReadOnly: true})
	defer closeFS(t, v)
	seen("user.a\x00")
	if note, err := v.Note("one"); err != nil || !bytes.Equal(note, long) {
		t.Errorf("reopened: %d bytes, %v", len(note), err)
	}
	if err := v.SetNote("one", nil); err != fs.ErrROFS {
		t.Errorf("of a volume that is read-only: %v", err)
	}
}

// A note is durable when SetNote returns, also on a volume where others do not wait; a crash leaves it as it was set
// last, or as it was being set. On a full volume one that is not longer still has room.
func TestNotesCrash(t *testing.T) {
	sim := disk.NewSim(4000 * disk.BlockSize)
	mkfs(t, sim, fs.MkfsOptions{Zeroed: true, Inodes: 64})
	sim.Record()
	v := open(t, sim, fs.Options{Deferred: true})
	n, err := v.Create(root, v.Root(), []byte("file"), fs.Guarded, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	const notes = 12
	acked := []uint64{sim.Ops()} // when note i was durable; i = 0: none
	for i := 1; i <= notes; i++ {
		if i == notes/2 {
			fillUp(t, v, n.Handle)
		}
		if err := v.SetNote("n", fmt.Appendf(nil, "%02d", i)); err != nil {
			t.Fatal(err)
		}
		acked = append(acked, sim.Ops())
	}
	end := sim.Ops()
	closeFS(t, v)
	for at := acked[0]; at <= end; at++ {
		last := 0
		for last < notes && acked[last+1] <= at {
			last++
		}
		image := sim.At(at).Crash(disk.LoseAll)
		v := open(t, image, fs.Options{})
		got, err := v.Note("n")
		want, next := fmt.Sprintf("%02d", last), fmt.Sprintf("%02d", last+1)
		if last == 0 {
			want = ""
		}
		if err != nil && err != fs.ErrNoEnt || string(got) != want && string(got) != next {
			t.Errorf("after %d operations: %q, %v, want %q or %q", at, got, err, want, next)
		}
		closeFS(t, v)
	}
}

// fillUp writes to a file until no block is free.
func fillUp(t *testing.T, v *fs.FS, h fs.Handle) {
	t.Helper()
	for n, off := uint64(fs.MaxIO), uint64(0); n >= 1; {
		if _, _, _, err := v.Write(root, h, off, make([]byte, n), fs.Unstable); err == nil {
			off += n
		} else if err == fs.ErrNoSpc {
			n /= 2
		} else {
			t.Fatal(err)
		}
	}
}
