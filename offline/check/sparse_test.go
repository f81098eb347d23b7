package check

import (
	"fmt"
	"path/filepath"
	"testing"

	"tansy/disk"
	"tansy/fs"
)

// A large volume that is almost empty is checked by reading what was written to it,
// and damage where nothing was written is found all the same.
func TestSparse(t *testing.T) {
	const size = 2 << 28 // blocks: 2 TiB
	f, err := disk.CreateFile(filepath.Join(t.TempDir(), "v"), size*disk.BlockSize)
	if err != nil {
		t.Skip("this file system has no files of 2 TiB: ", err)
	}
	defer f.Close()
	if next, err := f.NextData(0); err != nil || next != size {
		t.Skip("this file system does not tell of holes")
	}
	if err := fs.Mkfs(f, fs.MkfsOptions{Zeroed: true, LogBytes: 8 << 20}); err != nil {
		t.Fatal(err)
	}
	v, err := fs.Open(f, fs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		dir, err := v.Mkdir(&fs.Cred{}, v.Root(), fmt.Appendf(nil, "d%d", i), nil)
		if err != nil {
			t.Fatal(err)
		}
		n, err := v.Create(&fs.Cred{}, dir.Handle, []byte("f"), fs.Guarded, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, _, err := v.Write(&fs.Cred{}, n.Handle, 0, make([]byte, 100000), fs.FileSync); err != nil {
			t.Fatal(err)
		}
	}
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	counted := disk.NewStats(f)
	r, err := Volume(counted, Options{})
	if err != nil || !r.Clean() || r.Directories != 101 {
		t.Fatalf("%+v, %v", r, err)
	}
	if n := counted.Counts().ReadBlocks; n > 100_000 {
		t.Errorf("%d blocks were read", n)
	}

	raw, _, err := readSupers(f)
	if err != nil {
		t.Fatal(err)
	}
	sb, err := parseSuper(raw[0])
	if err != nil {
		t.Fatal(err)
	}
	zero := make([]byte, disk.BlockSize)
	before := [3]uint64{sb.ibm + 100, sb.bbm + 1000, sb.itab + sb.ninode/inodesBlock - 5}
	for i, a := range before {
		b := make([]byte, disk.BlockSize)
		b[100] = 1
		put(t, f, a, b)
		r, err := Volume(f, Options{})
		if err != nil || r.Clean() {
			t.Errorf("damage %d is not noticed: %v", i, err)
		}
		put(t, f, a, zero)
	}
	// a block that should not be empty, and is a hole
	hole := &holed{File: f, from: sb.itab, to: sb.itab + 16}
	if r, err := Volume(hole, Options{}); err != nil || r.Clean() {
		t.Error("a hole in the inode table is not noticed:", err)
	}
	hole = &holed{File: f, from: sb.bbm, to: sb.itab}
	if r, err := Volume(hole, Options{}); err != nil || r.Clean() {
		t.Error("a hole in the block bitmap is not noticed:", err)
	}
	mustClean(t, f)
}

// holed is a file with one hole more.
type holed struct {
	*disk.File
	from, to uint64
}

func (h *holed) ReadAt(a uint64, bufs [][]byte) error {
	err := h.File.ReadAt(a, bufs)
	for i := range bufs {
		if b := a + uint64(i); h.from <= b && b < h.to {
			clear(bufs[i])
		}
	}
	return err
}

func (h *holed) NextData(a uint64) (uint64, error) {
	if h.from <= a && a < h.to {
		a = h.to
	}
	next, err := h.File.NextData(a)
	if h.from <= next && next < h.to {
		return h.File.NextData(h.to)
	}
	return next, err
}
