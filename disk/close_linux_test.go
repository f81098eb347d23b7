package disk

import (
	"os/exec"
	"sync"
	"testing"
)

// TestCloseBesideStarts: a volume that was closed can be opened at once, also while processes are being started,
// which have copies of all descriptors for a moment.
func TestCloseBesideStarts(t *testing.T) {
	d := create(t, 16)
	path := d.Path()
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var starts sync.WaitGroup
	defer starts.Wait()
	defer close(stop)
	for range 4 {
		starts.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					exec.Command("/bin/true").Run()
				}
			}
		})
	}
	for range 200 {
		d, err := OpenFile(path, FileOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
