package fs_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tansy/disk"
	"tansy/fs"
	"tansy/test/kit/hosttest"
)

// allocated is what a file takes on the file system that it lies on, in bytes.
func allocated(t *testing.T, path string) int64 {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		t.Fatal(err)
	}
	return st.Blocks * 512
}

// discarding opens the volume in an image that gives room back.
func discarding(t *testing.T, path string) serving {
	t.Helper()
	d, err := disk.OpenFile(path, disk.FileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	v, err := fs.Open(disk.NewStats(d), fs.Options{Log: slog.New(slog.DiscardHandler), Discard: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Close() })
	return serving{d, v}
}

// until waits for a condition.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for tick := time.NewTicker(20 * time.Millisecond); !is(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatal("waited in vain: ", what)
		}
	}
}

func removeFiles(t *testing.T, v *fs.FS, first, n int) {
	t.Helper()
	for i := first; i < n; i++ {
		if _, err := v.Remove(root, v.Root(), fileName(i)); err != nil {
			t.Fatal(err)
		}
	}
}

// ahead is the room that the host keeps next to files that are still there: it is taken in pieces of so many bytes.
const ahead = 4 << 20

// The room of removed files goes back to the host: soon; also when it was not given back before the
// server ended; and all at once when that is wanted. The other files are what they were.
func TestTrim(t *testing.T) {
	for _, c := range []struct {
		kind, how string
		size      int
	}{
		{"tmpfs", "soon", 200 << 20}, {"tmpfs", "after a restart", 40 << 20}, {"tmpfs", "at once", 40 << 20},
		{"ext4", "soon", 40 << 20}, {"ext4", "after a restart", 40 << 20}, {"the file system of the tests", "soon", 40 << 20},
	} {
		t.Run(c.kind+", "+c.how, func(t *testing.T) {
			if testing.Short() && c.how != "after a restart" {
				t.Skip("long")
			}
			t.Parallel()
			dir := t.TempDir()
			if slices.Contains(hosttest.Kinds, c.kind) {
				dir = hosttest.Mount(t, c.kind, 400<<20)
			}
			testTrim(t, dir, c.how, c.size)
		})
	}
}

func testTrim(t *testing.T, dir, how string, size int) {
	path := newImage(t, dir, 1<<30)
	few, many := 100, 100+size/fileBytes
	s := serveImage(t, path, asIs)
	if how == "soon" {
		s.stop(t)
		s = discarding(t, path)
	}
	for i := range many {
		if i == few {
			if _, err := s.v.Commit(mustFind(t, s.v, "/file0"), 0, 0); err != nil {
				t.Fatal(err)
			}
		}
		if err := addFile(s.v, i, fs.Unstable); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.v.Commit(mustFind(t, s.v, "/file0"), 0, 0); err != nil {
		t.Fatal(err)
	}
	full := allocated(t, path)
	if full < int64(many*fileBytes) {
		t.Fatalf("%d bytes have room", full)
	}
	removeFiles(t, s.v, few, many)
	free := freeBytes(t, s.v)
	switch how {
	case "after a restart":
		s.stop(t)
		s = discarding(t, path)
	case "at once":
		bytes, err := s.v.Trim(nil)
		if err != nil || int(bytes) < (many-few)*fileBytes {
			t.Errorf("%d bytes were given back: %v", bytes, err)
		}
	}
	begin := time.Now()
	want := full - int64((many-few)*fileBytes) + ahead
	until(t, fmt.Sprintf("%d bytes of %d", want, full), func() bool { return allocated(t, path) <= want })
	t.Logf("%d MiB had room, %d MiB %.1f s after the removal",
		full>>20, allocated(t, path)>>20, time.Since(begin).Seconds())
	if now := freeBytes(t, s.v); now < free {
		t.Errorf("%d bytes were free, then %d", free, now)
	}
	verify(t, s.v, 0, few, 0)
	// what was given back can be taken again
	for i := few; i < many; i++ {
		if err := addFile(s.v, i, fs.Unstable); err != nil {
			t.Fatal(err)
		}
	}
	verify(t, s.v, 0, many, 0)
	s.stop(t)
	isClean(t, path)
}

// A block device does not say what it stores; what an earlier server has left there is given back all the same, as the
// codes tell what was written.
func TestTrimDeviceAfterRestart(t *testing.T) {
	const few, many = 20, 140
	path := newImage(t, t.TempDir(), 1<<30)
	dev := hosttest.Loop(t, path)
	s := serveImage(t, dev, asIs)
	for i := range many {
		if err := addFile(s.v, i, fs.Unstable); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.v.Commit(mustFind(t, s.v, "/file0"), 0, 0); err != nil {
		t.Fatal(err)
	}
	removeFiles(t, s.v, few, many)
	s.stop(t)
	full := allocated(t, path)
	s = discarding(t, dev)
	want := full - (many-few)*fileBytes*9/10
	until(t, fmt.Sprintf("%d bytes of %d", want, full), func() bool { return allocated(t, path) <= want })
	t.Logf("%d KiB had room, %d KiB have it", full>>10, allocated(t, path)>>10)
	verify(t, s.v, 0, few, 0)
	s.stop(t)
	isClean(t, dev)
}

func mustFind(t *testing.T, v *fs.FS, path string) fs.Handle {
	t.Helper()
	h, err := find(v, path)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// On a full host the room of removed files is there again, for this volume or for others; if others take it, what
// needs room is refused, and all else goes on. Meanwhile files are overwritten all the time: no write fails.
func TestTrimFullHost(t *testing.T) {
	for _, kind := range hosttest.Kinds {
		t.Run(kind, func(t *testing.T) {
			if testing.Short() {
				t.Skip("long")
			}
			r := random(t)
			dir := hosttest.Mount(t, kind, hostBytes)
			path := newImage(t, dir, 3*hostBytes)
			s := discarding(t, path)
			n := fill(t, s.v, 0, r)
			stop, overwritten := make(chan struct{}), make(chan error)
			go func() {
				for version := 1; ; version++ {
					for i := range 10 {
						h, err := find(s.v, "/"+string(fileName(i)))
						if err == nil {
							_, _, _, err = s.v.Write(root, h, 0, contents(i, version), fs.Unstable)
						}
						if err != nil {
							overwritten <- fmt.Errorf("file %d: %w", i, err)
							return
						}
					}
					select {
					case <-stop:
						overwritten <- nil
						return
					default:
					}
				}
			}()
			for range 3 {
				before := allocated(t, path)
				removeFiles(t, s.v, n/2, n)
				// used again while the background gives it back
				again := fill(t, s.v, n/2, r)
				if again < n-n/50 {
					t.Errorf("%d files had room, then %d", n, again)
				}
				n = again
				removeFiles(t, s.v, n/2, n)
				gone := int64(n-n/2) * fileBytes
				want := before - gone*3/4
				until(t, fmt.Sprintf("%d bytes of %d", want, before), func() bool { return allocated(t, path) <= want })
				if now := freeBytes(t, s.v); int64(now) < gone*3/4 {
					t.Errorf("%d bytes are free, of %d", now, gone)
				}
				n = fill(t, s.v, n/2, r)
			}
			// others take what is given back
			removeFiles(t, s.v, n/2, n)
			if _, err := s.v.Trim(nil); err != nil {
				t.Fatal(err)
			}
			hosttest.Fill(t, dir, 0)
			m := fill(t, s.v, n/2, r)
			if m > n-n/4 {
				t.Errorf("%d files had room on a host that is full, of %d", m, n)
			}
			close(stop)
			if err := <-overwritten; err != nil {
				t.Error(err)
			}
			verify(t, s.v, 10, m, 0)
			if err := s.v.Health(); err != nil {
				t.Error(err)
			}
			s.stop(t)
			isClean(t, path)
			s = discarding(t, path)
			verify(t, s.v, 10, m, 0)
			s.stop(t)
		})
	}
}

// What is written over takes new room of a host that has enough, and the image is as large as before soon after that,
// with the file still there.
func TestOverwritingGivesRoomBack(t *testing.T) {
	const piece, file = 1 << 20, 16 << 20
	path := newImage(t, t.TempDir(), 512<<20)
	v := discarding(t, path).v
	h, err := v.Create(root, v.Root(), []byte("f"), fs.Guarded, &fs.SetAttr{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	data := bytes.Repeat([]byte{1}, piece)
	write := func() {
		for at := uint64(0); at < file; at += piece {
			if _, _, _, err := v.Write(root, h.Handle, at, data, fs.Unstable); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := v.Commit(h.Handle, 0, 0); err != nil {
			t.Fatal(err)
		}
	}
	write()
	once := allocated(t, path)
	write()
	if n := allocated(t, path); n < once+file/2 {
		t.Errorf("the image took %d bytes, and takes %d after its file was written over", once, n)
	}
	until(t, "the image is as large as before", func() bool { return allocated(t, path) <= once+1<<20 })
}
