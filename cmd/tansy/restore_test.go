package main

import (
	"bytes"
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"tansy/disk"
	tansyfs "tansy/fs"
)

// readings is a device that counts its reads.
type readings struct {
	disk.Disk
	reads atomic.Int64 // who serves the volume looks at it now and then
}

func (c *readings) ReadAt(a uint64, bufs [][]byte) error {
	c.reads.Add(1)
	return c.Disk.ReadAt(a, bufs)
}

// The check of what was restored ends, too, when restore is interrupted.
func TestRestoreCheckInterrupted(t *testing.T) {
	d := &readings{Disk: disk.NewMem(64 << 20)}
	if err := tansyfs.Mkfs(d, tansyfs.MkfsOptions{Zeroed: true}); err != nil {
		t.Fatal(err)
	}
	v, err := tansyfs.Open(d, tansyfs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	n, err := v.Create(&tansyfs.Cred{}, v.Root(), []byte("f"), tansyfs.Guarded, &tansyfs.SetAttr{}, 0)
	for at := uint64(0); err == nil && at < 16<<20; at += 1 << 20 {
		_, _, _, err = v.Write(&tansyfs.Cred{}, n.Handle, at, bytes.Repeat([]byte{1}, 1<<20), tansyfs.FileSync)
	}
	if err := errors.Join(err, v.Close()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	why, before := errors.New("enough"), int64(0)
	r := restoring{check: true}
	err = r.finish(ctx, backupDevice{d, "volume"}, func(string, uint64, uint64) {
		if ctx.Err() == nil {
			before = d.reads.Load()
			cancel(why)
		}
	})
	if !errors.Is(err, why) || before == 0 || d.reads.Load() > before+1 {
		t.Errorf("%v; %d reads before the end, %d behind it", err, before, d.reads.Load()-before)
	}
}
