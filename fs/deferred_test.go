package fs_test

import (
	"sync/atomic"
	"testing"

	"tansy/disk"
	"tansy/fs"
)

// slowBarrier is a device whose barriers wait while they are held up.
type slowBarrier struct {
	disk.Disk
	held  atomic.Bool
	began chan struct{} // told when one waits
	open  chan struct{} // closed to let them go
}

func (d *slowBarrier) Barrier() error {
	if d.held.Load() {
		select {
		case d.began <- struct{}{}:
		default:
		}
		<-d.open
	}
	return d.Disk.Barrier()
}

// With Deferred nothing waits for the device but Sync and Commit.
func TestDeferred(t *testing.T) {
	d := &slowBarrier{Disk: disk.NewMem(6000), began: make(chan struct{}, 1), open: make(chan struct{})}
	mkfs(t, d, fs.MkfsOptions{Zeroed: true, Inodes: 256})
	v := open(t, d, fs.Options{Deferred: true})
	defer closeFS(t, v)
	d.held.Store(true)

	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	dir, err := v.Mkdir(root, v.Root(), []byte("d"), nil)
	must(err)
	f, err := v.Create(root, dir.Handle, []byte("f"), fs.Guarded, nil, 0)
	must(err)
	_, how, _, err := v.Write(root, f.Handle, 0, []byte("data"), fs.FileSync)
	must(err)
	if how != fs.Unstable {
		t.Errorf("a WRITE that did not wait says that it is stable: %d", how)
	}
	mode := uint32(0o600)
	_, err = v.Setattr(root, f.Handle, &fs.SetAttr{Mode: &mode}, nil)
	must(err)
	_, _, err = v.Link(root, f.Handle, v.Root(), []byte("g"))
	must(err)
	_, _, err = v.Rename(root, v.Root(), []byte("g"), dir.Handle, []byte("h"))
	must(err)
	_, err = v.Remove(root, dir.Handle, []byte("h"))
	must(err)

	done := make(chan error)
	go func() { done <- v.Sync() }()
	<-d.began
	select {
	case err := <-done:
		t.Errorf("Sync did not wait for the device: %v", err)
	default:
	}
	close(d.open)
	must(<-done)
}
