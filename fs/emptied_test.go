package fs_test

import (
	"fmt"
	"testing"

	"tansy/disk"
	"tansy/fs"
)

// TestEmptiedDirectory: a directory that was large gives its blocks back as it is emptied, but for a few, and those
// that it has when it is filled once more are as many as before; meanwhile no name is lost.
func TestEmptiedDirectory(t *testing.T) {
	const entries, steady = 6000, 18 + 4 // blocks of the first levels, and indirect ones
	d := disk.NewMem(20000 * disk.BlockSize)
	mkfs(t, d, fs.MkfsOptions{Zeroed: true, Inodes: 256})
	v := open(t, d, fs.Options{})
	dir, err := v.Mkdir(root, v.Root(), []byte("d"), &fs.SetAttr{})
	if err != nil {
		t.Fatal(err)
	}
	file, err := v.Create(root, v.Root(), []byte("f"), fs.Guarded, &fs.SetAttr{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	used := func() uint64 {
		a, err := v.Getattr(dir.Handle)
		if err != nil {
			t.Fatal(err)
		}
		return a.Used / fs.BlockSize
	}
	name := func(i int) []byte {
		if i%50 == 0 {
			return []byte(fmt.Sprintf("%0100d", i)) // of the other class
		}
		return []byte(fmt.Sprint(i))
	}
	var full uint64
	rounds := 2
	if testing.Short() {
		rounds = 1
	}
	for round := range rounds {
		for i := range entries {
			if _, _, err := v.Link(root, file.Handle, dir.Handle, name(i)); err != nil {
				t.Fatal(err)
			}
		}
		if round > 0 && used() != full {
			t.Errorf("full once more it has %d blocks, not %d", used(), full)
		}
		if full = used(); full < 2*steady {
			t.Fatalf("%d entries have %d blocks", entries, full)
		}
		for i := range entries {
			if i == entries/2 {
				for k := range entries {
					if _, err := v.Lookup(root, dir.Handle, name(k)); (err == nil) != (k >= i) {
						t.Fatalf("entry %d, when those below %d are removed: %v", k, i, err)
					}
				}
			}
			if _, err := v.Remove(root, dir.Handle, name(i)); err != nil {
				t.Fatal(err)
			}
		}
		if n := used(); n > steady {
			t.Errorf("%d blocks of %d are left when it is empty", n, full)
		}
	}
	closeFS(t, v)
	mustCheck(t, d)
}
