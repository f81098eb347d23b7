package backup

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"syscall"
	"testing"

	"tansy/disk"
	"tansy/fs"
)

// badSpot is a file of which a block cannot be read.
type badSpot struct {
	io.ReaderAt
	block int64
	err   error
}

// ReadAt implements io.ReaderAt.
func (b badSpot) ReadAt(p []byte, at int64) (int, error) {
	if at < (b.block+1)*disk.BlockSize && at+int64(len(p)) > b.block*disk.BlockSize {
		return 0, b.err
	}
	return b.ReaderAt.ReadAt(p, at)
}

// Where a block of a file cannot be read, whichever it is, the rest of it is restored, as with a wrong checksum. An
// error that is none of that one spot ends the restore.
func TestBadSpot(t *testing.T) {
	d := made(t, 16<<20, fs.MkfsOptions{}, func(v *fs.FS) { put(t, v, "a", bytes.Repeat([]byte("a"), 2<<20)) })
	path, _ := add(t, t.TempDir(), rest(t, d), false)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	last := int64(len(b)/disk.BlockSize - 1)
	for _, at := range []int64{0, 1, last / 3, last / 2, last - 1, last} {
		for _, why := range []error{syscall.EIO, syscall.ESTALE} {
			f, err := openFile(badSpot{bytes.NewReader(b), at, why}, path, uint64(len(b)))
			var c *Chain
			if err == nil {
				c, err = chainOf([]*file{f})
			}
			var places uint64
			if err == nil {
				places, err = Restore(context.Background(), disk.NewMem(16<<20), c, RestoreOptions{Zeroed: true})
			}
			spot, list := why == syscall.EIO, at == 1 // the list has the superblock and its place
			if spot && err != nil && !(list && errors.Is(err, ErrDamaged)) || !spot && at != last-1 && !errors.Is(err, why) {
				t.Errorf("block %d of %d, %v: %d places are lost, %v", at, last+1, why, places, err)
			}
			if inside := at > 1 && at < last-1; spot && err == nil && inside != (places == 1) && !list {
				t.Errorf("block %d of %d: %d places are lost", at, last+1, places)
			}
		}
	}
}
