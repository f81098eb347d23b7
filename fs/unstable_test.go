package fs_test

import (
	"bytes"
	"testing"
	"time"

	"tansy/disk"
	"tansy/fs"
)

// UNSTABLE WRITEs wait for no barrier: one makes much of them durable, and COMMIT the rest.
func TestUnstableBarriers(t *testing.T) {
	const writes, size = 100, 1 << 20
	mem := disk.NewMem(2 * writes * size / fs.BlockSize)
	mkfs(t, mem, fs.MkfsOptions{Zeroed: true, Inodes: 256})
	count := disk.NewStats(mem)
	v := open(t, count, fs.Options{CommitInterval: time.Hour})
	h, err := v.Create(root, v.Root(), []byte("f"), fs.Guarded, &fs.SetAttr{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	before := count.Counts().Barriers
	for i := range writes {
		if n, _, _, err := v.Write(root, h.Handle, uint64(i)*size, bytes.Repeat([]byte{byte(i)}, size), fs.Unstable); err != nil || n != size {
			t.Fatalf("WRITE %d: %d bytes, %v", i, n, err)
		}
	}
	if _, err := v.Commit(h.Handle, 0, 0); err != nil {
		t.Fatal(err)
	}
	barriers := count.Counts().Barriers - before
	t.Logf("%d barriers", barriers)
	if barriers > 6 {
		t.Errorf("%d barriers for %d UNSTABLE WRITEs of %d bytes and a COMMIT, 6 would do", barriers, writes, size)
	}
	closeFS(t, v)
}
