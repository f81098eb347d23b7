package repair

import (
	"bytes"
	"path/filepath"
	"testing"

	"tansy/disk"
	"tansy/internal/volumeend"
	"tansy/offline/check"
)

// onLarger is a device of more blocks with what is on d.
func onLarger(t *testing.T, d disk.Disk, more uint64) *disk.Mem {
	t.Helper()
	larger := disk.NewMem((d.Size() + more) * disk.BlockSize)
	b := [][]byte{make([]byte, disk.BlockSize)}
	for a := range d.Size() {
		if err := d.ReadAt(a, b); err != nil {
			t.Fatal(err)
		}
		if err := larger.WriteAt(a, b); err != nil {
			t.Fatal(err)
		}
	}
	return larger
}

// A volume on a device that has grown is clean, and one that is damaged is repaired as one on a device of its size.
func TestGrown(t *testing.T) {
	for _, more := range []uint64{1, 5000} {
		s := newSmall(t)
		d := onLarger(t, s.d, more)
		if p, err := NewPlan(d, Options{}); err != nil || !p.Before.Clean() || len(p.Actions) > 0 {
			t.Fatalf("%d more blocks: %v, %v", more, err, p)
		}
		s.leave(s.ino["/a"], "two")
		d = onLarger(t, s.d, more)
		p, err := NewPlan(d, Options{})
		if err != nil || len(p.Actions) == 0 {
			t.Fatalf("%d more blocks: %v, %v", more, err, p)
		}
		undo := filepath.Join(t.TempDir(), "undo")
		if left, err := p.Apply(d, undo); err != nil || !left.Clean() {
			t.Errorf("%d more blocks: %v, %v", more, err, left.Problems)
		}
		cut := disk.NewPrefix(d, s.d.Size())
		if r, err := check.Volume(cut, check.Options{Data: true}); err != nil || !r.Clean() {
			t.Errorf("%d more blocks, cut back: %v, %v", more, err, r.Problems)
		}
		u, err := LoadUndo(undo)
		if err == nil {
			err = u.Apply(cut)
		}
		if err != nil {
			t.Fatal(err)
		}
		same(t, cut, contents(t, s.d))
	}
}

// An undo file that was written when the size of the device counted, not that of the volume, undoes its repair.
func TestUndoOfGrown(t *testing.T) {
	s := newSmall(t)
	d := onLarger(t, s.d, 1)
	super, _, err := superblocks(s.d)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "undo")
	at := s.d.Size() / 2
	was := contents(t, d)
	u, err := newUndo(path, volumeend.UUID(super), volumeend.Journal(super).Start, d, []uint64{at})
	if err == nil {
		err = u.WriteAt(at, [][]byte{bytes.Repeat([]byte{7}, disk.BlockSize)})
	}
	if err == nil {
		err = u.file.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	undo, err := LoadUndo(path)
	if err == nil {
		err = undo.Apply(d)
	}
	if err != nil {
		t.Error(err)
	}
	same(t, d, was)
	undo.end = d.Size()
	if undo.Check(d) == nil {
		t.Error("an undo file with blocks behind the volume was taken for its own")
	}
}
