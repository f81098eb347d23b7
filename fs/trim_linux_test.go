package fs_test

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tansy/disk"
	"tansy/fs"
	"tansy/internal/hosttest"
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

// ahead is the room that the host keeps for what is written next to files that are still there: pieces of
// 4 MiB, of which the root directory, the files of the test, and where the next is written have one.
const ahead = 4 * 4 << 20

// The room of removed files goes back to the host: soon; also when it was not given back before the
// server ended; and all at once when that is wanted. The other files are what they were.
func TestTrim(t *testing.T) {
	places := map[string]func() string{"here": t.TempDir}
	for _, kind := range hosttest.Kinds {
		places[kind] = func() string { return hosttest.Mount(t, kind, 400<<20) }
	}
	for kind, place := range places {
		for _, how := range []string{"soon", "after a restart", "at once"} {
			t.Run(kind+", "+how, func(t *testing.T) {
				path := newImage(t, place(), 1<<30)
				size := 40 << 20
				if kind == "tmpfs" {
					size = 200 << 20
				}
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
				want := full - int64((many-few)*fileBytes) + ahead
				until(t, fmt.Sprintf("%d bytes of %d", want, full), func() bool { return allocated(t, path) <= want })
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
			})
		}
	}
}

func mustFind(t *testing.T, v *fs.FS, path string) fs.Handle {
	t.Helper()
	h, err := find(v, path)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

