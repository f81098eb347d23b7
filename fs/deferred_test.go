package fs_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

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
	d := &slowBarrier{Disk: disk.NewMem(6000 * disk.BlockSize), began: make(chan struct{}, 1), open: make(chan struct{})}
	mkfs(t, d, fs.MkfsOptions{Zeroed: true, Inodes: 256})
	v := open(t, d, fs.Options{Deferred: true})
	defer closeFS(t, v)
	d.held.Store(true)

	done := make(chan error)
	go func() { done <- changes(v) }()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute): // it has waited for a device that does nothing
		close(d.open)
		t.Fatalf("a change waits for the device; %v", <-done)
	}

	go func() { done <- v.Sync() }()
	<-d.began
	select {
	case err := <-done:
		t.Errorf("Sync did not wait for the device: %v", err)
	default:
	}
	close(d.open)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// Of one volume some wait for the device and others do not; when one that does returns, what the others did before is
// durable, too.
func TestDeferring(t *testing.T) {
	sim := disk.NewSim(6000 * disk.BlockSize)
	d := &slowBarrier{Disk: sim, began: make(chan struct{}, 1), open: make(chan struct{})}
	mkfs(t, d, fs.MkfsOptions{Zeroed: true, Inodes: 256})
	v := open(t, d, fs.Options{})
	defer closeFS(t, v)
	sim.Record()
	d.held.Store(true)

	done := make(chan error)
	go func() { done <- changes(v.Deferring()) }()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute): // it has waited for a device that does nothing
		close(d.open)
		t.Fatalf("a change waits for the device; %v", <-done)
	}

	go func() {
		_, err := v.Mkdir(root, v.Root(), []byte("stable"), nil)
		done <- err
	}()
	<-d.began
	select {
	case err := <-done:
		t.Errorf("a change did not wait for the device: %v", err)
	default:
	}
	close(d.open)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	for image := range sim.At(sim.Ops()).Crashes(4, 1, true) {
		v := open(t, image, fs.Options{})
		for _, name := range []string{"stable", "d"} {
			if _, err := v.Lookup(root, v.Root(), []byte(name)); err != nil {
				t.Errorf("%s after a crash: %v", name, err)
			}
		}
		closeFS(t, v)
	}
}

// changes makes one change of each kind.
func changes(v *fs.FS) error {
	dir, err := v.Mkdir(root, v.Root(), []byte("d"), nil)
	if err != nil {
		return err
	}
	f, err := v.Create(root, dir.Handle, []byte("f"), fs.Guarded, nil, 0)
	if err != nil {
		return err
	}
	_, how, _, err := v.Write(root, f.Handle, 0, []byte("data"), fs.FileSync)
	if err == nil && how != fs.Unstable {
		err = fmt.Errorf("a WRITE that did not wait says that it is stable: %d", how)
	}
	mode := uint32(0o600)
	_, setattr := v.Setattr(root, f.Handle, &fs.SetAttr{Mode: &mode}, nil)
	_, _, link := v.Link(root, f.Handle, v.Root(), []byte("g"))
	_, _, rename := v.Rename(root, v.Root(), []byte("g"), dir.Handle, []byte("h"))
	_, remove := v.Remove(root, dir.Handle, []byte("h"))
	return errors.Join(err, setattr, link, rename, remove)
}
