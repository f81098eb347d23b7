package fs

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"tansy/disk"
)

// growable is a volume of size blocks at the beginning of a device of more, which may become as large as most blocks.
func growable(t *testing.T, device, size, most uint64, o MkfsOptions) *disk.Mem {
	t.Helper()
	d := disk.NewMem(device * disk.BlockSize)
	o.MaxBytes = most * disk.BlockSize
	if err := Mkfs(disk.NewPrefix(d, size), o); err != nil {
		t.Fatal(err)
	}
	return d
}

// put makes a file with the given contents in the root directory, or fails with NOSPC.
func put(t *testing.T, v *FS, name string, contents []byte) (Handle, error) {
	t.Helper()
	made, err := v.Create(&Cred{}, v.Root(), []byte(name), Unchecked, &SetAttr{}, 0)
	if err != nil {
		return Handle{}, err
	}
	for off := 0; off < len(contents); off += 1 << 20 {
		part := contents[off:min(len(contents), off+1<<20)]
		_, _, _, err := v.Write(&Cred{}, made.Handle, uint64(off), part, FileSync)
		if err != nil {
			return made.Handle, err
		}
	}
	return made.Handle, nil
}

func TestGrow(t *testing.T) {
	const size, device, most = 6 << 20 / disk.BlockSize, 64 << 20 / disk.BlockSize, 1 << 40 / disk.BlockSize
	d := growable(t, device, size, most, MkfsOptions{})
	v, err := Open(disk.NewPrefix(d, size), Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := bytes.Repeat([]byte("what was there before "), 3000)
	if _, err := put(t, v, "before", want); err != nil {
		t.Fatal(err)
	}
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	g, err := Grow(d, GrowOptions{})
	fmt.Printf("%+v %v\n", g, err)
	if err != nil {
		t.Fatal(err)
	}
	if v, err = Open(d, Options{}); err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	if _, err := Grow(d, GrowOptions{}); !errors.Is(err, ErrNoMore) {
		t.Errorf("again: %v", err)
	}
}
