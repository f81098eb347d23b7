package fs

import (
	"testing"

	"tansy/disk"
)

// Notes take no time of calls about files, as attributes do, also after the volume is opened again.
func TestNotesTakeNoTime(t *testing.T) {
	d := disk.NewMem(4000 * disk.BlockSize)
	if err := Mkfs(d, MkfsOptions{Zeroed: true, Inodes: 64}); err != nil {
		t.Fatal(err)
	}
	for _, step := range []func(v *FS) error{
		func(v *FS) error { return v.SetNote("n", []byte("x")) },
		func(v *FS) error { return v.SetNote("n", []byte("y")) },
		func(v *FS) error { return v.SetXattr(v.Root(), []byte("user.a"), nil, false, false) },
		func(v *FS) error { return nil },
	} {
		v, err := Open(d, Options{})
		if err != nil {
			t.Fatal(err)
		}
		names, err := v.listXattr(v.root)
		if err != nil || v.xattrs.some.Load() != (len(names) > 0) {
			t.Errorf("attributes %q, %v: taken for some: %v", names, err, v.xattrs.some.Load())
		}
		if err := step(v); err != nil {
			t.Error(err)
		}
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	}
}
