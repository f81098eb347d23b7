package fs_test

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"tansy/disk"
	"tansy/fs"
)

// UNSTABLE WRITEs wait for no barrier: one makes much of them durable, and COMMIT the rest.
func TestUnstableBarriers(t *testing.T) {
	const writes, size = 100, 1 << 20
	// With a log of 64 MiB: a small one fills up, and an installation has barriers of its own.
	mem := disk.NewMem(20 * writes * size)
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

// lateBarriers is a disk whose barriers take their time.
type lateBarriers struct {
	disk.Disk
	takes time.Duration
}

func (d *lateBarriers) Barrier() error {
	time.Sleep(d.takes)
	return d.Disk.Barrier()
}

// What is written without end, and nobody waits for, gets a barrier after 32 MiB, and from 128 MiB on after as little
// as 8, where barriers are quick. After a pause it is as at the beginning.
func TestStreamBarriers(t *testing.T) {
	if testing.Short() {
		t.Skip("long; other tests write side by side")
	}
	const size, file, stream = 1 << 20, 32 << 20, 384 << 20
	run := func(t *testing.T, takes, pause time.Duration) (streaming, afterwards uint64) {
		mem := disk.NewMem(16 * file)
		mkfs(t, mem, fs.MkfsOptions{Zeroed: true, Inodes: 256})
		count := disk.NewStats(&lateBarriers{mem, takes})
		v := open(t, count, fs.Options{CommitInterval: time.Hour})
		defer closeFS(t, v)
		h, err := v.Create(root, v.Root(), []byte("f"), fs.Guarded, &fs.SetAttr{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		data := bytes.Repeat([]byte{1}, size)
		write := func(bytes uint64) uint64 {
			before := count.Counts().Barriers
			for at := uint64(0); at < bytes; at += size {
				if n, _, _, err := v.Write(root, h.Handle, at%file, data, fs.Unstable); err != nil || n != size {
					t.Fatalf("WRITE at %d: %d bytes, %v", at, n, err)
				}
			}
			return count.Counts().Barriers - before
		}
		streaming = write(stream)
		time.Sleep(pause)
		return streaming, write(96 << 20)
	}
	synctest.Test(t, func(t *testing.T) { // where the clock stands still while anybody works
		n, m := run(t, 0, 2*time.Second)
		t.Logf("quick barriers: %d for %d MiB, and after a pause %d for 96", n, stream>>20, m)
		if n < 32 || n > 48 || m > 6 { // 36 and 3, and those of installations
			t.Error("that is not as many as it should be")
		}
	})
	n, m := run(t, 50*time.Millisecond, 0)
	t.Logf("slow barriers: %d for %d MiB, and then %d for 96", n, stream>>20, m)
	if n > 24 || m > 6 { // 12 and 3, and those of installations
		t.Error("those are too many")
	}
}
