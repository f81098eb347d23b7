package repair

import (
	"fmt"
	"testing"

	"tansy/fs"
)

// A directory that was large and has been emptied ends in holes, and a repair of something else leaves it alone.
func TestEmptiedDirectory(t *testing.T) {
	s := newSmall(t)
	v, err := fs.Open(s.d, fs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	root := &fs.Cred{}
	dir, err := v.Mkdir(root, v.Root(), []byte("large"), &fs.SetAttr{})
	if err != nil {
		t.Fatal(err)
	}
	file, err := v.Create(root, dir.Handle, []byte("file"), fs.Guarded, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	const entries = 1500
	for i := range entries {
		if _, _, err := v.Link(root, file.Handle, dir.Handle, fmt.Append(nil, i)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range entries {
		if _, err := v.Remove(root, dir.Handle, fmt.Append(nil, i)); err != nil {
			t.Fatal(err)
		}
	}
	a, err := v.Getattr(dir.Handle)
	if err != nil {
		t.Fatal(err)
	}
	if a.Size <= steady*fs.BlockSize || a.Used >= a.Size/2 {
		t.Fatalf("%d bytes of %d are in use", a.Used, a.Size)
	}
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	s.v = newVolume(s.d, s.v.geometry)
	s.links(s.ino["/one"], 7)
	// That, and the code of its inode's block, which was written by this test.
	p, err := NewPlan(s.d, Options{})
	if err != nil || len(p.Actions) != 2 || !has(repaired(t, s.d), "the count of links becomes the number of names (0x1, was 0x7)") {
		t.Fatalf("a repair would do %v, %v", p.Actions, err)
	}
}
