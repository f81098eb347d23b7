package fs_test

import (
	"bytes"
	"testing"

	"tansy/disk"
	"tansy/fs"
	"tansy/fs/model"
	"tansy/journal"
	"tansy/test/kit/fstest"
)

// Nothing shows of what was on a device before: mkfs leaves the data blocks as
// they are, and new blocks and holes read as zeros all the same.
func TestUsedDevice(t *testing.T) {
	clock := fstest.NewClock()
	d := disk.NewMem(25000 * disk.BlockSize)
	old := [][]byte{bytes.Repeat([]byte{0xa5}, fs.BlockSize)}
	for a := range d.Size() {
		if err := d.WriteAt(a, old); err != nil {
			t.Fatal(err)
		}
	}
	mkfs(t, d, fs.MkfsOptions{Inodes: 5000, Clock: clock.Now})
	mustCheck(t, d)
	v := open(t, d, fs.Options{Clock: clock.Now})
	c := fstest.New(model.New(model.Options{Clock: clock.Now}), v, fstest.Options{Seed: seed(t), Clock: clock, Far: true})
	if err := c.Run(*opsFlag / 5); err != nil {
		t.Fatal(err)
	}
	if err := c.CompareTrees(); err != nil {
		t.Fatal(err)
	}
	closeFS(t, v)
	mustCheck(t, d)
}

// A device that is too large for a volume is left as it is.
func TestTooLarge(t *testing.T) {
	d := disk.NewMem((journal.MaxSize + 1) * disk.BlockSize)
	mark := [][]byte{bytes.Repeat([]byte{0xa5}, fs.BlockSize)}
	if err := d.WriteAt(0, mark); err != nil {
		t.Fatal(err)
	}
	if err := fs.Mkfs(d, fs.MkfsOptions{}); err == nil {
		t.Fatal("a volume of more than 2^48 blocks was made")
	}
	b := [][]byte{make([]byte, fs.BlockSize)}
	if err := d.ReadAt(0, b); err != nil || !bytes.Equal(b[0], mark[0]) {
		t.Fatal("the device was written to", err)
	}
}
