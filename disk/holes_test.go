package disk

import (
	"path/filepath"
	"slices"
	"testing"
)

// dataOf is the blocks that d may have data in.
func dataOf(t *testing.T, d Disk) (data []uint64) {
	t.Helper()
	for a := uint64(0); ; a++ {
		next, err := NextData(d, a)
		if err != nil || next < a || next > d.Size() {
			t.Fatalf("NextData(%d) = %d, %v", a, next, err)
		}
		if a = next; a == d.Size() {
			return data
		}
		data = append(data, a)
	}
}

// What was written is never within a hole; and there are holes, if the file system
// tells at all.
func TestNextData(t *testing.T) {
	const size = 1 << 16
	f, err := CreateFile(filepath.Join(t.TempDir(), "v"), size*BlockSize)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	holes := true
	if next, err := f.NextData(0); err != nil || next != size {
		t.Logf("this file system does not tell of holes: %d, %v", next, err)
		holes = false
	}
	written := []uint64{7, 8, 5000, 40000, size - 1}
	for _, d := range []Disk{f, NewMem(size * BlockSize), NewStats(NewMem(size * BlockSize))} {
		for _, a := range written {
			b := make([]byte, BlockSize)
			b[BlockSize-1] = 1
			if err := d.WriteAt(a, [][]byte{b}); err != nil {
				t.Fatal(err)
			}
		}
		data := dataOf(t, d)
		for _, a := range written {
			if !slices.Contains(data, a) {
				t.Errorf("%T: block %d lies in a hole", d, a)
			}
		}
		if d != Disk(f) && len(data) != len(written) || holes && len(data) > size/2 {
			t.Errorf("%T: %d blocks may have data", d, len(data))
		}
		if next, err := NextData(d, size+5); err != nil || next != size {
			t.Errorf("%T: behind the end: %d, %v", d, next, err)
		}
	}
	if next, err := NextData(NewFault(NewMem(size*BlockSize), 1, nil), 3); err != nil || next != 3 {
		t.Errorf("a device that does not tell: %d, %v", next, err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := f.NextData(3); err == nil {
		t.Error("no error from a closed file")
	}
}
