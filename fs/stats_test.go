package fs_test

import (
	"errors"
	"log/slog"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"tansy/disk"
	"tansy/fs"
)

// Space says what FSSTAT says, and the numbers tell of what happened.
func TestStats(t *testing.T) {
	d := disk.NewMem(6000 * disk.BlockSize)
	mkfs(t, d, fs.MkfsOptions{Zeroed: true, Inodes: 256})
	v := open(t, d, fs.Options{})
	defer closeFS(t, v)
	before := v.Stats()
	if j := before.Journal; j.Units == 0 || j.Ring == 0 || j.UnitsUsed != 0 || j.CacheLimit == 0 {
		t.Errorf("at the start: %+v", j)
	}
	n, err := v.Create(root, v.Root(), []byte("f"), fs.Guarded, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := v.Write(root, n.Handle, 0, make([]byte, 200<<10), fs.FileSync); err != nil {
		t.Fatal(err)
	}
	st, _, err := v.Fsstat(v.Root())
	if space, e := v.Space(); err != nil || e != nil || space != st {
		t.Errorf("%+v, %v; FSSTAT says %+v, %v", space, e, st, err)
	}
	after := v.Stats()
	if j := after.Journal; j.Groups < before.Journal.Groups+2 || j.Barriers < before.Journal.Barriers+2 || j.UnitsUsed < 2 || j.RingUsed > j.Ring || j.CacheHits == 0 || j.Cached == 0 || j.Cached > j.CacheLimit {
		t.Errorf("%+v", j)
	}
	if after.Transactions.Commits < 2 {
		t.Errorf("%+v", after.Transactions)
	}
}

// hung is a device whose barriers do not come back for a while.
type hung struct {
	disk.Disk
	now            atomic.Bool
	entered, leave chan struct{}
}

func (h *hung) Barrier() error {
	if h.now.Load() {
		h.entered <- struct{}{}
		<-h.leave
	}
	return h.Disk.Barrier()
}

// A volume whose device failed is not healthy, and whose device hangs still tells its numbers.
func TestHealth(t *testing.T) {
	d := disk.NewMem(6000 * disk.BlockSize)
	mkfs(t, d, fs.MkfsOptions{Zeroed: true, Inodes: 256})
	f := disk.NewFault(d, 1, nil)
	v := open(t, f, fs.Options{Log: slog.New(slog.DiscardHandler)})
	if err := v.Health(); err != nil {
		t.Errorf("at the start: %v", err)
	}
	if _, err := v.Space(); err != nil { // reads the bitmaps
		t.Fatal(err)
	}
	hang := &hung{Disk: disk.NewMem(6000 * disk.BlockSize), entered: make(chan struct{}), leave: make(chan struct{})}
	mkfs(t, hang.Disk, fs.MkfsOptions{Zeroed: true, Inodes: 256})
	w := open(t, hang, fs.Options{})
	if _, err := w.Space(); err != nil {
		t.Fatal(err)
	}
	hang.now.Store(true)
	created := make(chan error)
	go func() {
		_, err := w.Create(root, w.Root(), []byte("f"), fs.Guarded, nil, 0)
		created <- err
	}()
	<-hang.entered
	told := make(chan error)
	go func() {
		_, err := w.Space()
		told <- err
	}()
	select {
	case err := <-told:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the space is not told while the device hangs")
	}
	if w.Stats().Journal.Commits == 0 || w.Health() != nil {
		t.Error("while the device hangs:", w.Health())
	}
	hang.now.Store(false)
	close(hang.leave)
	if err := <-created; err != nil {
		t.Error(err)
	}
	closeFS(t, w)

	f.SetPlan(disk.FailFrom(0, syscall.EIO, disk.Write, disk.Barrier))
	v.Create(root, v.Root(), []byte("f"), fs.Guarded, nil, 0)
	if err := v.Health(); !errors.Is(err, syscall.EIO) {
		t.Errorf("after a failure: %v", err)
	}
	v.Close()
}
