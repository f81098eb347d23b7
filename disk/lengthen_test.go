package disk

import (
	"bytes"
	"errors"
	"path/filepath"
	"testing"
)

// An image that was made longer has what it had, and zeros behind that, for those who open it then. It never becomes
// shorter.
func TestLengthen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "image")
	d, err := CreateFile(path, 10*BlockSize)
	if err != nil {
		t.Fatal(err)
	}
	block := bytes.Repeat([]byte{7}, BlockSize)
	if err := d.WriteAt(9, [][]byte{block}); err != nil {
		t.Fatal(err)
	}
	for _, size := range []uint64{9 * BlockSize, 10*BlockSize + 1, 1 << 63} {
		if err := d.Lengthen(size); !errors.Is(err, ErrRange) {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
	if err := d.Lengthen(20 * BlockSize); err != nil || d.Size() != 10 {
		t.Errorf("%d blocks, %v", d.Size(), err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if d, err = OpenFile(path, FileOptions{}); err != nil || d.Size() != 20 {
		t.Fatal(d, err)
	}
	defer d.Close()
	got := [][]byte{make([]byte, BlockSize), bytes.Repeat([]byte{1}, BlockSize)}
	err = d.ReadAt(9, got)
	if err != nil || !bytes.Equal(got[0], block) || !bytes.Equal(got[1], make([]byte, BlockSize)) {
		t.Error("other contents", err)
	}
}
