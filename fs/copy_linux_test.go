package fs_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"tansy/disk"
	"tansy/fs"
)

// An image that is copied while a server writes to it is no backup, but not a trap either: the copy is not opened, or
// each file in it is what it was at one time, or cannot be read.
func TestCopiedInUse(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	const files = 30
	dir := t.TempDir()
	path := newImage(t, dir, 256<<20)
	s := serveImage(t, path, asIs)
	for i := range files {
		if err := addFile(s.v, i, fs.FileSync); err != nil {
			t.Fatal(err)
		}
	}
	stop, last := make(chan struct{}), make(chan error)
	go func() {
		for version := 1; ; version++ {
			for i := range files {
				h, err := find(s.v, "/"+string(fileName(i)))
				if err == nil {
					_, _, _, err = s.v.Write(root, h, 0, contents(i, version), []fs.Stability{fs.Unstable, fs.FileSync}[version%2])
				}
				if err != nil {
					last <- fmt.Errorf("file %d: %w", i, err)
					return
				}
			}
			select {
			case <-stop:
				last <- nil
				return
			default:
			}
		}
	}()
	var refused, lost, read int
	for n := range 6 {
		copied := filepath.Join(dir, fmt.Sprint("copy", n))
		copySlowly(t, path, copied)
		d, err := disk.OpenFile(copied, disk.FileOptions{})
		if err != nil {
			t.Fatal(err)
		}
		v, err := fs.Open(d, fs.Options{Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			refused++
		} else {
			for i := range files {
				h, err := find(v, "/"+string(fileName(i)))
				if err == fs.ErrNoEnt {
					t.Errorf("copy %d: file %d is gone without an error", n, i)
				}
				var got []byte
				if err == nil {
					got, _, _, err = v.Read(root, h, 0, fileBytes)
				}
				if err != nil {
					lost++
					continue
				}
				var of, version int
				if _, err := fmt.Sscanf(string(got[:16]), "%07d,%07d", &of, &version); err != nil || of != i || !bytes.Equal(got, contents(i, version)) {
					t.Errorf("copy %d: file %d is of no time: it begins with %q", n, i, got[:16])
				}
				read++
			}
			_ = v.Close() // which fails if what it needs is damaged
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		if err := os.Remove(copied); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	if err := <-last; err != nil {
		t.Fatal(err)
	}
	t.Logf("%d copies were not opened; in the others %d files could be read and %d could not", refused, read, lost)
}

// copySlowly copies an image, with time for others between its parts.
func copySlowly(t *testing.T, from, to string) {
	t.Helper()
	r, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	w, err := os.Create(to)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	b := make([]byte, 1<<20)
	for off := int64(0); ; off += int64(len(b)) {
		n, err := r.ReadAt(b, off)
		if !bytes.Equal(b[:n], make([]byte, n)) {
			<-tick.C
			if _, err := w.WriteAt(b[:n], off); err != nil {
				t.Fatal(err)
			}
		}
		if err == io.EOF {
			if err := w.Truncate(off + int64(n)); err != nil {
				t.Fatal(err)
			}
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}
